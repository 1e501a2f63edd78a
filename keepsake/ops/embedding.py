"""Which model gives meaning its numbers: of questions at once, of memories in the background, while it may change."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from keepsake.context import App, Ctx
from keepsake.core import log, secrets
from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.services import embed
from keepsake.store import banks, embeddings, jobs
from keepsake.store.engine import Body, Tx, VectorRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from keepsake.ops import budget
    from keepsake.services import remote
    from keepsake.services.remote import Remote
    from keepsake.store import bulk

    #: A question as a model sees it, by model and text; None for a model that cannot be asked now.
    Known = dict[tuple[int, str], npt.NDArray[np.float32] | None]
    #: The same for one text.
    Vectors = dict[int, npt.NDArray[np.float32] | None]
else:
    budget = lazy("keepsake.ops.budget")
    remote = lazy("keepsake.services.remote")
    bulk = lazy("keepsake.store.bulk")

T = TypeVar("T")
BATCH = 16
#: The same for an endpoint, where every request has its price in time.
REMOTE_BATCH = 32
#: How much longer than a question the background's batches may take.
PATIENCE = 6.0
#: Vectors after which the database is told to look at its statistics again.
MANY = 1_000
#: pgvector makes no index for longer vectors; they are compared one by one.
INDEXED = 4_000
Alive = Callable[[], Awaitable[bool]]
EVERY: tuple[str, ...] = ("static", "current", "incoming", "retired")
SHARP = EVERY[1:]


def endpoint(app: App) -> "Remote | None":
    """The embedding model that is configured in place of the packaged one."""
    return remote.configured(app.settings) if app.settings.embedding_base_url else None


def wanted(app: App) -> str:
    """The name of the model that the settings name."""
    return app.settings.embedding_model or embed.PACKAGED


def is_wanted(app: App, model: embeddings.Model) -> bool:
    """Whether a model is the one that the settings name; its dimension may be another by now."""
    asked = endpoint(app)
    return asked.is_known_as(model.name) if asked else model.name == embed.PACKAGED


class Elsewhere(Exception):
    """A question must be asked of models that are not in this process, before a transaction can go on."""

    def __init__(self, bank: int, told: str, models: Sequence[embeddings.Model]) -> None:
        super().__init__()
        self.bank, self.told, self.models = bank, told, models


async def reading(ctx: Ctx, known: "Known", body: Body[T]) -> T:
    """Read on one snapshot; a model elsewhere is asked between two attempts, so that no transaction waits for it."""
    while True:
        try:
            return await ctx.read(body)
        except Elsewhere as waiting:
            for model in waiting.models:
                known[model.id, waiting.told] = await question(ctx, waiting.bank, model, waiting.told)


async def within(tx: Tx, known: "Known", bank: int, models: Sequence[embeddings.Model], told: str) -> "Vectors":
    """A question as each model sees it, in a transaction; one that is known already is not asked again."""
    unknown = [model for model in models if (model.id, told) not in known]
    near = [model for model in unknown if _is_near(model)]
    if len(near) < len(unknown):
        raise Elsewhere(bank, told, [model for model in unknown if model not in near])
    if near:
        made = await tx.aside(lambda: [_row(_packaged(model).embed([told])) for model in near])
        known.update({(model.id, told): row for model, row in zip(near, made, strict=True)})
    return {model.id: known[model.id, told] for model in models}


def _is_near(model: embeddings.Model) -> bool:
    """Whether a model answers here in a few milliseconds; one that must be loaded first is as far as any other."""
    return embed.is_loaded(model.state == "static") if _is_packaged(model) else False


def _is_packaged(model: embeddings.Model) -> bool:
    return model.state == "static" or model.name == embed.PACKAGED


def _packaged(model: embeddings.Model) -> embed.Embedder:
    return embed.static() if model.state == "static" else embed.sharp()


async def question(ctx: Ctx, bank: int, model: embeddings.Model, told: str) -> "npt.NDArray[np.float32] | None":
    """A question as a model sees it; None when that model cannot be asked, and its vectors are left out."""
    if model.state == "static":
        return _row(await ctx.app.embedding.static([told]))
    if model.name == embed.PACKAGED:
        return _row(await ctx.app.embedding.sharp([told]))
    asked, texts = _asked(ctx.app, model), [secrets.redacted(told).text]
    if asked is None:
        return None
    if is_wanted(ctx.app, model):
        made = await asked.attempted("embedding", lambda: asked.embed(texts))
    else:
        made = await asked.attempted("embedding", lambda: asked.embed_as(model.dim, model.zero, model.one, texts))
    if made is None:
        return None
    payer = budget.payer(ctx, bank)
    ctx.app.later.do(budget.noted(payer, asked.model, made.tokens))
    return _row(made.rows) if made.rows.shape[1] == model.dim else None


def _asked(app: App, model: embeddings.Model) -> "Remote | None":
    """The endpoint to ask for a model: the one that is configured may still serve what was used before."""
    return endpoint(app) if is_wanted(app, model) else remote.former(app.settings, model.name)


def _row(rows: "npt.NDArray[np.float32]") -> "npt.NDArray[np.float32]":
    row: npt.NDArray[np.float32] = rows[0]
    return row


async def sharpen(app: App, job: jobs.Job, alive: Alive) -> None:
    """Give every memory of a bank its vector of the model to use, as long as the job is ours."""
    model = await brought_in(app)
    if model.dim <= INDEXED:
        await app.store.engine.index_model(model.id, model.dim)
    total = await app.store.read(job.org, lambda tx: embeddings.others(tx, job.org, job.bank, model.id))
    batch = REMOTE_BATCH if endpoint(app) else BATCH
    made, known = 0, dict[str, int]()
    while await alive():
        due = await app.store.read(job.org, lambda tx: embeddings.due(tx, job.org, job.bank, model.id, batch))
        if not due:
            break
        await _replace(app, job, model, due, known)
        made += len(due)
        if made < total:
            await _progress(app, job, made / total)
    if made >= MANY:
        await app.store.engine.settle()
    if model.state == "incoming":
        await _arrive(app, model)


async def _progress(app: App, job: jobs.Job, share: float) -> None:
    await app.store.write(job.org, lambda tx: jobs.progress(tx, job, app.now(), share))


async def brought_in(app: App) -> embeddings.Model:
    """What the store knows the model to use as, which is brought in when it is new or was away."""
    model = await _described(app)
    known = await app.store.engine.look(embeddings.models)
    now = next((row for row in known if row.name == model.name), None)
    is_alone = not any(row.state == "incoming" and row.name != model.name for row in known)
    if now and is_alone and now.state in ("current", "incoming"):
        return now
    if now is None and (asked := endpoint(app)):
        scale = await asked.scale()
        model = embeddings.Model(0, model.name, model.dim, scale.zero, scale.one, "retired")
        log.info("embedding model measured", model=model.name, zero=model.zero, one=model.one)
    return await app.store.engine.claim(lambda tx: embeddings.bring_in(tx, model))


async def _described(app: App) -> embeddings.Model:
    """The model to use; an endpoint must be asked for the length of its vectors, which may have changed."""
    asked = endpoint(app)
    if asked is None:
        return await app.embedding.sharp_model(app.store)
    dim = (await asked.embed([remote.PROBE], PATIENCE)).rows.shape[1]
    return embeddings.Model(0, asked.known_as(dim), dim, 0.0, 1.0, "retired")


async def _replace(
    app: App, job: jobs.Job, model: embeddings.Model, due: list[embeddings.Due], known: dict[str, int]
) -> None:
    """Write the new vectors where the text is still the one they were made from; the same text is embedded once."""
    twins = {one.memory: known[one.text_hash] for one in due if one.text_hash in known}
    new = {one.text_hash: one for one in due if one.text_hash not in known}
    if new:
        await _embedded(app, job, model, due, new)
        known |= {hash: one.memory for hash, one in new.items()}
    if twins and (lost := await app.store.write(job.org, lambda tx: _copied(tx, job, model, twins))):
        # Whoever had the vector is gone, or says something else now: it is made again.
        for hash in [hash for hash, memory in known.items() if memory in lost]:
            del known[hash]


async def _copied(tx: Tx, job: jobs.Job, model: embeddings.Model, twins: dict[int, int]) -> set[int]:
    """Give memories the vectors of others that say the same; tells which of those have none any more."""
    there = await embeddings.having(tx, job.org, job.bank, model.id, sorted(set(twins.values())))
    seq = await banks.step(tx, job.org, job.bank)
    await bulk.copy_vectors(tx, job.org, job.bank, {new: old for new, old in twins.items() if old in there}, seq)
    left = await embeddings.having(tx, job.org, job.bank, model.id, sorted(twins))
    return {old for new, old in twins.items() if new not in left}


async def _embedded(
    app: App, job: jobs.Job, model: embeddings.Model, due: list[embeddings.Due], new: dict[str, embeddings.Due]
) -> None:
    rows, tokens = await _made(app, [one.text for one in new.values()])
    if rows.shape[1] != model.dim:
        raise Unavailable(f"The vectors of {model.name} have another length by now. It is brought in anew.")
    place = {hash: n for n, hash in enumerate(new)}

    async def body(tx: Tx) -> None:
        now = await embeddings.unchanged(tx, job.org, job.bank, [one.memory for one in due])
        kept = [one for one in due if now.get(one.memory) == one.text_hash and one.text_hash in place]
        if kept:
            seq = await banks.step(tx, job.org, job.bank)
        for one in kept:
            row = VectorRow(job.org, job.bank, one.memory, model.id, rows[place[one.text_hash]], one.text_hash, seq)
            await tx.put_vector(row)

    await app.store.write(job.org, body)
    if asked := endpoint(app):
        payer = budget.Payer(app, job.org, job.bank, "job.embed", budget.BACKGROUND)
        await budget.noted(payer, asked.model, tokens)


async def _made(app: App, texts: Sequence[str]) -> "tuple[npt.NDArray[np.float32], int]":
    """Vectors, and the tokens that an endpoint counted for them."""
    asked = endpoint(app)
    if asked is None:
        return await app.embedding.sharpened(texts), 0
    made = await asked.embed([secrets.redacted(told).text for told in texts], PATIENCE)
    return made.rows, made.tokens


async def _arrive(app: App, model: embeddings.Model) -> None:
    """Retire the former model once no bank of any org holds a vector of it."""
    for org in await app.store.engine.look(embeddings.orgs):
        if await _elsewhere(app, org, model.id, SHARP):
            return
    for former in await app.store.engine.look(embeddings.models):
        if former.id != model.id and former.state in SHARP:
            await app.store.engine.drop_model(former.id)
    await app.store.engine.claim(lambda tx: embeddings.arrived(tx, model.id))
    log.info("embedding model changed", model=model.name)


async def _elsewhere(app: App, org: int, model: int, states: Sequence[str]) -> list[int]:
    return await app.store.read(org, lambda tx: embeddings.elsewhere(tx, org, model, states))


async def look_again(app: App) -> int:
    """Ask for the work that a change of the model, or an endpoint that was away, has left; tells for how many banks."""
    model = in_use(app, await app.store.engine.look(embeddings.models))
    left = 0
    for org in await app.store.engine.look(embeddings.orgs):
        if found := await _elsewhere(app, org, model.id if model else 0, EVERY):
            left += await _ask(app, org, found)
    # The last vector of the former model may have been forgotten instead of made anew.
    if model and model.state == "incoming":
        await _arrive(app, model)
    return left


def in_use(app: App, known: Sequence[embeddings.Model]) -> embeddings.Model | None:
    """The model that the settings name as the store knows it; None before it was brought in."""
    wanted = {row.state: row for row in known if is_wanted(app, row)}
    return wanted.get("incoming") or wanted.get("current")


async def _ask(app: App, org: int, found: Sequence[int]) -> int:
    async def body(tx: Tx) -> int:
        standing = [one for one in await jobs.standing(tx, org) if one.kind == "embed"]
        # What a person cancelled is taken up again by the next write, not by us.
        settled = {one.bank for one in standing if one.state in ("pending", "running", "cancelled")}
        asked = [bank for bank in found if bank not in settled]
        for bank in asked:
            await jobs.wanted(tx, app.store, org, bank, "embed", app.now())
        return len(asked)

    asked = await app.store.write(org, body)
    if asked:
        app.work.set()
    return asked
