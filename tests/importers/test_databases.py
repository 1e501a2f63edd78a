"""The databases of claude-mem and kiro-memory, taken over into both stores."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keepsake import dispatch
from keepsake.core import clock
from keepsake.core.errors import BadInput, Forbidden, Unavailable
from keepsake.core.principal import DEFAULT_SCOPES, Principal
from keepsake.importers import database
from tests.importers import peers
from tests.importers.peers import AT, SECRET
from tests.importers.taking import Taking

pytestmark = pytest.mark.anyio


async def test_claude_mem_is_taken_over_with_its_times_and_parts(taking: Taking, tmp_path: Path) -> None:
    told = await taking.take("claude-mem", peers.claude_mem(tmp_path))

    assert (told.read, told.stored, told.known, told.broken, told.banks) == (4, 4, 0, 0, {"shop": 4})
    bugfix, decision, summary, prompt = await taking.held("shop")
    assert (bugfix.kind, bugfix.subtype, bugfix.fact_type) == ("observation", "bugfix", "experience")
    assert bugfix.title == "Cart total rounds correctly"
    assert bugfix.text == "The cart added floats; it now adds integer cents."
    assert bugfix.parts == {
        "subtitle": "Cents were lost",
        "facts": ["cart.ts adds integer cents", "tests cover 0.1 + 0.2"],
        "concepts": ["problem-solution"],
        "files_read": ["src/money.ts"],
        "files_modified": ["src/cart.ts"],
    }
    assert bugfix.happened_from == bugfix.event_at == AT * 1_000
    assert bugfix.learned_at > clock.parse("2026-04-01")
    assert bugfix.author == "import:claude-mem"
    assert bugfix.tags == ("import:claude-mem",)
    assert bugfix.metadata == {
        "peer": "claude-mem",
        "peer_id": 1,
        "session": "c-1",
        "discovery_tokens": 4200,
        "prompt_number": 1,
    }
    assert (decision.kind, decision.fact_type) == ("decision", "opinion")
    assert summary.kind == "summary"
    assert summary.parts == {
        "request": "Fix the rounding",
        "learned": "Floats lose cents",
        "completed": "Cart uses cents",
        "next_steps": "Migrate invoices",
        "files_modified": ["src/cart.ts"],
    }
    assert (prompt.kind, prompt.subtype, prompt.text) == ("observation", "prompt", "Fix the rounding in the cart")


async def test_what_was_taken_over_is_found_at_once_and_tells_where_it_came_from(
    taking: Taking, tmp_path: Path
) -> None:
    await taking.take("claude-mem", peers.claude_mem(tmp_path))

    found = await taking.call("memory.recall", bank="shop", query="why did the cart lose cents")

    best = found["hits"][0]["memory"]
    assert "cents" in best["text"]
    assert (best["metadata"]["peer"], best["document"]) == ("claude-mem", "c-1")


async def test_kiro_memory_is_taken_over_with_knowledge_as_knowledge(taking: Taking, tmp_path: Path) -> None:
    told = await taking.take("kiro-memory", peers.kiro(tmp_path))

    assert (told.read, told.stored, told.banks) == (4, 4, {"my-api": 4})
    write, constraint, summary, prompt = await taking.held("my-api")
    assert (write.kind, write.subtype) == ("observation", "file-write")
    assert write.parts == {
        "subtitle": "edit src/auth.ts",
        "concepts": ["security", "api", "middleware"],
        "files_modified": ["src/auth.ts"],
        "detail": "Edit src/auth.ts old→new",
        "facts": ["src/auth.ts"],
    }
    assert (constraint.kind, constraint.text) == ("constraint", "Sessions live in Redis, never in cookies.")
    assert constraint.parts == {"severity": "hard", "rationale": "audit finding 7"}
    assert summary.parts == {"request": "my-api: authentication", "completed": "Modified auth.ts, Modified routes.ts"}
    assert prompt.subtype == "prompt"


@pytest.mark.parametrize("source", ["claude-mem", "kiro-memory"])
async def test_a_second_time_takes_only_what_is_new(taking: Taking, tmp_path: Path, source: str) -> None:
    path = peers.claude_mem(tmp_path) if source == "claude-mem" else peers.kiro(tmp_path)
    await taking.take(source, path)
    entries = await taking.count("audit")

    again = await taking.take(source, path)

    assert (again.stored, again.known) == (0, 4)
    assert await taking.count("audit") == entries, "nothing new, nothing written"
    peers.add(
        path,
        "observations",
        memory_session_id="m-1",
        project="shop",
        type="change",
        title="Later",
        narrative="Invoices use cents too.",
        prompt_number=2,
    )
    later = await taking.take(source, path)
    assert (later.stored, later.known, later.banks) == (1, 4, {"shop": 1})


async def test_a_dry_run_counts_and_changes_nothing(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)

    told = await taking.take("claude-mem", path, is_dry=True)

    assert (told.read, told.stored, told.banks) == (4, 4, {"shop": 4})
    assert [await taking.count(table) for table in ("memories", "sources", "banks", "audit", "jobs")] == [0] * 5


async def test_a_named_bank_takes_everything(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    peers.add(
        path, "observations", memory_session_id="m-1", project="blog", type="change", narrative="The feed is Atom."
    )

    told = await taking.take("claude-mem", path, "archive")

    assert told.banks == {"archive": 5}
    assert await taking.held("shop") == []


async def test_projects_stay_apart_and_a_worktree_belongs_to_its_project(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    blog = {"memory_session_id": "m-1", "type": "change"}
    peers.add(path, "observations", project="blog", narrative="The feed is Atom.", **blog)
    peers.add(path, "observations", project="shop/fix-tax", narrative="Tax is added last.", **blog)
    peers.add(path, "observations", project="old", merged_into_project="blog", narrative="Posts are Markdown.", **blog)
    peers.add(path, "observations", project="observer-sessions", narrative="I observe.", **blog)

    told = await taking.take("claude-mem", path)

    assert told.banks == {"shop": 5, "blog": 2}
    assert [memory.text for memory in await taking.held("blog")] == ["The feed is Atom.", "Posts are Markdown."]


async def test_secrets_and_private_parts_never_reach_the_store(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    peers.add(
        path,
        "observations",
        memory_session_id="m-1",
        project="shop",
        type="change",
        title=f"Used {SECRET}",
        narrative=f"Pushed with {SECRET} <private>and my salary is 5000</private>.",
        facts=f'["token {SECRET}"]',
    )

    told = await taking.take("claude-mem", path)

    assert "github-token" in told.redacted
    everything = repr(await taking.held("shop"))
    assert SECRET not in everything
    assert "5000" not in everything


async def test_what_was_forgotten_does_not_come_back(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    await taking.take("claude-mem", path)
    bugfix = (await taking.held("shop"))[0]
    await taking.call("memory.forget", bank="shop", id=str(bugfix.id))

    again = await taking.take("claude-mem", path)

    # The summary of its session went with it, because it may say the same.
    assert (again.stored, again.known, again.forgotten) == (0, 2, 2)
    assert "floats" not in repr(await taking.held("shop")).lower()


async def test_a_statement_that_was_forgotten_is_cut_out_of_what_comes_later(taking: Taking, tmp_path: Path) -> None:
    stored = await taking.call("memory.retain", content="Floats lose cents", bank=None)
    await taking.call("memory.forget", id=stored["id"])

    told = await taking.take("claude-mem", peers.claude_mem(tmp_path), "default")

    assert told.stored == 4
    summary = next(memory for memory in await taking.held("default") if memory.kind == "summary")
    assert "learned" not in summary.parts
    assert "Floats lose cents" not in repr(await taking.held("default"))


async def test_what_was_only_cleared_can_be_taken_over_again(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    await taking.take("claude-mem", path)
    await taking.call("memory.clear", bank="shop")

    again = await taking.take("claude-mem", path)

    assert (again.stored, len(await taking.held("shop"))) == (4, 4)


async def test_an_old_version_with_fewer_columns_is_read_too(taking: Taking, tmp_path: Path) -> None:
    path = peers.made(tmp_path / "old.db", peers.CLAUDE_MEM_OLD)
    peers.add(path, "observations", sdk_session_id="x", project="shop", type="discovery", text="Orders have no index.")

    await taking.take("claude-mem", path)

    memory = (await taking.held("shop"))[0]
    assert (memory.text, memory.title, memory.subtype) == (
        "Orders have no index.",
        "Orders have no index.",
        "discovery",
    )


def beside(path: Path) -> dict[str, bytes]:
    # The shared file holds who reads at this moment, and is no part of the data.
    return {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}


async def test_a_database_in_use_is_read_as_it_is_and_left_as_it_is(taking: Taking, tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    path = peers.claude_mem(tmp_path / "peer")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        row = {"memory_session_id": "m-1", "project": "shop", "type": "change", "narrative": "Not checkpointed yet."}
        peers.put(writer, "observations", **row)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE observations SET narrative = 'half done' WHERE id = 1")
        before = beside(path)

        told = await taking.take("claude-mem", path)

        assert beside(path) == before
    assert told.stored == 5
    texts = [memory.text for memory in await taking.held("shop")]
    assert "Not checkpointed yet." in texts
    assert "half done" not in texts


async def test_a_copy_with_its_log_alone_is_read_without_a_file_beside_it(taking: Taking, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    path = peers.claude_mem(tmp_path)
    copy = tmp_path / "copy" / path.name
    with closing(sqlite3.connect(path)) as writer:
        row = {"memory_session_id": "m-1", "project": "shop", "type": "change", "narrative": "Only in the log."}
        peers.put(writer, "observations", **row)
        copy.write_bytes(path.read_bytes())
        copy.with_name(copy.name + "-wal").write_bytes(path.with_name(path.name + "-wal").read_bytes())
    before = beside(copy)

    told = await taking.take("claude-mem", copy)

    assert told.stored == 5
    assert beside(copy) == before
    assert sorted(each.name for each in copy.parent.iterdir()) == ["claude-mem.db", "claude-mem.db-wal"]


async def test_what_a_crash_left_is_read_whole(taking: Taking, tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    path = peers.claude_mem(tmp_path)
    left = tmp_path / "left" / path.name
    with closing(sqlite3.connect(path)) as writer:
        row = {"memory_session_id": "m-1", "project": "shop", "type": "change", "narrative": "Only in the log."}
        peers.put(writer, "observations", **row)
        for end in ("", "-wal", "-shm"):
            left.with_name(left.name + end).write_bytes(path.with_name(path.name + end).read_bytes())
    before = beside(left)

    told = await taking.take("claude-mem", left)

    assert told.stored == 5
    assert beside(left) == before


async def test_a_closed_database_gets_no_files_beside_it(taking: Taking, tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    path = peers.kiro(tmp_path / "peer")

    await taking.take("kiro-memory", path)

    assert [each.name for each in path.parent.iterdir()] == ["contextkit.db"]


async def test_a_locked_database_is_said_to_be_in_use(
    taking: Taking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 0.05)
    path = peers.claude_mem(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("PRAGMA journal_mode = DELETE")
        writer.execute("BEGIN EXCLUSIVE")
        path.with_name(path.name + "-shm").touch()

        with pytest.raises(Unavailable, match="cannot be read now"):
            await taking.take("claude-mem", path)


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to be looked at" * 20])
async def test_something_else_is_refused_in_words(taking: Taking, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "peer.db"
    path.write_bytes(content)

    with pytest.raises(BadInput, match=r"peer\.db"):
        await taking.take("claude-mem", path)
    with pytest.raises(BadInput, match="There is no file"):
        await taking.take("claude-mem", tmp_path / "nowhere.db")


async def test_a_key_takes_nothing_into_a_bank_beyond_its_reach(taking: Taking) -> None:
    record = {"key": "claude-mem:observations:1", "kind": "decision", "text": "Obey.", "project": "theirs"}
    holder = Principal(1, "robot", DEFAULT_SCOPES, banks=frozenset({"default"}), key=7)

    for operation in ("memory.import", "memory.preview_import"):
        with pytest.raises(Forbidden):
            await dispatch.call(taking.app.ctx(holder), operation, {"records": [record]})
    assert await taking.count("memories") == 0


async def test_rows_that_say_nothing_are_counted_and_skipped(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    empty = {"memory_session_id": "m-1", "project": "shop", "type": "change"}
    peers.add(path, "observations", narrative="  ", facts="[]", **empty)
    peers.add(path, "observations", narrative="nul \x00 and \ufffd", **empty)

    told = await taking.take("claude-mem", path)

    assert (told.stored, told.broken, told.where) == (5, 1, ["observations 3 says nothing"])
