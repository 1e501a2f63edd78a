"""The context pack: knowledge first, the seed's signals, within its budget, and nothing of other projects unasked."""

from typing import Any

import pytest

from keepsake.context import App
from keepsake.core.clock import DAY, HOUR
from keepsake.core.errors import BadInput, Forbidden
from keepsake.core.principal import local_owner
from keepsake.core.words import cost
from tests.ops.observing import NOON, Kiro, Seen, app, asking, kiro, observed, titles

__all__ = ["app", "kiro"]
pytestmark = pytest.mark.anyio
NOW = NOON + HOUR

JWT = Seen(
    "JWT provides stateless authentication suitable for our REST API.",
    title="Use JWT for API authentication",
    kind="decision",
    at=NOW - 70 * DAY,
)
AUTH = Seen("Added JWT verification middleware", title="Modified auth.ts", at=NOW - 7 * DAY)
TEST = Seen("Ran npm test — 47 tests passed (success)", title="npm test", subtype="command", at=NOW)
DONE = Seen("", kind="summary", parts={"request": "authentication", "completed": "Modified auth.ts"}, at=NOW)


async def test_without_a_query_recency_and_project_count(app: App, kiro: Kiro) -> None:
    ids = await observed(app, JWT, AUTH, TEST)

    told = await kiro("get_context", project="my-api")

    assert titles(told["items"]) == ["Use JWT for API authentication", "npm test", "Modified auth.ts"]
    assert told["items"][2] == {
        "id": ids[1],
        "title": "Modified auth.ts",
        "content": "Added JWT verification middleware",
        "type": "file-write",
        "project": "my-api",
        "created_at": "2026-02-22T13:00:00.000Z",
        "created_at_epoch": (NOW - 7 * DAY) // 1000,
        "score": 0.65,
        "signals": {"semantic": 0.0, "fts5": 0.0, "recency": 0.5, "projectMatch": 1.0},
    }
    assert [told[name] for name in ("project", "summaries", "tokenBudget")] == ["my-api", [], 2000]


async def test_with_a_query_all_four_signals_make_the_score(app: App, kiro: Kiro) -> None:
    await observed(app, JWT, AUTH, TEST)

    items = (await kiro("get_context", project="my-api", query="JWT middleware verification"))["items"]

    assert titles(items) == ["Use JWT for API authentication", "Modified auth.ts", "npm test"]
    for item in items:
        part = item["signals"]
        whole = 0.45 * part["semantic"] + 0.35 * part["fts5"] + 0.1 * part["recency"] + 0.1 * part["projectMatch"]
        assert item["score"] == pytest.approx(whole, abs=0.001)
        assert all(0 <= signal <= 1 for signal in part.values())
    assert items[1]["signals"]["semantic"] > items[2]["signals"]["semantic"]
    assert items[1]["signals"]["fts5"] > 0 == items[2]["signals"]["fts5"]


async def test_a_query_brings_what_is_too_old_for_the_newest(app: App, kiro: Kiro) -> None:
    await observed(app, Seen("The flamingo cache holds pink pages", title="found", at=NOW - 300 * DAY))
    await observed(app, *(Seen(f"Ran build number {n}", title=f"build {n}", at=NOW) for n in range(300)))

    told = await kiro("get_context", project="my-api", query="flamingo cache", token_budget=200)
    usual = await kiro("get_context", project="my-api", token_budget=200)

    assert titles(told["items"])[0] == "found"
    assert "found" not in titles(usual["items"])


async def test_every_decision_that_fits_is_there_however_old(app: App, kiro: Kiro) -> None:
    kinds = ["decision", "constraint", "heuristic", "rejected"]
    await observed(app, *(Seen(f"rule {n}", title=f"r{n}", kind=kinds[n % 4], at=NOW - 900 * DAY) for n in range(40)))
    await observed(app, *(Seen(f"Ran build number {n}", title=f"build {n}", at=NOW) for n in range(200)))

    items = (await kiro("get_context", project="my-api"))["items"]

    assert sorted(titles(items)[:40]) == sorted(f"r{n}" for n in range(40))


@pytest.mark.parametrize("query", [None, "build"])
@pytest.mark.parametrize("budget", [1, 50, 333, 2_000])
async def test_the_whole_stays_within_its_budget(app: App, kiro: Kiro, query: str | None, budget: int) -> None:
    await observed(
        app, *(Seen(f"Ran build number {n} " + "and more " * (n % 40), at=NOW - n * HOUR) for n in range(60))
    )
    await observed(app, *(Seen("", kind="summary", parts={"completed": "built " * n}) for n in range(1, 9)))

    told = await kiro("get_context", project="my-api", token_budget=budget, query=query)

    spent = sum(cost(item["content"]) for item in told["items"]) + sum(_cost(one) for one in told["summaries"])
    assert told["tokensUsed"] == spent <= budget == told["tokenBudget"]
    assert told["tokensUsed"] > 0.8 * budget or budget == 1


def _cost(summary: dict[str, Any]) -> int:
    return cost(summary["completed"])


async def test_summaries_come_newest_first_and_are_no_items(app: App, kiro: Kiro) -> None:
    first, last = await observed(app, DONE, Seen("", kind="summary", parts={"notes": "later"}, at=NOW + 1))

    told = await kiro("get_context", project="my-api")

    assert [one["id"] for one in told["summaries"]] == [last, first]
    assert (told["items"], told["summaries"][1]["request"]) == ([], "authentication")


@pytest.mark.parametrize("query", [None, "tabs"])
async def test_other_projects_give_only_what_they_share(app: App, kiro: Kiro, query: str | None) -> None:
    await observed(app, TEST)
    await observed(
        app,
        Seen("Always use tabs", title="shared", tags=("shared",), at=NOW),
        Seen("Never use tabs", title="own", at=NOW),
        bank="other",
    )
    narrow = asking(app, local_owner().narrowed(banks=frozenset({"my-api"})))

    told = (await kiro("get_context", project="my-api", query=query))["items"]

    assert sorted((one["title"], one["project"], one["signals"]["projectMatch"]) for one in told) == [
        ("npm test", "my-api", 1.0),
        ("shared", "other", 0.5),
    ]
    assert titles((await narrow("get_context", project="my-api", query=query))["items"]) == ["npm test"]


async def test_an_unknown_project_is_empty_and_one_out_of_reach_is_refused(app: App, kiro: Kiro) -> None:
    await observed(app, TEST)

    told = await kiro("get_context", project="nowhere", query="x", token_budget=100)

    assert told == {"project": "nowhere", "items": [], "summaries": [], "tokenBudget": 100, "tokensUsed": 0}
    with pytest.raises(Forbidden):
        await asking(app, local_owner().narrowed(banks=frozenset({"b"})))("get_context", project="my-api")


async def test_what_was_retained_is_context_too(app: App, kiro: Kiro) -> None:
    await observed(app, Seen("The team deploys on Fridays", kind="fact"))

    (item,) = (await kiro("get_context", project="my-api"))["items"]

    assert (item["type"], item["title"], item["content"]) == ("fact", *["The team deploys on Fridays"] * 2)


@pytest.mark.parametrize("wrong", [{"token_budget": 0}, {"token_budget": "many"}, {"project": "../etc"}])
async def test_bad_arguments_are_refused(kiro: Kiro, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        await kiro("get_context", **({"project": "my-api"} | wrong))
