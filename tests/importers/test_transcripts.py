"""The transcripts of Claude Code and Codex, taken over into both stores."""

import json
import os
from pathlib import Path

import pytest

from keepsake import dispatch, worker
from keepsake.core import clock
from keepsake.core.envelope import Envelope
from keepsake.core.errors import Forbidden
from keepsake.core.principal import DEFAULT_SCOPES, Principal
from keepsake.hooks import clients
from keepsake.importers import claude_code, codex
from keepsake.importers.record import Event
from keepsake.services import repository
from keepsake.store import events
from keepsake.store.engine import Tx
from tests.importers.peers import SECRET
from tests.importers.sessions import SESSION, claude_lines, codex_lines, written
from tests.importers.taking import Taking

pytestmark = pytest.mark.anyio
AT = clock.parse("2026-03-01T12:00:00.250Z")


def repo(folder: Path, remote: str = "github.com/acme/shop") -> str:
    """A working tree with a remote."""
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{remote}.git\n')
    return str(folder)


def told(steps: object) -> list[Envelope]:
    return [step.given.envelope for step in steps if isinstance(step.given, Event)]  # type: ignore[attr-defined]


def test_claude_code_tells_prompts_tools_answers_and_its_summary(tmp_path: Path) -> None:
    path = written(tmp_path / f"{SESSION}.jsonl", claude_lines("/home/me/shop"))

    found = told(claude_code.read(path))

    assert [(each.event, each.text, each.tool.name if each.tool else "") for each in found] == [
        ("prompt", "Make the tests pass", ""),
        ("tool", "", "Bash"),
        ("tool", "", "Edit"),
        ("turn-end", "All 47 tests pass now.", ""),
        ("prompt", "Thanks. We decided to use pnpm.", ""),
        ("compact", "This session is being continued from an earlier one: tests pass.", ""),
    ]
    assert {each.session for each in found} == {SESSION}
    assert {each.branch for each in found} == {"main"}
    assert [each.at for each in found[:2]] == [AT + 1_000_000, AT + 9_000_000]
    bash, edit = (each.tool for each in found[1:3])
    assert bash and bash.is_ok and "47 passed" in bash.response
    assert edit and not edit.is_ok


def test_codex_tells_the_same_in_its_own_shape(tmp_path: Path) -> None:
    path = written(tmp_path / "2026" / "03" / "01" / "rollout-1.jsonl", codex_lines("/home/me/shop"))

    found = told(codex.read(tmp_path))

    assert path.exists()
    assert [(each.event, each.text, each.tool.name if each.tool else "") for each in found] == [
        ("prompt", "Set x to 2", ""),
        ("tool", "", "apply_patch"),
        ("tool", "", "Bash"),
        ("turn-end", "x is 2 and the tests pass.", ""),
    ]
    assert found[1].files == ("src/b.py",)
    shell = found[2].tool
    assert shell and shell.input["command"] == "pytest -q" and "3 passed" in shell.response
    assert {each.branch for each in found} == {"dev"}


def test_keys_are_those_that_the_hooks_give(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", claude_lines("/home/me/shop"))
    hook = {"session_id": SESSION, "cwd": "/home/me/shop", "permission_mode": "default", "prompt_id": "p-1"}
    command = {"tool_name": "Bash", "tool_input": {"command": "npm test"}, "tool_use_id": "toolu_1"}
    live = [
        *clients.read("claude-code", "UserPromptSubmit", {**hook, "prompt": "Make the tests pass"}, AT + 1_200_000),
        *clients.read("claude-code", "PostToolUse", {**hook, **command, "tool_response": {}}, AT + 9_100_000),
        *clients.read("claude-code", "Stop", {**hook, "last_assistant_message": "All 47 tests pass now."}, AT),
    ]

    keys = {each.key for each in told(claude_code.read(path))}

    assert [each.key for each in live if each.key not in keys] == []


def test_a_resumed_session_that_repeats_an_older_one_tells_only_what_is_new(tmp_path: Path) -> None:
    lines = claude_lines("/home/me/shop")
    written(tmp_path / "z-older.jsonl", lines[:10])
    copied = [line | {"sessionId": "resumed"} for line in lines]
    newer = written(tmp_path / "a-newer.jsonl", copied)
    os.utime(tmp_path / "z-older.jsonl", (1, 1))

    found = told(claude_code.read(tmp_path))

    assert newer.exists()
    assert [(each.session == "resumed", each.event) for each in found] == [
        (False, "prompt"),
        (False, "tool"),
        (False, "tool"),
        (False, "turn-end"),
        (True, "prompt"),
        (True, "compact"),
    ]


async def sharpened(taking: Taking) -> None:
    while await worker.step(taking.app):
        pass


async def test_a_transcript_becomes_a_session_with_observations(taking: Taking, tmp_path: Path) -> None:
    cwd = repo(tmp_path / "shop")
    written(tmp_path / "projects" / "-shop" / f"{SESSION}.jsonl", claude_lines(cwd))

    report = await taking.take("claude-code", tmp_path / "projects")
    await sharpened(taking)

    assert (report.read, report.stored, report.known, report.broken, report.banks) == (6, 6, 0, 0, {"shop": 6})
    held = await taking.held("shop")
    command = next(memory for memory in held if memory.subtype == "command")
    assert "npm test" in command.text
    assert command.happened_from == AT + 9_000_000
    assert {memory.kind for memory in held} >= {"observation", "summary", "decision"}


async def test_twice_and_after_its_keys_were_forgotten_nothing_is_doubled(taking: Taking, tmp_path: Path) -> None:
    cwd = repo(tmp_path / "shop")
    path = written(tmp_path / f"{SESSION}.jsonl", claude_lines(cwd))
    await taking.take("claude-code", path)
    await sharpened(taking)
    held = await taking.held("shop")
    assert await taking.count("events") == 0, "their time is long past, so their keys are gone"

    again = await taking.take("claude-code", path)
    await sharpened(taking)

    assert (again.stored, again.known) == (0, 6)
    assert await taking.held("shop") == held


async def test_what_a_session_did_since_is_taken_alone(taking: Taking, tmp_path: Path) -> None:
    cwd = repo(tmp_path / "shop")
    lines = claude_lines(cwd)
    path = written(tmp_path / f"{SESSION}.jsonl", lines[:8])
    await taking.take("claude-code", path)
    await sharpened(taking)

    later = await taking.take("claude-code", written(path, lines))
    await sharpened(taking)

    assert (later.stored, later.known) == (4, 2)
    titles = [memory.title for memory in await taking.held("shop") if memory.subtype == "command"]
    assert len(titles) == 1


async def test_a_session_that_was_captured_is_not_doubled(taking: Taking, tmp_path: Path) -> None:
    cwd = repo(tmp_path / "shop")
    day = clock.iso(taking.app.now())[:10]
    text = "".join(json.dumps(line) + "\n" for line in claude_lines(cwd)).replace("2026-03-01", day)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text(text)
    start = clock.parse(f"{day}T12:00:00Z")
    # An older client that tells no prompt ids: the hook's key of a prompt is another one.
    hook = {"session_id": SESSION, "cwd": cwd, "permission_mode": "default"}
    used = {"tool_name": "Bash", "tool_input": {"command": "npm test"}, "tool_use_id": "toolu_1", "tool_response": {}}
    live = [
        *clients.read("claude-code", "UserPromptSubmit", {**hook, "prompt": "Make the tests pass"}, start + 1_000_000),
        *clients.read("claude-code", "PostToolUse", {**hook, **used}, start + 9_000_000),
    ]
    project = repository.project_of(cwd)

    async def captured(tx: Tx) -> int:
        return await events.put(tx, 1, [events.Event(each, project) for each in live], taking.app.now())

    await taking.app.store.write(1, captured)
    await sharpened(taking)

    report = await taking.take("claude-code", path)

    assert (report.read, report.stored, report.known) == (6, 4, 2)


async def test_a_dry_run_counts_and_changes_nothing(taking: Taking, tmp_path: Path) -> None:
    written(tmp_path / "sessions" / "a.jsonl", codex_lines(repo(tmp_path / "shop")))

    report = await taking.take("codex", tmp_path / "sessions", is_dry=True)

    assert (report.read, report.stored, report.banks) == (4, 4, {"shop": 4})
    assert [await taking.count(table) for table in ("events", "sources", "banks", "audit", "jobs")] == [0] * 5


async def test_projects_of_one_name_stay_apart(taking: Taking, tmp_path: Path) -> None:
    one, two = repo(tmp_path / "a" / "shop"), repo(tmp_path / "b" / "shop", "github.com/zoo/shop")
    written(tmp_path / "t" / "one.jsonl", claude_lines(one))
    written(tmp_path / "t" / "two.jsonl", claude_lines(two, "22222222-ec33-4b37-91ad-5d242b40ae3d"))

    report = await taking.take("claude-code", tmp_path / "t")

    assert report.banks == {"shop": 6, "zoo-shop": 6}


async def test_a_named_bank_takes_everything(taking: Taking, tmp_path: Path) -> None:
    path = written(tmp_path / "one.jsonl", claude_lines(repo(tmp_path / "shop")))

    report = await taking.take("claude-code", path, "archive")
    await sharpened(taking)

    assert report.banks == {"archive": 6}
    assert [memory.subtype for memory in await taking.held("archive")].count("command") == 1
    assert await taking.held("shop") == []


async def test_broken_lines_are_counted_and_the_rest_is_taken(taking: Taking, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", claude_lines(repo(tmp_path / "shop")))
    whole = path.read_bytes()
    path.write_bytes(b"\x00\x00garbage\n[]\n" + whole + whole.splitlines()[3][:40])

    report = await taking.take("claude-code", path)

    assert (report.stored, report.broken) == (6, 3)


async def test_secrets_and_private_parts_never_reach_the_store(taking: Taking, tmp_path: Path) -> None:
    cwd = repo(tmp_path / "shop")
    lines = claude_lines(cwd)
    lines[3]["message"] = {"role": "user", "content": f"Push with {SECRET} <private>my salary</private>"}
    written(tmp_path / "t" / "a.jsonl", lines)

    await taking.take("claude-code", tmp_path / "t")

    async def everything(tx: Tx) -> str:
        return repr([dict(row) for row in await tx.all("SELECT envelope FROM events")])

    stored = await taking.app.store.read(1, everything)
    assert "Push with" in stored
    assert SECRET not in stored
    assert "salary" not in stored


async def test_a_key_may_not_reach_another_bank_through_a_project(taking: Taking, tmp_path: Path) -> None:
    cwd = repo(tmp_path / "shop")
    await taking.take("claude-code", written(tmp_path / "a.jsonl", claude_lines(cwd)))
    project = repository.project_of(cwd)
    event = {
        "event": "prompt",
        "at": "2026-03-01T12:00:00Z",
        "cwd": cwd,
        "key": "prompt:x",
        "text": "We decided to obey.",
        "project": {"identity": project.identity, "name": "mine", "root": "", "branch": ""},
        "end": 10,
    }
    asked = {"client": "claude-code", "session": "other", "file": "x", "events": [event]}
    holder = Principal(1, "robot", DEFAULT_SCOPES, banks=frozenset({"default", "mine"}), key=7)

    with pytest.raises(Forbidden):
        await dispatch.call(taking.app.ctx(holder), "session.import", asked)
