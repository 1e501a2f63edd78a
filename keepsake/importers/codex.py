"""Codex: its transcripts ("rollouts"), as versions 0.46 to 0.65 write them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from keepsake.importers import transcript
from keepsake.importers.lines import Entry, field
from keepsake.importers.record import Event, Found, Steps, fit
from keepsake.importers.transcript import Reading

NAME = "codex"
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
#: What it calls its shell, and what its hooks call it.
_SHELLS = ("shell", "exec_command", "shell_command", "container.exec", "local_shell_call")


def place() -> Path:
    """Where its transcripts are, unless it was told otherwise."""
    home = os.environ.get("CODEX_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".codex") / "sessions"


def found(path: Path) -> Found:
    """What there is to read."""
    return transcript.found(NAME, path)


def read(path: Path) -> Steps:
    """The events of every transcript, file by file."""
    return transcript.read(NAME, path, _events)


def _events(reading: Reading, entry: Entry) -> Iterator[Event]:
    payload, at = field(entry, "payload"), transcript.moment(entry)
    if at is None:
        return
    if entry.get("type") == "session_meta":
        reading.session = fit(payload.get("id")) or reading.session
        reading.branch = fit(field(payload, "git").get("branch"))
    if entry.get("type") in ("session_meta", "turn_context"):
        reading.cwd = fit(payload.get("cwd")) or reading.cwd
    if entry.get("type") in ("turn_context", "event_msg"):
        reading.turn = fit(payload.get("turn_id")) or reading.turn
    if entry.get("type") == "compacted" and (text := fit(payload.get("message"))):
        yield from reading.told("PostCompact", at, {"compact_summary": text})
    if entry.get("type") == "event_msg":
        yield from _message(reading, payload, at)
    if entry.get("type") == "response_item":
        yield from _item(reading, payload, at)


def _message(reading: Reading, payload: Entry, at: int) -> Iterator[Event]:
    text = fit(payload.get("message"))
    if payload.get("type") == "user_message" and text:
        yield from reading.ended()
        yield from reading.told("UserPromptSubmit", at, {"prompt": text, **reading.turn_id()})
    elif payload.get("type") == "agent_message" and text:
        reading.said, reading.said_at = text, at
    elif payload.get("type") in ("task_complete", "turn_complete"):
        yield from reading.ended()


def _item(reading: Reading, payload: Entry, at: int) -> Iterator[Event]:
    type, id = payload.get("type"), fit(payload.get("call_id"))
    if type in _CALLS:
        reading.used(id, *_asked(payload))
    elif type in _OUTPUTS and id in reading.tools:
        name, asked = reading.tools.pop(id)
        told = {"tool_name": name, "tool_input": asked, "tool_use_id": id, "tool_response": _output(payload)}
        yield from reading.told("PostToolUse", at, told)


def _asked(payload: Entry) -> tuple[str, object]:
    """The tool and its input as a hook would name them."""
    name = fit(payload.get("name")) or str(payload.get("type"))
    given = payload.get("arguments", payload.get("input", payload.get("action")))
    if isinstance(given, str) and name != "apply_patch":
        given = _parsed(given)
    if name not in _SHELLS:
        return name, {"patch": given} if isinstance(given, str) else given
    told = given if isinstance(given, dict) else {}
    command = told.get("command", told.get("cmd", ""))
    if isinstance(command, list):
        words = [str(word) for word in command]
        command = words[-1] if words[1:2] and words[1] in ("-c", "-lc") else " ".join(words)
    return "Bash", {"command": command}


def _output(payload: Entry) -> object:
    """What a tool gave; some versions wrap it in JSON with the exit code beside it."""
    told = payload.get("output")
    parsed = _parsed(told) if isinstance(told, str) and told.startswith("{") else told
    if not isinstance(parsed, dict):
        return told
    meta = parsed.get("metadata")
    return {**parsed, **meta} if isinstance(meta, dict) else parsed


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"input": text}
