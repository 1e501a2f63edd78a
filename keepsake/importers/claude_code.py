"""Claude Code: its transcripts, as versions 2.0 to 2.1 write them."""

import os
from collections.abc import Iterator
from pathlib import Path

from keepsake.importers import transcript
from keepsake.importers.lines import Entry, field
from keepsake.importers.record import Event, Found, Steps, fit
from keepsake.importers.transcript import Reading

NAME = "claude-code"
#: What the client writes in a person's name.
_NOT_SAID = ("<command-", "<local-command-", "<system-reminder>", "<task-notification>", "<bash-", "Caveat: ")
_INTERRUPTED = "[Request interrupted by user"


def place() -> Path:
    """Where its transcripts are, unless it was told otherwise."""
    home = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(home).expanduser() if home else Path.home() / ".claude") / "projects"


def found(path: Path) -> Found:
    """What there is to read."""
    return transcript.found(NAME, path)


def read(path: Path) -> Steps:
    """The events of every transcript, file by file."""
    return transcript.read(NAME, path, _events)


def _events(reading: Reading, entry: Entry) -> Iterator[Event]:
    at = transcript.moment(entry)
    if at is None or entry.get("type") not in ("user", "assistant") or reading.is_repeated(fit(entry.get("uuid"))):
        return
    reading.session = fit(entry.get("sessionId")) or reading.session
    reading.cwd = fit(entry.get("cwd")) or reading.cwd
    reading.branch = fit(entry.get("gitBranch")) or reading.branch
    content = field(entry, "message").get("content")
    if entry["type"] == "assistant":
        _assistant(reading, entry, content, at)
    elif entry["type"] == "user" and not entry.get("isMeta"):
        yield from _results(reading, entry, content, at)
        yield from _said(reading, entry, transcript.texts(content, "text"), at)


def _assistant(reading: Reading, entry: Entry, content: object, at: int) -> None:
    for part in transcript.blocks(content):
        if part.get("type") == "tool_use":
            reading.used(fit(part.get("id")), fit(part.get("name")), part.get("input"))
    # What a helper says is not the answer.
    if not entry.get("isSidechain") and (said := transcript.texts(content, "text")):
        reading.said, reading.said_at = said, at


def _results(reading: Reading, entry: Entry, content: object, at: int) -> Iterator[Event]:
    for part in transcript.blocks(content):
        if part.get("type") != "tool_result":
            continue
        id = fit(part.get("tool_use_id"))
        name, asked = reading.tools.pop(id, ("", None))
        is_error = part.get("is_error") is True
        # The second is what a hook is told; of several results in one line it belongs to none.
        whole = entry.get("toolUseResult")
        response = whole if isinstance(whole, dict) and not is_error else part.get("content")
        told = {"tool_name": name, "tool_input": asked, "tool_use_id": id, "tool_response": response, **_helper(entry)}
        if name:
            yield from reading.told("PostToolUseFailure" if is_error else "PostToolUse", at, told)


def _helper(entry: Entry) -> dict[str, object]:
    return {"agent_id": fit(entry.get("agentId")) or "helper"} if entry.get("isSidechain") else {}


def _said(reading: Reading, entry: Entry, text: str, at: int) -> Iterator[Event]:
    is_result = any(
        part.get("type") == "tool_result" for part in transcript.blocks(field(entry, "message").get("content"))
    )
    if not text or is_result or entry.get("isSidechain"):
        return
    if entry.get("isCompactSummary"):
        yield from reading.told("PostCompact", at, {"compact_summary": text})
        return
    if text.startswith(_NOT_SAID):
        return
    yield from reading.ended()
    if not text.startswith(_INTERRUPTED):
        reading.turn = fit(entry.get("promptId"))
        yield from reading.told("UserPromptSubmit", at, {"prompt": text, **reading.turn_id()})
