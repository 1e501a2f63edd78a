"""The background's first job: the sharper vector that takes the place of the one made at once."""

from collections.abc import Awaitable, Callable

from keepsake.context import App
from keepsake.store import banks, embeddings, jobs
from keepsake.store.engine import Tx, VectorRow

BATCH = 16
#: Vectors after which the database is told to look at its statistics again.
MANY = 1_000
Alive = Callable[[], Awaitable[bool]]


async def sharpen(app: App, job: jobs.Job, alive: Alive) -> None:
    """Give every memory of a bank its sharper vector, as long as the job is ours."""
    model = await app.embedding.sharp_model(app.store)
    await app.store.engine.index_model(model.id, model.dim)
    made = 0
    while await alive():
        due = await app.store.read(job.org, lambda tx: embeddings.due(tx, job.org, job.bank, model.id, BATCH))
        if not due:
            break
        await _replace(app, job, model.id, due)
        made += len(due)
    if made >= MANY:
        await app.store.engine.settle()


async def _replace(app: App, job: jobs.Job, model: int, due: list[embeddings.Due]) -> None:
    """Write the sharper vectors where the text is still the one they were made from."""
    vectors = await app.embedding.sharpened([one.text for one in due])

    async def body(tx: Tx) -> None:
        now = await embeddings.unchanged(tx, job.org, job.bank, [one.memory for one in due])
        kept = [(n, one) for n, one in enumerate(due) if now.get(one.memory) == one.text_hash]
        if not kept:
            return
        seq = await banks.step(tx, job.org, job.bank)
        for n, one in kept:
            await tx.put_vector(VectorRow(job.org, job.bank, one.memory, model, vectors[n], one.text_hash, seq))

    await app.store.write(job.org, body)
