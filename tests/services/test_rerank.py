"""The reranker over real HTTP, and what a search makes of its judgement."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepsake import settings, worker
from keepsake.context import App
from keepsake.core.errors import Misconfigured
from keepsake.ops import rerank as rerank_ops
from keepsake.services import rerank
from keepsake.services.endpoint import Failed
from keepsake.services.rerank import Reranker
from keepsake.store import usage
from keepsake.store.store import Store
from tests.endpoint_server import NAN, Json, Line, Models, serving
from tests.llm_server import Fails, Hangs, Raw
from tests.ops.conftest import calling

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"
TEXTS = ["The printer is out of paper", "Ada likes tea", "Tea is grown in Assam"]
FACTS = ("Tea is grown in Assam.", "Ada likes tea with milk.", "Tea was on sale last week.")


@pytest.fixture
def models() -> Iterator[Models]:
    with serving() as models:
        yield models


def model(models: Models, timeout: float = 20.0, name: str = "judge") -> Reranker:
    return Reranker(models.url, KEY, name, timeout, pause_s=0.01)


def judging(*scores: object, key: str = "relevance_score") -> Line:
    return lambda body: {"results": [{"index": n, key: score} for n, score in enumerate(scores)]}


async def test_scores_come_in_the_order_of_the_texts(models: Models) -> None:
    made = await model(models).judged("Who likes tea?", TEXTS)

    assert made.scores == [0.0, 1.0, 0.5]
    assert made.tokens == 4 + 7 + 4 + 6
    assert models.asked == [{"model": "judge", "query": "Who likes tea?", "documents": TEXTS}]
    assert models.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_a_server_that_counts_is_believed(models: Models) -> None:
    models.will(lambda body: {"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 77}})

    assert (await model(models).judged("tea", TEXTS[:1])).tokens == 77


async def test_tei_is_spoken_too_and_found_out_once(models: Models) -> None:
    def bare(body: Json) -> object:
        return [{"index": n, "score": 0.1 * n} for n in reversed(range(len(body["texts"])))]

    models.will(Fails(422, message="missing field `texts`"), bare, bare)
    asked = model(models, name="")

    first, second = await asked.judged("tea", TEXTS), await asked.judged("tea", TEXTS)

    assert first.scores == second.scores == [0.0, 0.1, 0.2]
    assert [sorted(body) for body in models.asked] == [["documents", "query"], ["query", "texts"], ["query", "texts"]]


async def test_scores_without_bounds_are_brought_between_0_and_1(models: Models) -> None:
    models.will(judging(-8.0, 0.0, 1_000.0))

    scores = (await model(models).judged("tea", TEXTS)).scores

    assert scores == sorted(scores) and 0 < scores[0] < 0.001 and scores[1] == 0.5 and 0.999 < scores[2] <= 1


async def test_long_texts_are_cut(models: Models) -> None:
    await model(models).judged("tea " * 5_000, ["milk " * 5_000])

    assert (len(models.asked[0]["query"]), len(models.asked[0]["documents"][0])) == (2_000, 2_000)


@pytest.mark.parametrize(
    "line",
    [
        Raw("{not json"),
        Raw("{}"),
        Raw("[]"),
        judging(0.5, 0.4),
        judging(0.5, 0.4, 0.3, 0.2),
        judging(0.5, 0.4, NAN),
        judging(0.5, 0.4, None),
        lambda body: {"results": [{"index": 0, "relevance_score": 0.5}] * 3},
        lambda body: {"results": [{"index": n - 1, "relevance_score": 0.5} for n in range(3)]},
    ],
)
async def test_a_judgement_that_cannot_be_used_is_told_as_such(models: Models, line: Line) -> None:
    models.will(line)

    with pytest.raises(Failed, match="something that is no answer"):
        await model(models).judged("tea", TEXTS)


async def test_a_reranker_that_does_not_answer_in_time_is_given_up(models: Models) -> None:
    models.will(Hangs())

    with pytest.raises(Failed, match=r"did not answer within 0.3 s"):
        await model(models, timeout=0.3).judged("tea", TEXTS)


async def test_a_refusal_never_tells_the_key_or_what_was_sent(models: Models) -> None:
    models.will(Fails(403, message=f"wrong key {KEY} for: Ada likes tea"))

    with pytest.raises(Failed) as failed:
        await model(models, name="").judged("tea", TEXTS)

    assert str(failed.value) == f"The model at {models.url} refused with status 403."


def test_nothing_is_configured_by_default_and_an_address_is_enough() -> None:
    made = rerank.configured(settings.load({"KEEPSAKE_RERANK_BASE_URL": "http://127.0.0.1:1234"}))

    assert rerank.configured(settings.load({})) is None
    assert made == Reranker("http://127.0.0.1:1234", "", "", 10)
    with pytest.raises(Misconfigured, match="KEEPSAKE_RERANK_BASE_URL"):
        settings.load({"KEEPSAKE_RERANK_MODEL": "judge"})


@pytest.fixture
async def app(store: Store, models: Models, tmp_path: Path) -> App:
    """An application with a reranker that knows three facts."""
    environment = {"KEEPSAKE_RERANK_BASE_URL": models.url, "KEEPSAKE_RERANK_MODEL": "judge"}
    app = App(settings.load(environment, data_dir=tmp_path), store)
    asked = rerank_ops.endpoint(app)
    assert asked is not None
    asked.pause_s, asked.rest_s = 0.01, 0.0
    plain = replace(app, settings=settings.load({}, data_dir=tmp_path))
    for fact in FACTS:
        await calling(plain)("retain", content=fact)
    while await worker.step(plain):
        pass
    return app


async def recalled(app: App, query: str = "tea", **arguments: Any) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = (await calling(app)("recall", query=query, **arguments))["results"]
    return hits


async def test_a_search_is_ordered_by_the_reranker_and_says_so(app: App, models: Models) -> None:
    wanted = {"Tea was on sale last week.": 0.9, "Tea is grown in Assam.": 0.6, "Ada likes tea with milk.": 0.3}
    models.will(
        lambda body: {
            "results": [{"index": n, "relevance_score": wanted[text]} for n, text in enumerate(body["documents"])]
        }
    )

    hits = await recalled(app)

    assert {hit["text"]: hit["score"] for hit in hits} == wanted
    assert [hit["text"] for hit in hits] == list(wanted)
    assert [hit["why"]["reranked"] for hit in hits] == [0.9, 0.6, 0.3]


@pytest.mark.parametrize("line", [Fails(500), Fails(401), Raw("{}"), judging(0.1)])
async def test_a_reranker_that_fails_leaves_the_order_as_it_was(app: App, models: Models, line: Line) -> None:
    plain = await recalled(replace(app, settings=settings.load({}, data_dir=app.settings.data_dir)))
    models.will(line, line, line)

    hits = await recalled(app)

    assert models.asked
    assert [(hit["text"], hit["score"], hit["why"]) for hit in hits] == [
        (hit["text"], hit["score"], hit["why"]) for hit in plain
    ]


async def test_it_sees_more_than_is_returned_and_no_secret_of_the_question(app: App, models: Models) -> None:
    plain = replace(app, settings=settings.load({}, data_dir=app.settings.data_dir))
    for n in range(12):
        await calling(plain)("retain", content=f"Tea of kind {n} is kept in the blue tin number {n}.")
    await calling(app)("recall", query="tea AKIAIOSFODNN7EXAMPLE", budget="low")

    hits = await recalled(app, budget="low")

    assert len(models.asked[-1]["documents"]) > len(hits) == 8
    assert "AKIAIOSFODNN7EXAMPLE" not in str(models.asked)


async def test_what_it_cost_is_written_down(app: App, models: Models) -> None:
    await recalled(app)
    await app.later.done()

    rows = await app.store.read(1, lambda tx: usage.recorded(tx, 1, 0))

    assert [(row.operation, row.model, row.tokens_in > 0) for row in rows] == [("memory.recall", "judge", True)]


async def test_where_nothing_is_found_nothing_is_sent(app: App, models: Models) -> None:
    assert await recalled(app, "zeppelin moorings") == []
    assert models.asked == []
