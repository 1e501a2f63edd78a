"""The usage log: where a call came in, what it spent, and who may see it; both stores."""

from dataclasses import replace

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.errors import BadInput, Forbidden
from keepsake.core.principal import DEFAULT_SCOPES, Principal, local_owner
from keepsake.ops import background, budget
from keepsake.ops.usage import Usage
from keepsake.services.llm import Ask, Message
from keepsake.store import usage
from tests.llm_server import MODEL, Script

pytestmark = pytest.mark.anyio
ADA = Principal(1, "ada", DEFAULT_SCOPES)
ASK = Ask((Message("user", "x" * 72),), 100)


async def told(app: App, who: Principal, **arguments: object) -> Usage:
    made = await dispatch.call(app.ctx(who), "usage.get", arguments)
    assert isinstance(made, Usage)
    return made


async def spend(app: App, who: Principal = ADA, **payer: int) -> None:
    model = budget.model(app)
    assert model is not None
    ctx = app.ctx(who, surface="web").running("memory.ask")
    await budget.chat(replace(budget.payer(ctx, 7), **payer), model, ASK)  # type: ignore[arg-type]  # numbers only


async def test_the_budget_and_the_last_calls_are_told(thinking: App, script: Script) -> None:
    app = replace(thinking, now=lambda: clock.parse("2026-11-18T10:00:00Z"))
    script.will("four tokens here")
    await spend(app)

    made = await told(app, ADA)

    assert made.model_dump() == {
        "principal": "ada",
        "limit": 500_000,
        "spent": 22,
        "reserved": 0,
        "resets_at": "2026-11-23T00:00:00Z",
        "saved": 0,
        "calls": [
            {
                "at": "2026-11-18T10:00:00Z",
                "source": "web",
                "operation": "memory.ask",
                "model": MODEL,
                "tokens_in": 18,
                "tokens_out": 4,
            }
        ],
    }


async def test_the_calls_of_one_request_are_one_row(thinking: App, script: Script) -> None:
    script.will("four tokens here", "four tokens here", "four tokens here")
    await spend(thinking, row=99)
    await spend(thinking, row=99)
    await spend(thinking)

    made = await told(thinking, ADA)

    assert sorted((call.tokens_in, call.tokens_out) for call in made.calls) == [(18, 4), (36, 8)]
    assert made.spent == 66


async def test_calls_come_newest_first_and_no_more_than_asked_for(app: App) -> None:
    for n in range(5):
        row = usage.Usage(1, 7, n + 1, n, "ada", f"op.{n}", "m", 1, 1, "mcp")
        await app.store.write(1, lambda tx, row=row: usage.record(tx, row))  # type: ignore[misc]  # bound at once

    made = await told(app, ADA, limit=2)

    assert [call.operation for call in made.calls] == ["op.4", "op.3"]


async def test_what_others_spent_is_for_admins(thinking: App, script: Script) -> None:
    script.will("four tokens here")
    await spend(thinking)

    with pytest.raises(Forbidden, match="admin"):
        await told(thinking, replace(ADA, name="bob"), principal="ada")
    seen = await told(thinking, local_owner(), principal="ada")
    own = await told(thinking, replace(ADA, name="bob"))

    assert (seen.principal, seen.spent, len(seen.calls)) == ("ada", 22, 1)
    assert (own.principal, own.spent, own.calls) == ("bob", 0, [])


async def test_another_org_has_a_budget_of_its_own(thinking: App, script: Script) -> None:
    script.will("four tokens here")
    await spend(thinking)

    assert (await told(thinking, replace(ADA, org=2))).spent == 0


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_a_limit_out_of_bounds_is_refused(app: App, limit: int) -> None:
    with pytest.raises(BadInput):
        await told(app, ADA, limit=limit)


async def test_the_background_comes_from_nowhere(app: App) -> None:
    assert budget.payer(background.ctx(app, 1, "api", "model.refresh"), 7).source == ""
    assert budget.payer(app.ctx(ADA), 7).source == "mcp"


@pytest.mark.parametrize(
    ("moment", "reset"),
    [
        ("2026-03-01T23:59:59Z", "2026-03-02T00:00:00Z"),
        ("2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"),
        ("2025-12-31T12:00:00Z", "2026-01-05T00:00:00Z"),
    ],
)
def test_the_budget_begins_anew_on_monday_at_midnight_utc(moment: str, reset: str) -> None:
    assert budget.resets_at(clock.parse(moment)) == reset


async def test_what_was_handed_out_in_a_week_is_counted_as_saved_in_banks_one_sees(app: App) -> None:
    ctx = app.ctx(ADA, "api")
    await dispatch.call(ctx, "memory.retain", {"content": "The gate opens at nine."})
    await app.store.write(1, lambda tx: tx.run("UPDATE memories SET tokens = 1005"))
    await dispatch.call(ctx, "memory.recall", {"query": "When does the gate open?"})
    await dispatch.call(ctx, "memory.retain", {"content": "Something else."})

    assert (await told(app, ADA)).saved == 1_000
    assert (await told(app, replace(ADA, banks=frozenset({"other"})))).saved == 0
