"""A look at every bank at once: what is counted, whose, and that nobody else's bank is among it; both stores."""

from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.clock import DAY
from keepsake.core.errors import Forbidden
from keepsake.core.principal import LOCAL_ORG, Principal, local_owner
from keepsake.store import usage
from keepsake.store.engine import Tx
from keepsake.store.usage import Usage

pytestmark = pytest.mark.anyio
WEEK = 7 * DAY


async def run(app: App, operation: str, who: Principal | None = None, **given: Any) -> dict[str, Any]:
    made = await dispatch.call(app.ctx(who or local_owner()), operation, given)
    return made.model_dump(mode="json", exclude_none=True)


async def test_growth_is_told_by_week_and_kind_and_only_of_what_still_holds(app: App) -> None:
    await run(app, "bank.create", name="api")
    await run(app, "bank.create", name="web")
    first = await run(app, "memory.retain", bank="api", content="Tea is at four.")
    await run(app, "decision.record", bank="api", title="Use SQLite", decision="We use SQLite for one machine.")
    await run(app, "memory.correct", bank="api", id=first["id"], content="Tea is at five.")

    now = await run(app, "bank.overview")
    later = await run(replace(app, now=lambda: app.now() + 3 * WEEK + DAY), "bank.overview", banks=["api"])

    api, web = now["banks"]
    assert (api["name"], api["memories"], now["total"]) == ("api", 2, 2)
    assert {kind: weeks[-1] for kind, weeks in api["weeks"].items()} == {"decision": 1, "fact": 1}
    assert all(weeks == [0] * 11 + [1] for weeks in api["weeks"].values())
    assert api["last_author"] == "local" and api["breakdown"]["total"] == 0 and "project" not in api
    assert (web["memories"], web["weeks"], web["conflicts"]) == (0, {}, 0) and "last_learned_at" not in web
    assert later["total"] == 1 and later["banks"][0]["weeks"]["fact"] == [0] * 8 + [1] * 4
    assert (await run(app, "bank.overview", offset=1))["banks"] == [web]


async def test_tokens_of_a_week_are_told_by_day_and_others_only_to_who_manages(app: App) -> None:
    await run(app, "bank.create", name="api")
    today = app.now() // DAY * DAY
    moment = replace(app, now=lambda: today + DAY // 2)

    async def spent(tx: Tx) -> None:
        for n, (who, at) in enumerate([("local", today + 1), ("ada", today - 6 * DAY), ("ada", today - 7 * DAY)]):
            await usage.record(tx, Usage(LOCAL_ORG, 1, 100 + n, at, who, "memory.ask", "tiny", 10 * (n + 1), 5, "web"))

    await app.store.write(LOCAL_ORG, spent)
    ada = replace(local_owner(), name="ada", scopes=frozenset({"memory:read"}))

    everyone, own = await run(moment, "bank.overview"), await run(moment, "bank.overview", ada)

    assert [day["spent"] for day in everyone["days"]] == [25, 0, 0, 0, 0, 0, 15]
    assert [day["spent"] for day in own["days"]] == [25, 0, 0, 0, 0, 0, 0]


async def test_what_was_handed_out_counts_once_on_its_last_day(app: App) -> None:
    await run(app, "bank.create", name="api")
    await run(app, "memory.retain", bank="api", content="The gate opens at nine.")
    await app.store.write(LOCAL_ORG, lambda tx: tx.run("UPDATE memories SET tokens = 1005"))
    for _ in range(2):
        await run(app, "memory.recall", bank="api", query="When does the gate open?")

    days = (await run(app, "bank.overview"))["days"]

    assert [day["saved"] for day in days] == [0] * 6 + [1000]


async def test_nobody_is_told_of_a_bank_that_they_do_not_see(app: App) -> None:
    for name in ("api", "web"):
        await run(app, "bank.create", name=name)
    narrow = replace(local_owner(), name="bob", banks=frozenset({"api"}), scopes=frozenset({"memory:read"}))

    seen = await run(app, "bank.overview", narrow)

    assert [bank["name"] for bank in seen["banks"]] == ["api"] and seen["total"] == 1
    for operation, given in (("bank.overview", {"banks": ["web"]}), ("incident.count", {})):
        with pytest.raises(Forbidden):
            await run(app, operation, narrow, **given)
    assert await run(app, "incident.count") == {"banks": {}}
