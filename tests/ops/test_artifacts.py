"""Artifacts: versions, identifiers, searching what they say, and that nothing of a deleted one stays; both stores."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.errors import BadInput, Conflict, Forbidden, NotFound
from keepsake.core.principal import local_owner
from keepsake.store.engine import Tx
from tests.conftest import Database
from tests.ops.test_redaction import contents

pytestmark = pytest.mark.anyio
PLAN = "# Plan\n\nThe harbour cranes are moved in April.\n\nThe vault opens with seven left turns."


async def run(app: App, operation: str, /, bank: str | None = None, **given: Any) -> dict[str, Any]:
    """Call an operation as the local owner, in the default bank or another."""
    arguments = {**given, **({"bank": bank} if bank else {})}
    made = await dispatch.call(app.ctx(local_owner()), operation, arguments)
    return made.model_dump(mode="json", exclude_none=True)


async def made(app: App, **given: Any) -> dict[str, Any]:
    return await run(app, "artifact.create", **{"title": "Plan of the move", "content": PLAN, **given})


async def found(app: App, query: str, **given: Any) -> list[str]:
    hits = (await run(app, "memory.recall", query=query, **given))["hits"]
    return [hit["memory"]["text"] for hit in hits]


async def left(app: App) -> dict[str, int]:
    """Rows that tell of artifacts or of their text."""

    async def body(tx: Tx) -> dict[str, int]:
        tables = "artifacts artifact_versions sources memories search_docs vectors memory_entities".split()
        counts = {table: await tx.one(f"SELECT count(*) AS held FROM {table} WHERE org = 1") for table in tables}
        counts["terms"] = await tx.one("SELECT count(*) AS held FROM terms WHERE org = 1 AND term <> ''")
        return {table: int(row["held"]) for table, row in counts.items() if row and row["held"]}

    return await app.store.read(1, body)


async def test_an_artifact_has_a_readable_name_of_its_own(app: App) -> None:
    first, second = await made(app), await made(app)
    given = await made(app, identifier="move.v2", title="2026")
    numbered = await made(app, title="2026")

    assert {**first, "artifact_id": "1"} == {
        "artifact_id": "1",
        "identifier": "plan-of-the-move",
        "version": 1,
        "status": "created",
    }
    assert [one["identifier"] for one in (second, given, numbered)] == [
        "plan-of-the-move-2",
        "move.v2",
        "artifact-2026",
    ]
    with pytest.raises(Conflict, match=r"already. Use another identifier"):
        await made(app, identifier="move.v2")
    assert (await run(app, "artifact.get", id="move.v2"))["artifact_id"] == given["artifact_id"]


async def test_every_version_is_kept_and_the_same_again_makes_none(app: App) -> None:
    id = (await made(app))["artifact_id"]
    changed = PLAN.replace("April", "May")

    second = await run(app, "artifact.update", id=id, content=changed, note="Later", expected_version=1)
    again = await run(app, "artifact.update", id=id, content=changed)
    with pytest.raises(Conflict, match="at version 2 now, not 1"):
        await run(app, "artifact.update", id=id, content="mine", expected_version=1)

    assert (second["version"], second["status"], again["version"], again["status"]) == (2, "updated", 2, "unchanged")
    now, before = await run(app, "artifact.get", id=id), await run(app, "artifact.get", id=id, version=1)
    assert (now["content"], now["shown_version"], before["content"], before["shown_version"]) == (changed, 2, PLAN, 1)
    assert [(one["version"], one["note"], one["size"]) for one in now["versions"]] == [
        (2, "Later", len(changed)),
        (1, "", len(PLAN)),
    ]
    told = await run(app, "artifact.diff", id=id)
    assert (told["from_version"], told["to_version"], told["added"], told["removed"]) == (1, 2, 1, 1)
    assert "-The harbour cranes are moved in April.\n+The harbour cranes are moved in May." in told["diff"]
    with pytest.raises(NotFound, match="no version 9; its current one is 2"):
        await run(app, "artifact.get", id=id, version=9)


async def test_of_writers_at_once_that_expect_a_version_one_wins(app: App) -> None:
    id = (await made(app))["artifact_id"]

    tries = [run(app, "artifact.update", id=id, content=f"Draft {n}.", expected_version=1) for n in range(6)]
    ends = await asyncio.gather(*tries, return_exceptions=True)

    assert [type(end) for end in ends].count(Conflict) == 5
    known = await run(app, "artifact.get", id=id)
    won = next(n for n, end in enumerate(ends) if isinstance(end, dict))
    assert (known["version"], known["content"]) == (2, f"Draft {won}.")


async def test_what_it_says_is_found_and_earlier_versions_as_of_their_time(app: App) -> None:
    moment = [app.now()]
    ticking = replace(app, now=lambda: moment[0])
    made_one = await run(ticking, "artifact.create", title="Move", content="The harbour cranes are moved in April.")
    moment[0] += 60_000_000
    await run(ticking, "artifact.update", id="move", content="The harbour cranes are moved in September.")

    now = (await run(ticking, "memory.recall", query="When are the harbour cranes moved?"))["hits"]
    then = await found(ticking, "When are the harbour cranes moved?", as_of=clock.iso(moment[0] - 30_000_000))

    assert [hit["memory"]["text"] for hit in now] == ["The harbour cranes are moved in September."]
    assert then == ["The harbour cranes are moved in April."]
    memory = now[0]["memory"]
    assert (memory["kind"], memory["document"], memory["title"]) == ("artifact", made_one["artifact_id"], "Move")
    assert memory["metadata"]["version"] == 2


async def test_a_long_one_is_found_by_its_parts_and_an_update_keeps_those_that_stay(app: App) -> None:
    parts = [f"## Part {n}\n\n" + f"Pier {n} carries crane number {n}. " * 30 for n in range(12)]
    id = (await made(app, content="\n\n".join(parts)))["artifact_id"]
    rows = "SELECT id, text FROM memories WHERE superseded_at IS NULL"
    before = {row["text"]: row["id"] for row in await app.store.read(1, lambda tx: tx.all(rows))}

    twice = await run(app, "artifact.update", id=id, content="\n\n".join([*parts, parts[0]]))
    parts[3] = "## Part 3\n\nThe pier was torn down after the storm."
    await run(app, "artifact.update", id=id, content="New preface.\n\n" + "\n\n".join(parts))

    after = {row["text"]: row["id"] for row in await app.store.read(1, lambda tx: tx.all(rows))}
    assert (len(before), twice["version"]) == (12, 2)
    assert len([text for text, id in after.items() if before.get(text) == id]) == 11
    assert (await found(app, "Which pier was torn down after the storm?"))[0].startswith(
        "## Part 3\n\nThe pier was torn"
    )
    whole = (await run(app, "artifact.get", id=id))["content"]
    spans = await app.store.read(1, lambda tx: tx.all("SELECT text, span FROM memories WHERE superseded_at IS NULL"))
    for row in spans:
        start, end = map(int, row["span"].split(":"))
        assert whole[start:end] == row["text"]


async def test_they_are_listed_by_chat_and_type_page_by_page(app: App) -> None:
    for n in range(5):
        await made(
            app, title=f"Note {n}", chat_id="c1" if n % 2 else None, artifact_type="HTML" if n > 2 else "markdown"
        )

    whole = await run(app, "artifact.list", limit=2, offset=1)
    of_chat = await run(app, "artifact.list", chat_id="c1")
    of_type = await run(app, "artifact.list", artifact_type="html")

    assert ([one["title"] for one in whole["artifacts"]], whole["total"]) == (["Note 3", "Note 2"], 5)
    assert [one["title"] for one in of_chat["artifacts"]] == ["Note 3", "Note 1"]
    assert [(one["title"], one["artifact_type"]) for one in of_type["artifacts"]] == [
        ("Note 4", "html"),
        ("Note 3", "html"),
    ]


async def test_content_over_a_mebibyte_is_kept_but_not_handed_out(app: App) -> None:
    large = f"{'crane ' * 1_000}\n" * 180
    id = (await made(app, content=large + "The gangway is painted turquoise."))["artifact_id"]

    got = await run(app, "artifact.get", id=id)

    assert ("content" in got, got["content_truncated"], got["size"]) == (False, True, len(large) + 33)
    with pytest.raises(BadInput, match="more than 1 MiB"):
        await run(app, "artifact.diff", id=id)
    with pytest.raises(BadInput, match="at most 8388608 characters"):
        await made(app, content="x" * (8 * 1024 * 1024 + 1))


@pytest.mark.parametrize("way", ["artifact.delete", "memory.forget", "memory.clear"])
async def test_nothing_stays_of_one_that_is_gone(app: App, database: Database, way: str) -> None:
    id = (await made(app))["artifact_id"]
    await run(app, "artifact.update", id=id, content=PLAN.replace("April", "May"), note="The turquoise note")
    hit = (await run(app, "memory.recall", query="How does the vault open?"))["hits"][0]["memory"]

    given: dict[str, Any] = {"artifact.delete": {"id": id}, "memory.forget": {"id": hit["id"]}}.get(way, {})
    receipt = await run(app, way, **given)

    assert receipt["memories"] == 2
    assert await left(app) == {}
    if database.engine == "postgres":
        assert b"seven left turns" not in await contents(database)
    with pytest.raises(NotFound):
        await run(app, "artifact.get", id=id)
    if way != "memory.clear":
        with pytest.raises(Conflict, match="does not come back by itself"):
            await made(app, content=PLAN.replace("April", "May"))


async def test_a_forgotten_part_is_blank_in_every_version_and_does_not_come_back(app: App) -> None:
    secret = "The vault opens with seven left turns."
    parts = [f"## Part {n}\n\n" + f"Pier {n} carries crane number {n}. " * 40 for n in range(3)]
    text = "\n\n".join([*parts, f"## Vault\n\n{secret}"])
    id = (await made(app, content=text))["artifact_id"]
    await run(app, "artifact.update", id=id, content=f"{text} It was oiled.")
    hit = (await run(app, "memory.recall", query="How does the vault open?"))["hits"][0]["memory"]

    await run(app, "memory.forget", id=hit["id"])
    await run(app, "artifact.update", id=id, content=f"{text}\n\nThe end.")

    kept = [(await run(app, "artifact.get", id=id, version=n))["content"] for n in (1, 2, 3)]
    rows = await app.store.read(1, lambda tx: tx.all("SELECT text FROM memories"))
    assert [secret in one for one in kept] == [False, False, False]
    assert all("Pier 2 carries crane number 2." in one for one in kept)
    assert secret not in str(rows)


async def test_a_bank_goes_with_its_artifacts(app: App) -> None:
    await run(app, "bank.create", name="yard")
    await made(app, bank="yard")

    await run(app, "bank.delete", bank="yard")

    assert await left(app) == {}


async def test_secrets_are_taken_out_before_and_after(app: App) -> None:
    token = "ghp_" + "a1B2" * 9
    made_one = await made(app, content=f"Log in with {token} at the yard.", note=f"uses {token}")
    got = await run(app, "artifact.get", id=made_one["artifact_id"])
    source = "UPDATE sources SET text = 'Log in with ' || :token || ' at the yard.' WHERE kind = 'artifact'"
    await app.store.write(1, lambda tx: tx.run(source, token=token))

    scanned = await run(app, "memory.scan")
    await run(app, "memory.redact")

    assert made_one["redacted"] == ["github-token"]
    assert token not in str(got)
    assert (scanned["total"], scanned["findings"][0]["id"]) == (1, made_one["artifact_id"])
    assert token not in str(await run(app, "artifact.get", id=made_one["artifact_id"]))


async def test_another_banks_artifact_is_unknown_and_readers_write_nothing(app: App) -> None:
    await run(app, "bank.create", name="yard")
    id = (await made(app, bank="yard"))["artifact_id"]
    reader = replace(local_owner(), scopes=frozenset({"memory:read"}), may_destroy=False)

    with pytest.raises(NotFound, match="No artifact"):
        await run(app, "artifact.get", id=id)
    for operation, given in (("artifact.create", {"title": "a", "content": "b"}), ("artifact.delete", {"id": id})):
        with pytest.raises(Forbidden):
            await dispatch.call(app.ctx(reader), operation, {**given, "bank": "yard"})
    for bad in ({"identifier": "12"}, {"identifier": "a b"}, {"artifact_type": "a b"}, {"content": " "}, {"title": ""}):
        with pytest.raises(BadInput):
            await made(app, **bad)
    assert (await run(app, "artifact.list"))["total"] == 0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_long_one_does_not_crowd_everything_else_out_of_the_context(app: App) -> None:
    await run(app, "memory.retain", content="Mara leads the harbour team.")
    parts = [f"## Part {n}\n\n" + f"Pier {n} carries crane number {n}. " * 9 for n in range(200)]
    await made(app, content="\n\n".join(parts))

    told = await run(app, "memory.context", token_budget=1_000)

    assert "Mara leads the harbour team." in str(told)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_proposed_update_is_shown_and_holds_only_for_the_version_that_was_seen(app: App) -> None:
    id = (await made(app))["artifact_id"]
    wanted: dict[str, Any] = {
        "operation": "artifact.update",
        "arguments": {"id": id, "content": "Nothing moves."},
        "reason": "Storm",
    }

    proposed = await run(app, "proposal.create", **wanted)
    await run(app, "artifact.update", id=id, content="The cranes stay.")

    assert "- content: # Plan" in proposed["diff"] and "+ content: Nothing moves." in proposed["diff"]
    with pytest.raises(Conflict):
        await run(app, "proposal.apply", token=proposed["token"])
    assert (await run(app, "artifact.get", id=id))["content"] == "The cranes stay."
