"""Another embedding model, brought in while search goes on, and done without while it cannot be asked."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from keepsake import settings, worker
from keepsake.context import App
from keepsake.ops import embedding
from keepsake.services import embed
from keepsake.store import embeddings, jobs, usage
from tests.endpoint_server import Models, serving
from tests.llm_server import Fails
from tests.ops.conftest import calling

pytestmark = pytest.mark.anyio
FACTS = (
    "Marta lives in Oslo near the harbour.",
    "The billing service runs on PostgreSQL.",
    "Grandfather planted two apple trees behind the house.",
)


@pytest.fixture
def models() -> Iterator[Models]:
    with serving() as models:
        yield models


def using(app: App, models: Models, model: str = "small") -> App:
    """The same application with an embedding model behind an endpoint."""
    environment = {"KEEPSAKE_EMBEDDING_BASE_URL": models.url, "KEEPSAKE_EMBEDDING_MODEL": model}
    made = replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))
    asked = embedding.endpoint(made)
    assert asked is not None
    asked.pause_s, asked.rest_s = 0.01, 0.0
    return made


async def worked(app: App) -> None:
    while await worker.step(app):
        pass


async def known(app: App) -> dict[str, str]:
    """The state of every model."""
    return {model.name: model.state for model in await app.store.engine.look(embeddings.models)}


async def holding(app: App, name: str = "default") -> dict[str, int]:
    """How many vectors a bank has of each model."""
    bank = (await calling(app)("get_bank", bank_id=name))["bank_id"]
    rows = await app.store.read(
        1,
        lambda tx: tx.all(
            "SELECT e.name AS name, count(*) AS held FROM vectors v JOIN embedding_models e ON e.model = v.model"
            " WHERE v.org = 1 AND v.bank = (SELECT bank FROM bank_names WHERE org = 1 AND name = :name)"
            " GROUP BY e.name",
            name=bank,
        ),
    )
    return {row["name"]: int(row["held"]) for row in rows}


async def found(app: App, query: str) -> list[str]:
    return [hit["text"] for hit in (await calling(app)("recall", query=query))["results"]]


@pytest.fixture
async def told(app: App, call: Any, sharpened: Callable[[], Awaitable[None]]) -> App:
    """An application that knows three facts, with vectors of the packaged model."""
    for fact in FACTS:
        await call("retain", content=fact)
    await sharpened()
    return app


async def test_what_is_retained_gets_the_endpoints_vectors(app: App, models: Models) -> None:
    made = using(app, models)
    await calling(made)("retain", content=FACTS[0])
    await worked(made)

    assert await holding(made) == {"small@64": 1}
    assert await known(made) == {"wordllama-256": "static", "small@64": "current"}
    assert (await found(made, "harbour"))[0] == FACTS[0]


async def test_retain_asks_no_endpoint_and_is_found_at_once(app: App, models: Models) -> None:
    models.is_down = True
    made = using(app, models)

    await calling(made)("retain", content=FACTS[0])

    assert models.asked == []
    assert await found(made, "Where does Marta live?") == [FACTS[0]]


async def test_a_model_is_measured_once_when_it_is_brought_in(told: App, models: Models) -> None:
    made = using(told, models)

    await embedding.brought_in(made)
    asked = len(models.asked)
    await embedding.brought_in(made)

    row = next(row for row in await made.store.engine.look(embeddings.models) if row.name == "small@64")
    assert len(models.asked) == asked + 1
    assert 0 < row.zero < row.one <= 1.0001


async def test_every_bank_with_vectors_of_another_model_is_asked_for_once(told: App, models: Models) -> None:
    await calling(told)("retain", content=FACTS[0], bank_id="default")
    await calling(told)("create_bank", bank_id="other")
    await calling(told)("retain", content=FACTS[1], bank_id="other")
    await worked(told)
    made = using(told, models)

    before = await embedding.look_again(told)
    first, second = await embedding.look_again(made), await embedding.look_again(made)
    await worked(made)

    assert (before, first, second, await embedding.look_again(made)) == (0, 2, 0, 0)
    assert await holding(made, "other") == {"small@64": 1}
    assert list(await holding(made)) == ["small@64"]


async def test_a_worker_that_starts_with_another_model_looks_for_what_is_to_be_made_anew(
    told: App, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FIRST_SWEEP_S", 0.0)
    made = using(told, models)
    async with asyncio.timeout(30), worker.beside(made):
        while (await known(made)).get("small@64") != "current":
            await asyncio.sleep(0.05)

    assert await holding(made) == {"small@64": 3}


async def test_search_goes_on_with_both_models_while_memories_move(told: App, models: Models) -> None:
    made = using(told, models)
    model = await embedding.brought_in(made)
    during = await known(made)
    # One of them has moved, the others have not.
    one = await _move_one(made, model)

    rows = await found(made, "Where does Marta live?"), await found(made, "apple trees")

    assert during[embed.PACKAGED] == "current" and during["small@64"] == "incoming"
    assert await holding(made) == {embed.PACKAGED: 2, "small@64": 1}
    assert one > 0
    assert (rows[0][0], rows[1][0]) == (FACTS[0], FACTS[2])
    assert (await calling(made)("get_bank_stats", bank_id="default"))["pending_embeddings"] == 2


async def _move_one(app: App, model: embeddings.Model) -> int:
    bank = (await app.store.read(1, lambda tx: embeddings.elsewhere(tx, 1, model.id, embedding.EVERY)))[0]
    due = await app.store.read(1, lambda tx: embeddings.due(tx, 1, bank, model.id, 1))
    await embedding._replace(app, jobs.Job(1, bank, 1, "embed", "", 1, 1), model, due, {})
    return due[0].memory


async def test_the_new_model_is_current_once_nothing_of_the_old_one_is_left(told: App, models: Models) -> None:
    made = using(told, models)
    await embedding.look_again(made)
    await worked(made)

    assert await holding(made) == {"small@64": 3}
    assert await known(made) == {"wordllama-256": "static", embed.PACKAGED: "retired", "small@64": "current"}
    assert (await found(made, "apple trees"))[0] == FACTS[2]


async def test_a_former_model_is_still_asked_where_its_endpoint_serves_it(app: App, models: Models) -> None:
    former = using(app, models)
    for fact in FACTS:
        await calling(former)("retain", content=fact)
    await worked(former)
    made = using(app, models, "large")

    hits = (await calling(made)("recall", query="apple trees"))["results"]
    again = (await calling(made)("recall", query="apple trees"))["results"]

    assert [body["model"] for body in models.asked[-3:]] == ["small", "small", "small"]
    assert hits[0]["text"] == FACTS[2] and hits[0]["why"]["meaning"] > 0
    assert again == hits


async def test_a_model_that_only_has_the_name_of_a_former_one_is_not_searched_with(app: App, models: Models) -> None:
    former = using(app, models)
    for fact in FACTS:
        await calling(former)("retain", content=fact)
    await worked(former)
    with serving() as elsewhere:
        elsewhere.is_other = True
        made = using(app, elsewhere, "large")

        hits = (await calling(made)("recall", query="apple trees"))["results"]

    assert elsewhere.asked
    assert hits[0]["text"] == FACTS[2] and "meaning" not in hits[0]["why"]


async def test_going_back_to_the_packaged_model_works_as_well(told: App, models: Models) -> None:
    made = using(told, models)
    await embedding.look_again(made)
    await worked(made)
    models.is_down = True

    unasked = await found(told, "apple trees")
    await embedding.look_again(told)
    await worked(told)

    assert unasked[0] == FACTS[2]
    assert await holding(told) == {embed.PACKAGED: 3}
    assert await known(told) == {"wordllama-256": "static", embed.PACKAGED: "current", "small@64": "retired"}
    assert (await found(told, "What grows in the garden?"))[0] == FACTS[2]


async def test_another_dimension_is_another_model(app: App, models: Models) -> None:
    made = using(app, models)
    await calling(made)("retain", content=FACTS[0])
    await worked(made)
    models.dim = 128

    during = await found(made, "Where does Marta live?")
    await calling(made)("retain", content=FACTS[1])
    await worked(made)

    assert during == [FACTS[0]]
    assert await holding(made) == {"small@128": 2}
    assert await known(made) == {"wordllama-256": "static", "small@64": "retired", "small@128": "current"}


async def test_an_endpoint_that_is_away_fails_no_recall_and_words_still_find(app: App, models: Models) -> None:
    made = using(app, models)
    for fact in FACTS:
        await calling(made)("retain", content=fact)
    await worked(made)
    models.is_down = True

    assert (await found(made, "Where does Marta live?"))[0] == FACTS[0]
    assert (await calling(made)("retain", content="Ada likes tea."))["status"] == "stored"


async def test_a_job_that_the_endpoint_failed_is_tried_again_and_given_new_tries_later(
    told: App, models: Models
) -> None:
    made = using(told, models)
    models.is_down = True
    await embedding.look_again(made)
    await worked(made)
    waiting = (await calling(made)("list_operations"))["operations"]
    failed = next(one for one in waiting if one["type"] == "embed")
    await made.store.write(1, lambda tx: tx.run("UPDATE jobs SET state = 'failed' WHERE kind = 'embed'"))
    models.is_down = False

    again = await embedding.look_again(made)
    await worked(made)

    assert "status 503" in failed["error"]
    assert again == 1
    assert await holding(made) == {"small@64": 3}


async def test_what_was_cancelled_stays_cancelled(told: App, models: Models) -> None:
    made = using(told, models)
    await embedding.look_again(made)
    waiting = (await calling(made)("list_operations"))["operations"]
    id = next(one["operation_id"] for one in waiting if one["status"] == "pending")
    await calling(made)("cancel_operation", operation_id=id)

    assert await embedding.look_again(made) == 0


async def test_tokens_are_written_down_for_questions_and_batches(app: App, models: Models) -> None:
    made = using(app, models)
    await calling(made)("retain", content=FACTS[0])
    await worked(made)
    await found(made, "Where does Marta live?")
    await made.later.done()

    rows = await made.store.read(1, lambda tx: usage.recorded(tx, 1, 0))

    assert [(row.operation, row.model, row.principal, row.tokens_out) for row in rows] == [
        ("job.embed", "small", "background", 0),
        ("memory.recall", "small", "local", 0),
    ]
    assert all(row.tokens_in > 0 for row in rows)


async def test_no_secret_of_a_question_or_a_memory_is_sent(app: App, models: Models) -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    made = using(app, models)
    await calling(made)("retain", content="Marta lives in Oslo.")
    await made.store.write(
        1, lambda tx: tx.run("UPDATE memories SET text = :text", text=f"Marta's key is {secret} in Oslo.")
    )
    await worked(made)
    await found(made, f"Whose key is {secret}?")
    await made.later.done()

    assert len(models.texts) > 40
    assert secret not in " ".join(models.texts)


async def test_a_refused_batch_does_not_stop_the_others(told: App, models: Models) -> None:
    made = using(told, models)
    await embedding.brought_in(made)
    # The probe, then the batch of three, then its first text.
    models.will(lambda body: {"data": [{"embedding": [1.0] * 64}]}, Fails(400), Fails(400))
    await embedding.look_again(made)
    await worked(made)

    assert await holding(made) == {"small@64": 3}
