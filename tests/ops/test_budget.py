"""Budgets of tokens: exact under concurrency, begun anew on Monday, with a ceiling for the background; both stores."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.core import clock
from keepsake.ops import budget
from keepsake.ops.budget import BACKGROUND, Payer, Spent
from keepsake.services.llm import Ask, LlmFailed, Message
from keepsake.store import usage
from tests.llm_server import MODEL, Fails, Hangs, Script
from tests.ops.conftest import calling

pytestmark = pytest.mark.anyio
ASK = Ask((Message("user", "x" * 72),), 100)
MOST = 72 // 2 + 64 + 100


def limited(app: App, script: Script, **environment: str) -> App:
    """The application with a model and limits."""
    given = {"KEEPSAKE_LLM_BASE_URL": script.url, "KEEPSAKE_LLM_MODEL": MODEL, "KEEPSAKE_LLM_TIMEOUT": "2"}
    return replace(app, settings=settings.load(given | environment, data_dir=app.settings.data_dir))


async def asked(app: App, holder: str = "alice") -> Any:
    model = budget.model(app)
    assert model is not None
    model.pause_s = 0.01
    return await budget.chat(Payer(app, 1, 7, "memory.reflect", holder), model, ASK)


async def standing(app: App, holder: str, period: str) -> usage.Standing:
    return await app.store.read(1, lambda tx: usage.standing(tx, 1, holder, period))


async def reserved(app: App, hold: usage.Hold, limit: int, now: int) -> bool:
    return await app.store.write(1, lambda tx: usage.reserve(tx, hold, limit, now))


async def test_a_call_is_charged_what_it_cost_and_leaves_a_row(app: App, script: Script) -> None:
    limited_app = limited(app, script)
    script.will("four tokens here")

    await asked(limited_app)

    rows = await app.store.read(1, lambda tx: usage.recorded(tx, 1, 0))
    assert await standing(app, "alice", budget.week(app.now())) == usage.Standing(reserved=0, spent=18 + 4)
    assert [(row.bank, row.principal, row.operation, row.model, row.tokens_in, row.tokens_out) for row in rows] == [
        (7, "alice", "memory.reflect", MODEL, 18, 4)
    ]


async def test_only_as_many_calls_run_at_once_as_the_budget_pays_for(app: App, script: Script) -> None:
    limited_app = limited(app, script, WEEKLY_TOKEN_LIMIT=str(3 * MOST))
    script.will(*["four tokens here"] * 8)

    outcomes = await asyncio.gather(*(asked(limited_app) for _ in range(8)), return_exceptions=True)

    done = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    assert all(isinstance(outcome, Spent) for outcome in outcomes if isinstance(outcome, Exception))
    assert 3 <= len(done) == len(script.asked)
    assert await standing(app, "alice", budget.week(app.now())) == usage.Standing(0, 22 * len(done))


async def test_reservations_never_exceed_the_limit(app: App) -> None:
    holds = [usage.Hold(1, "alice", "w2026-03-02", 10, 4, app.now() + clock.HOUR) for _ in range(30)]

    taken = await asyncio.gather(*(reserved(app, hold, 95, app.now()) for hold in holds))

    assert sum(taken) == 9
    assert await standing(app, "alice", "w2026-03-02") == usage.Standing(reserved=90, spent=0)


async def test_what_a_dead_caller_set_aside_comes_back_but_for_what_it_had_sent(app: App) -> None:
    dead = usage.Hold(1, "alice", "w2026-03-02", tokens=90, sent=30, expires_at=1_000)
    await reserved(app, dead, 100, now=500)

    early = await reserved(app, usage.Hold(1, "alice", "w2026-03-02", 70, 10, 9_000), 100, now=999)
    late = await reserved(app, usage.Hold(1, "alice", "w2026-03-02", 70, 10, 9_000), 100, now=1_000)

    assert (early, late) == (False, True)
    assert await standing(app, "alice", "w2026-03-02") == usage.Standing(reserved=70, spent=30)


async def test_who_was_taken_for_dead_and_answers_is_charged_once(app: App) -> None:
    slow = usage.Hold(1, "alice", "w2026-03-02", tokens=90, sent=30, expires_at=1_000)
    await reserved(app, slow, 100, now=500)
    await reserved(app, usage.Hold(1, "alice", "w2026-03-02", 1, 1, 9_000), 100, now=1_000)

    await app.store.write(1, lambda tx: usage.settle(tx, slow, 50))

    assert await standing(app, "alice", "w2026-03-02") == usage.Standing(reserved=1, spent=50)


async def test_a_process_killed_in_a_call_leaves_a_hold_that_the_next_call_clears(app: App, script: Script) -> None:
    first = limited(app, script, WEEKLY_TOKEN_LIMIT=str(MOST + MOST // 2 + 50))
    hold, limit = Payer(first, 1, 7, "memory.reflect", "alice").hold(ASK)
    await reserved(first, hold, limit, first.now())
    with pytest.raises(Spent):
        await asked(first)
    script.will("four tokens here")

    await asked(replace(first, now=lambda: hold.expires_at))

    assert await standing(app, "alice", hold.period) == usage.Standing(reserved=0, spent=MOST - 100 + 22)


async def test_each_principal_has_a_budget_of_its_own(app: App, script: Script) -> None:
    limited_app = limited(app, script, WEEKLY_TOKEN_LIMIT=str(MOST))
    script.will("four tokens here", "four tokens here")

    await asked(limited_app, "alice")
    with pytest.raises(Spent, match=f"The budget of {MOST} tokens for this week is spent"):
        await asked(limited_app, "alice")
    await asked(limited_app, "bob")

    assert len(script.asked) == 2


async def test_the_background_has_a_daily_ceiling_of_its_own(app: App, script: Script) -> None:
    limited_app = limited(app, script, KEEPSAKE_LLM_DAILY_TOKENS=str(MOST), WEEKLY_TOKEN_LIMIT="0")
    script.will("four tokens here")

    await asked(limited_app, BACKGROUND)
    with pytest.raises(Spent, match="for this day is spent"):
        await asked(limited_app, BACKGROUND)

    assert (await standing(app, BACKGROUND, budget.day(app.now()))).spent == 22


@pytest.mark.parametrize(
    ("moment", "week", "day"),
    [
        ("2026-03-01T23:59:59Z", "w2026-02-23", "d2026-03-01"),
        ("2026-03-02T00:00:00Z", "w2026-03-02", "d2026-03-02"),
        ("2026-01-01T12:00:00Z", "w2025-12-29", "d2026-01-01"),
    ],
)
def test_a_week_begins_on_monday_at_midnight_utc(moment: str, week: str, day: str) -> None:
    assert (budget.week(clock.parse(moment)), budget.day(clock.parse(moment))) == (week, day)


async def test_a_new_week_has_a_whole_budget(app: App, script: Script) -> None:
    sunday = limited(app, script, WEEKLY_TOKEN_LIMIT=str(MOST))
    sunday = replace(sunday, now=lambda: clock.parse("2026-03-01T23:59:59Z"))
    script.will("four tokens here", "four tokens here")
    await asked(sunday)
    with pytest.raises(Spent):
        await asked(sunday)

    await asked(replace(sunday, now=lambda: clock.parse("2026-03-02T00:00:00Z")))

    assert len(script.asked) == 2


async def test_a_refused_call_costs_nothing_and_one_without_an_answer_all_that_was_set_aside(
    app: App, script: Script
) -> None:
    limited_app = limited(app, script)
    period = budget.week(app.now())
    script.will(Fails(500), Fails(500), Fails(500), Hangs())

    with pytest.raises(LlmFailed):
        await asked(limited_app)
    refused = await standing(app, "alice", period)
    with pytest.raises(LlmFailed):
        await asked(limited_app)

    assert refused == usage.Standing(0, 0)
    assert await standing(app, "alice", period) == usage.Standing(0, MOST)


async def test_who_gives_up_waiting_leaves_nothing_reserved(app: App, script: Script) -> None:
    limited_app = limited(app, script)
    script.will(Hangs())

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asked(limited_app), 0.5)

    assert await standing(app, "alice", budget.week(app.now())) == usage.Standing(0, MOST)


async def test_reflect_over_budget_answers_by_rules_and_says_so(app: App, script: Script) -> None:
    call = calling(limited(app, script, WEEKLY_TOKEN_LIMIT="10"))
    await call("retain", content="The billing service runs in Oslo.")

    made = await call("reflect", query="Where does the billing service run?")

    assert made["text"] == "- The billing service runs in Oslo. [1]"
    assert made["note"].startswith("Made by rules: The budget of 10 tokens for this week is spent")
    assert script.asked == []


async def test_a_schema_over_budget_is_an_error_that_says_so(app: App, script: Script) -> None:
    call = calling(limited(app, script, WEEKLY_TOKEN_LIMIT="10"))
    await call("retain", content="The billing service runs in Oslo.")

    with pytest.raises(Spent, match="is spent; it begins anew on Monday"):
        await call("reflect", query="Where does billing run?", response_schema={"type": "object"})
