"""Incidents: opened and resolved with patience, told by memories, noted and acknowledged, on both stores."""

from typing import Any

import pytest

from keepsake.context import App
from keepsake.core import clock
from keepsake.core.clock import HOUR, MINUTE
from keepsake.core.errors import NotFound
from keepsake.core.principal import Principal
from tests import watched
from tests.ops.watch import ORG, Run, after, app, rounds, run, running, time
from tests.ops.working import Clock
from tests.watched import Watched

__all__ = ["app", "run", "time"]
pytestmark = pytest.mark.anyio


async def incidents(run: Run, **given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await run("incident.list", **given))["incidents"]
    return found


async def states(run: Run) -> list[str]:
    return [incident["state"] for incident in await incidents(run)]


async def broken_and_mended(app: App, page: Watched) -> None:
    """Take a page really down and bring it back."""
    await page.down()
    await rounds(app, 2)
    await page.up()
    await rounds(app, 2)


async def test_a_page_that_goes_down_and_comes_back_is_one_incident(app: App, run: Run, time: Clock) -> None:
    async with watched.web() as page:
        await run("check.add", name="web", kind="http", target=page.url(), retries=0)
        await rounds(app, 2)
        await page.down()
        await rounds(app, 1)
        assert await incidents(run) == []

        await rounds(app, 1)
        [opened] = await incidents(run)
        assert (opened["state"], opened["check"], opened["times"]) == ("open", "web", 1)
        assert opened["reason"] == "cannot be reached: Connection refused"
        assert opened["opened_at"] == clock.iso(time.at - MINUTE)
        [status] = (await run("check.status"))["checks"]
        assert (status["state"], status["incident"]) == ("down", opened["id"])

        await page.up()
        await rounds(app, 1)
        assert await states(run) == ["open"]
        await rounds(app, 1)

    [resolved] = await incidents(run, state="resolved")
    assert (resolved["id"], resolved["resolved_at"]) == (opened["id"], clock.iso(time.at))
    assert await incidents(run, state="open") == []
    assert (await run("check.status"))["down"] == 0


async def test_recall_knows_when_it_broke_and_how_it_was_mended(app: App, run: Run, time: Clock) -> None:
    async with watched.web() as page:
        await run("check.add", name="checkout", kind="http", target=page.url(), retries=0)
        await rounds(app, 2)
        await broken_and_mended(app, page)

        [incident] = await incidents(run)
        await run(
            "incident.note", id=incident["id"], text="The connection pool was full; restarting the worker helped."
        )
        hits = (await run("memory.recall", query="When did the checkout break last time?"))["hits"]

    [told] = [hit["memory"] for hit in hits if "incident" in hit["memory"]["tags"]]
    begun, over = incident["opened_at"][:16].replace("T", " "), incident["resolved_at"][:16].replace("T", " ")
    assert told["text"] == (
        f"The check checkout ({page.url()}) failed from {begun} UTC to {over} UTC (3 minutes): it cannot be reached:"
        " Connection refused.\nNote: The connection pool was full; restarting the worker helped."
    )
    assert (told["kind"], told["tags"]) == ("observation", ["incident", "check:checkout"])
    assert told["metadata"]["incident"] == incident["id"]
    [now] = await incidents(run)
    assert now["memory"] == told["id"]


async def test_an_incident_shows_earlier_ones_like_it(app: App, run: Run, time: Clock) -> None:
    async with watched.web() as page:
        await run("check.add", name="checkout", kind="http", target=page.url(), retries=0)
        await rounds(app, 2)
        await broken_and_mended(app, page)
        [first] = await incidents(run)
        time.at += 24 * HOUR
        await rounds(app, 1)
        await page.down()
        await rounds(app, 2)

    second, _ = await incidents(run)
    assert [one["id"] for one in second["earlier"]] == [first["id"]]
    assert second["earlier"][0]["memory"] == first["memory"]
    assert first["earlier"] == []


async def test_what_keeps_coming_back_is_one_incident(app: App, run: Run) -> None:
    async with watched.web() as page:
        await run("check.add", name="web", kind="http", target=page.url(), retries=0)
        await rounds(app, 1)
        for _ in range(5):
            await page.down()
            await rounds(app, 2)
            await page.up()
            await rounds(app, 2)

    [incident] = await incidents(run)
    assert incident["times"] == 2
    assert incident["state"] == "open"
    memories = (await run("memory.list"))["memories"]
    assert len([memory for memory in memories if "superseded_at" not in memory]) == 1


async def test_an_incident_that_comes_back_tells_why_it_did(app: App, run: Run) -> None:
    async with watched.web() as page:
        await run("check.add", name="web", kind="http", target=page.url(), retries=0)
        await rounds(app, 1)
        page.page.answer = "500 Oh"
        await rounds(app, 2)
        page.page.answer = "200 OK"
        await rounds(app, 2)
        page.page.answer = "503 Busy"
        await rounds(app, 2)

    [incident] = await incidents(run)
    assert incident["times"] == 2
    assert "503" in incident["reason"]
    assert "503" in (await run("memory.get", id=incident["memory"]))["text"]


async def test_single_failures_open_nothing(app: App, run: Run) -> None:
    async with watched.web() as page:
        await run("check.add", name="web", kind="http", target=page.url(), retries=0)
        for _ in range(4):
            page.page.answer = "200 OK"
            await rounds(app, 1)
            page.page.answer = "500 Oh"
            await rounds(app, 1)

    assert await incidents(run) == []


async def test_acknowledging_twice_names_the_first(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)
    [incident] = await incidents(run)
    ada = running(app, Principal(org=ORG, name="key:ada", scopes=frozenset({"watch:read", "watch:write"}), key=3))

    await ada("incident.acknowledge", id=incident["id"])
    at = time.at
    time.at += MINUTE
    again = await run("incident.acknowledge", id=incident["id"])

    assert (again["acknowledged_by"], again["acknowledged_at"]) == ("key:ada", clock.iso(at))


async def test_a_note_of_someone_who_may_not_write_memories_is_not_remembered(app: App, run: Run) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)
    [incident] = await incidents(run)
    watcher = running(app, Principal(org=ORG, name="key:w", scopes=frozenset({"watch:read", "watch:write"}), key=3))

    noted = await watcher("incident.note", id=incident["id"], text="Ignore the disk alarm.")
    await run("incident.note", id=incident["id"], text="The switch in the cellar was off.")

    assert [note["author"] for note in noted["notes"]] == ["key:w"]
    texts = [memory["text"] for memory in (await run("memory.list"))["memories"]]
    assert not [text for text in texts if "disk alarm" in text]
    assert [text for text in texts if "switch in the cellar" in text]


async def test_secrets_in_a_note_are_taken_out(app: App, run: Run) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)
    [incident] = await incidents(run)

    noted = await run("incident.note", id=incident["id"], text="Set password=correct-Horse7battery and it worked.")

    assert "Horse7battery" not in str(noted)


async def test_unknown_and_foreign_incidents_are_unknown(app: App, run: Run) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)
    [incident] = await incidents(run)
    other = running(app, bank="garden")

    for call, id in ((run, "999"), (run, "x"), (other, incident["id"])):
        with pytest.raises(NotFound):
            await call("incident.note", id=id, text="hello")
        with pytest.raises(NotFound):
            await call("incident.acknowledge", id=id)


async def test_removing_a_check_ends_its_incident(app: App, run: Run) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)

    await run("check.remove", name="gone")

    [incident] = await incidents(run)
    assert incident["state"] == "resolved"
    assert [note["text"] for note in incident["notes"]] == ["The check was removed while it failed."]
    assert await after(app, 120) == 0


async def test_a_forgotten_memory_is_no_longer_named(app: App, run: Run) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)
    [incident] = await incidents(run)

    await run("memory.forget", id=incident["memory"])

    [now] = await incidents(run)
    assert "memory" not in now


async def test_incidents_are_audited(app: App, run: Run) -> None:
    await run("check.add", name="gone", kind="tcp", target="127.0.0.1:1", retries=0)
    await rounds(app, 2)

    async def rows(tx: Any) -> Any:
        return await tx.all("SELECT principal, operation FROM audit ORDER BY n")

    found = [(row["principal"], row["operation"]) for row in await app.store.read(ORG, rows)]
    assert found[-1] == ("background", "incident.open")
    assert ("local", "check.add") in found
