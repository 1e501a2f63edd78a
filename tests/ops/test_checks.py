"""Checks: added, validated, listed, removed, run and told, on both stores."""

from typing import Any

import pytest

from keepsake.context import App
from keepsake.core.clock import SECOND
from keepsake.core.errors import BadInput, Conflict, Forbidden, NotFound
from keepsake.core.principal import DEFAULT_SCOPES, Principal
from keepsake.ops import checks as check_ops
from keepsake.ops import watching
from keepsake.store import checks
from tests import watched
from tests.ops.watch import ORG, Run, after, app, rounds, run, running, time
from tests.ops.working import Clock

__all__ = ["app", "run", "time"]
pytestmark = pytest.mark.anyio
STRANGER = Principal(org=ORG, name="key:ci", scopes=DEFAULT_SCOPES, key=7)


async def test_a_check_is_added_listed_and_removed(run: Run, time: Clock) -> None:
    added = await run("check.add", name="web", kind="http", target="https://shop.example/", tls_days=14, status="200")

    listed = await run("check.list")
    assert listed == {"checks": [added], "total": 1}
    assert (added["status"], added["tls_days"], added["every_s"], added["state"]) == ("200", 14, 60, "new")
    assert "token" not in added

    assert (await run("check.remove", name="web"))["name"] == "web"
    assert await run("check.list") == {"checks": [], "total": 0}
    with pytest.raises(NotFound):
        await run("check.remove", name="web")
    await run("check.add", name="web", kind="tcp", target="shop.example:443")


async def test_a_name_is_taken_once(run: Run) -> None:
    await run("check.add", name="web", kind="dns", target="shop.example")

    with pytest.raises(Conflict, match="already"):
        await run("check.add", name="web", kind="dns", target="shop.example")


BAD: list[dict[str, Any]] = [
    {"kind": "http"},
    {"kind": "http", "target": "shop.example"},
    {"kind": "http", "target": "ftp://shop.example/"},
    {"kind": "http", "target": "http://ada:hunter2@shop.example/"},
    {"kind": "http", "target": "http://ada@shop.example/"},
    {"kind": "http", "target": "http://shop.example/#top"},
    {"kind": "http", "target": "http://shop.example\\@127.0.0.1/"},
    {"kind": "http", "target": "http://shop.example/\nX: y"},
    {"kind": "http", "target": "http://:80/"},
    {"kind": "http", "target": "http://shop.example:0x50/"},
    {"kind": "http", "target": "http://shop.example:99999/"},
    {"kind": "http", "target": "http://shop.example/", "tls_days": 14},
    {"kind": "http", "target": "http://shop.example/", "status": "99"},
    {"kind": "http", "target": "http://shop.example/", "status": "299-200"},
    {"kind": "http", "target": "https://shop.example/?token=ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
    {"kind": "tcp", "target": "shop.example"},
    {"kind": "tcp", "target": "shop.example:80", "contains": "x"},
    {"kind": "tcp", "target": "shop.example:80?x=1"},
    {"kind": "postgres", "target": "postgresql://ada:hunter2@db.example/shop"},
    {"kind": "redis", "target": "redis://:hunter2@cache.example"},
    {"kind": "dns", "target": "shop example"},
    {"kind": "dns", "target": "shop.example", "addresses": ["nowhere"]},
    {"kind": "heartbeat", "target": "shop.example"},
    {"kind": "self", "target": "x"},
    {"kind": "smoke", "target": "x"},
    {"kind": "dns", "target": "shop.example", "every_s": 1},
    {"kind": "dns", "target": "shop.example", "name": "two\nlines"},
    {"kind": "dns", "target": "shop.example", "name": " "},
]


async def test_what_cannot_be_watched_is_refused_and_no_secret_is_told(run: Run) -> None:
    for given in BAD:
        with pytest.raises(BadInput) as refused:
            await run("check.add", **{"name": "it", **given})
        assert "hunter2" not in str(refused.value)
        assert "ghp_" not in str(refused.value)

    assert await run("check.list") == {"checks": [], "total": 0}


async def test_rights_decide_who_may_add_and_see(app: App, run: Run) -> None:
    reader = running(app, Principal(org=ORG, name="key:r", scopes=frozenset({"watch:read"}), key=1))
    writer = running(app, Principal(org=ORG, name="key:w", scopes=frozenset({"watch:write"}), key=2))
    await run("check.add", name="web", kind="dns", target="shop.example")

    assert (await reader("check.status"))["new"] == 1
    for operation in ("check.add", "check.remove", "incident.note", "incident.acknowledge"):
        with pytest.raises(Forbidden):
            await reader(operation, name="x", kind="self", id="1", text="x")
    for operation in ("check.status", "check.list", "incident.list", "anomaly.list"):
        with pytest.raises(Forbidden):
            await writer(operation)
    await writer("check.remove", name="web")


async def test_another_bank_sees_nothing(app: App, run: Run) -> None:
    await run("check.add", name="web", kind="self")
    await after(app, 0)
    other = running(app, bank="garden")

    assert await other("check.list") == {"checks": [], "total": 0}
    assert (await other("check.status"))["checks"] == []
    with pytest.raises(NotFound):
        await other("check.remove", name="web")


@pytest.mark.parametrize("target", ["http://127.0.0.1/", "http://localhost/", "http://[::ffff:10.0.0.1]/"])
async def test_only_the_local_owner_may_watch_private_addresses(app: App, run: Run, target: str) -> None:
    stranger = running(app, STRANGER)

    with pytest.raises(BadInput, match="private address"):
        await stranger("check.add", name="inside", kind="http", target=target)
    await run("check.add", name="inside", kind="http", target=target)


async def test_a_stranger_s_name_for_this_machine_is_refused_when_it_runs(app: App) -> None:
    stranger = running(app, STRANGER)
    async with watched.web() as page:
        await stranger("check.add", name="inside", kind="http", target=page.url(host="0x7f.1"), retries=0)
        await after(app, 0)

    [told] = (await stranger("check.status"))["checks"]
    assert told["reason"].startswith("is refused: its address is private")
    assert page.heard == []


async def test_status_tells_how_everything_stands(app: App, run: Run) -> None:
    async with watched.web() as page:
        await run("check.add", name="web", kind="http", target=page.url(), retries=0)
        await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
        await run("check.add", name="mind", kind="self")
        await rounds(app, 2)

    told = await run("check.status")
    down, mind, web = told["checks"]
    assert (told["ok"], told["up"], told["down"], told["new"]) == (False, 2, 1, 0)
    assert (down["name"], down["reason"]) == ("gone", "cannot be reached: Connection refused")
    assert (web["name"], web["state"], web["uptime_24h"]) == ("web", "up", 1.0)
    assert (down["uptime_24h"], web["latency_ms"] > 0, "latency_ms" in mind) == (0.0, True, False)
    assert [sign["name"] for sign in told["keepsake"]] == ["database", "queue", "disk"]
    assert (await run("check.status", state="down", limit=1))["checks"] == [down]


async def test_keepsake_is_ill_when_work_is_left_lying(app: App, run: Run, time: Clock) -> None:
    await run("memory.retain", content="Something for the background to do.")
    await run("check.add", name="mind", kind="self", retries=0)
    assert (await run("check.status"))["ok"]

    time.at += 3600 * SECOND
    await rounds(app, 2)

    told = await run("check.status")
    assert (told["ok"], told["down"]) == (False, 1)
    assert told["checks"][0]["reason"].startswith("is not well: queue: the oldest job has waited 3")


async def test_a_second_try_makes_up_for_the_first(app: App, run: Run) -> None:
    async with watched.web("503 Busy") as page:

        async def talk(reader: Any, writer: Any) -> None:
            await answered(reader, writer)
            page.page.answer = "200 OK"

        answered, page.talk = page.talk, talk
        await run("check.add", name="web", kind="http", target=page.url(), retries=1)
        await after(app, 0)

    [told] = (await run("check.status"))["checks"]
    assert (told["state"], told["uptime_24h"], len(page.heard)) == ("up", 1.0, 2)


async def test_a_heartbeat_that_comes_in_time_is_up_and_one_that_is_late_is_down(
    app: App, run: Run, time: Clock
) -> None:
    added = await run("check.add", name="backup", kind="heartbeat", every_s=3600, grace_s=60)
    token = check_ops.hashed(added["token"])

    await watching.beat(app, token)
    assert await after(app, 3600) == 0
    [told] = (await run("check.status"))["checks"]
    assert told["state"] == "up"

    assert await after(app, 61) == 1
    [told] = (await run("check.status"))["checks"]
    assert (told["state"], told["reason"]) == ("down", "was not heard of in time")

    time.at += 5 * SECOND
    await watching.beat(app, token)
    [told] = (await run("check.status"))["checks"]
    assert (told["state"], "incident" in told) == ("up", False)
    [incident] = (await run("incident.list"))["incidents"]
    assert incident["state"] == "resolved"


async def test_a_clock_that_is_set_back_makes_no_heartbeat_late(app: App, run: Run, time: Clock) -> None:
    added = await run("check.add", name="backup", kind="heartbeat", every_s=60, grace_s=0)
    await run("check.add", name="unheard", kind="heartbeat", every_s=60, grace_s=0)
    await watching.beat(app, check_ops.hashed(added["token"]))

    assert await after(app, -10_000) == 0
    assert [one["state"] for one in (await run("check.status"))["checks"]] == ["up", "new"]

    assert await after(app, 61) == 2
    assert (await run("check.status"))["down"] == 2


async def test_a_heartbeat_that_was_heard_counts_though_its_hearer_died(app: App, run: Run, time: Clock) -> None:
    added = await run("check.add", name="backup", kind="heartbeat", every_s=3600)
    token = check_ops.hashed(added["token"])
    await app.store.engine.claim(lambda tx: checks.of_token(tx, token, time.at))

    assert await after(app, 61) == 1

    assert (await run("check.status"))["up"] == 1


async def test_a_heartbeat_that_never_came_is_down_too(app: App, run: Run) -> None:
    await run("check.add", name="backup", kind="heartbeat", every_s=60, grace_s=0)

    assert await after(app, 61) == 1

    [told] = (await run("check.status"))["checks"]
    assert (told["state"], told["reason"]) == ("down", "was never heard of")


async def test_heartbeats_in_a_burst_are_one_and_unknown_tokens_are_unknown(app: App, run: Run, time: Clock) -> None:
    added = await run("check.add", name="backup", kind="heartbeat")
    token = check_ops.hashed(added["token"])
    for _ in range(5):
        await watching.beat(app, token)
        time.at += SECOND // 10

    async def samples(tx: Any) -> Any:
        return await tx.all("SELECT at FROM check_results")

    assert len(await app.store.read(ORG, samples)) == 1
    with pytest.raises(NotFound):
        await watching.beat(app, check_ops.hashed("guessed"))
    await run("check.remove", name="backup")
    with pytest.raises(NotFound):
        await watching.beat(app, token)


async def test_the_token_is_stored_as_a_hash_only(app: App, run: Run) -> None:
    added = await run("check.add", name="backup", kind="heartbeat")

    async def rows(tx: Any) -> Any:
        return await tx.all("SELECT * FROM checks")

    [row] = await app.store.read(ORG, rows)
    assert added["token"] not in str(dict(row))
    assert row["token"] == check_ops.hashed(added["token"])


async def test_a_deleted_bank_leaves_nothing_to_run(app: App, run: Run) -> None:
    await run("check.add", name="web", kind="self")
    await after(app, 0)

    await run("bank.delete")

    assert await after(app, 120) == 0
    assert await run("check.list") == {"checks": [], "total": 0}
