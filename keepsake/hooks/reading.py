"""A client's JSON becomes envelopes: what all readers share."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keepsake.core import clock, marks
from keepsake.core.clock import MINUTE, SECOND
from keepsake.core.envelope import Envelope, Moment, Tool
from keepsake.hooks import cleaning

Json = Mapping[str, object]
#: Where a tool's input names the text that it writes, and the one that it replaces.
WRITTEN = ("new_string", "newText", "new_str", "content", "contents", "file_text", "text", "code")
REPLACED = ("old_string", "oldText", "old_str")
SESSIONS = ("session_id", "sessionId", "sessionID", "conversation_id", "conversationId", "trajectory_id", "taskId")
PATHS = ("file_path", "filePath", "path", "notebook_path", "absolute_path", "absolutePath", "file", "filename", "uri")
#: A clock that is off by more than this is not believed.
FAR = 24 * 60 * MINUTE
#: git names files of this size at most; larger ones have no place in a work tree.
LARGEST = 1_000_000
MOST_FILES = 20
#: Characters of a tool's input that are kept.
MOST_INPUT = 50_000


@dataclass(frozen=True, slots=True)
class Raw:
    """One event as it came, beside what the command line says of it."""

    client: str
    given: Json
    #: The client's own word for the event.
    name: str
    moment: Moment
    now: int
    #: Where the client works, if it does not tell; empty when nobody knows.
    here: str = ""

    def text(self, *names: str) -> str:
        """The first of these fields that holds a text, as it came."""
        for name in names:
            found = self.given.get(name)
            if isinstance(found, str) and found:
                return found
        return ""


Reader = Callable[[Raw], Envelope | None]


def envelope(raw: Raw, text: str = "", tool: Tool | None = None, key: str = "", reason: str = "") -> Envelope:
    """An envelope with what every event tells: who, where, when."""
    session, is_derived = _session(raw)
    at = _at(raw)
    said = cleaning.text(text, cleaning.SAID)
    own = key or _fingerprint(raw, said, tool)
    extra = {"agent": cleaning.text(raw.text("agent_type", "agent_id"), 100)} if raw.text("agent_id") else {}
    if is_derived:
        extra["derived"] = "1"
    return Envelope(
        client=raw.client,
        session=session,
        event=raw.moment,
        at=at,
        cwd=cleaning.plain(_cwd(raw))[:4_000],
        key=cleaning.plain(f"{raw.moment}:{own}")[:200],
        text=said,
        tool=tool,
        reason=cleaning.text(reason or raw.text("source", "reason", "trigger", "status"), 100),
        extra=extra,
    )


def _session(raw: Raw) -> tuple[str, bool]:
    given = raw.text(
        "session_id", "sessionId", "sessionID", "conversation_id", "conversationId", "trajectory_id", "taskId"
    )
    if given:
        return cleaning.plain(given)[:200], False
    # Kiro's older format tells none: the folder and the terminal stand for it, and the job sees where one begins.
    terminal = os.getsid(0) if hasattr(os, "getsid") else os.getppid()
    return f"{raw.client}-{short(_cwd(raw), str(terminal))}", True


def _cwd(raw: Raw) -> str:
    if cwd := raw.text("cwd", "directory"):
        return cwd
    for name in ("workspace_roots", "workspaceRoots", "workspacePaths"):
        roots = raw.given.get(name)
        if isinstance(roots, list) and roots and isinstance(roots[0], str):
            return roots[0]
    info = raw.given.get("tool_info")
    if isinstance(info, dict) and isinstance(info.get("cwd"), str) and info["cwd"]:
        return str(info["cwd"])
    return raw.here


def _at(raw: Raw) -> int:
    """When it happened: the client's own time where it is believable."""
    told = raw.given.get("timestamp")
    at = 0
    if isinstance(told, int | float) and not isinstance(told, bool) and 0 < told < 1e14:
        at = int(told * 1_000) if told > 1e11 else int(told * SECOND)
    elif isinstance(told, str):
        try:
            at = int(told) * 1_000 if told.isdecimal() and len(told) < 15 else clock.parse(told)
        except ValueError:
            at = 0
    return at if abs(at - raw.now) < FAR else raw.now


def _fingerprint(raw: Raw, said: str, tool: Tool | None) -> str:
    """What tells an event without an id from others: what it says, and its minute."""
    if tool is not None and (id := raw.text("tool_use_id", "toolUseId", "tool_call_id", "callID")):
        return short(id)
    if raw.moment in {"prompt", "turn-end"} and (id := raw.text("prompt_id", "turn_id", "generation_id", "messageID")):
        return short(id, said)
    used = [tool.name, json.dumps(tool.input, sort_keys=True), tool.response] if tool else []
    return short(said, raw.text("source", "reason", "trigger"), *used, str(_at(raw) // MINUTE))


def short(*parts: str) -> str:
    """A short hash of some texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:24]


def used(name: str, given: object, response: object, is_ok: bool = True) -> Tool | None:
    """A tool's use, cleaned and cut, with what is counted before anything is cut; None for tools of our own."""
    if isinstance(given, str):
        given = _parsed(given)
    counted = given if isinstance(given, dict) else {}
    if not name or marks.is_ours(name) or _runs_us(counted):
        return None
    fields = _small(cleaning.fields(counted)) | _lines(counted)
    told, failed = _response(response)
    return Tool(cleaning.text(name, 200), fields, cleaning.text(told, tail=cleaning.TAIL), is_ok and not failed)


def _small(fields: dict[str, object]) -> dict[str, object]:
    """The fields of a tool, or the start of its plain ones where they are too much together."""
    if len(json.dumps(fields, ensure_ascii=False)) <= MOST_INPUT:
        return fields
    return {key: part[:300] if isinstance(part, str) else part for key, part in fields.items() if _is_plain(part)}


def _is_plain(part: object) -> bool:
    return part is None or isinstance(part, str | int | float)


def _runs_us(given: Mapping[str, object]) -> bool:
    command = str(given.get("command") or "").split(maxsplit=1)
    server = str(given.get("server_name") or given.get("server") or "")
    return (bool(command) and os.path.basename(command[0]) == "keepsake") or (bool(server) and marks.is_ours(server))


def _parsed(told: str) -> object:
    """JSON that came in a text."""
    try:
        return json.loads(told)
    except (ValueError, RecursionError):
        return {"input": told}


def _lines(given: Mapping[str, object]) -> dict[str, object]:
    """How many lines a tool wrote, and in the place of how many."""
    edits = given.get("edits")
    parts = [part for part in edits if isinstance(part, dict)] if isinstance(edits, list) else [given]
    new = sum(_count(part, WRITTEN) for part in parts)
    old = sum(_count(part, REPLACED) for part in parts)
    patch = given.get("patch") or given.get("patchText") or given.get("diff") or given.get("input")
    if isinstance(patch, str) and "*** " in patch[:200]:
        new = sum(line.startswith("+") and not line.startswith("+++") for line in patch.splitlines())
        old = sum(line.startswith("-") and not line.startswith("---") for line in patch.splitlines())
    return {name: n for name, n in (("new_lines", new), ("old_lines", old)) if n}


def _count(part: Mapping[str, object], names: tuple[str, ...]) -> int:
    told = next((part[name] for name in names if isinstance(part.get(name), str)), "")
    return len(str(told).splitlines())


def _response(response: object) -> tuple[str, bool]:
    """What a tool answered as text, and whether it says that it failed."""
    if isinstance(response, str):
        return response, False
    if isinstance(response, list):
        return "\n".join(_response(part)[0] for part in response[:50]), False
    if not isinstance(response, dict):
        return "" if response is None else str(response), False
    code = next((response[name] for name in ("exit_code", "exitCode", "returncode", "code") if name in response), 0)
    failed = response.get("success") is False or bool(response.get("is_error") or response.get("error"))
    failed = failed or response.get("interrupted") is True or (isinstance(code, int) and code != 0)
    texts: list[str] = []
    for name in ("stdout", "output", "llmContent", "text", "content", "result", "stderr", "error", "message"):
        if response.get(name):
            texts.append(_response(response[name])[0])
    return "\n".join(texts) if texts else json.dumps(response, ensure_ascii=False)[:100_000], failed


def paths(given: Mapping[str, object]) -> list[str]:
    """The files that a tool's input names."""
    found = [str(given[name]) for name in PATHS if isinstance(given.get(name), str) and given[name]]
    more = given.get("paths") or given.get("files") or given.get("file_paths")
    for part in more if isinstance(more, list) else []:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, dict):
            found += paths(part)
    for name in ("patch", "patchText", "input", "command"):
        told = given.get(name)
        if isinstance(told, str) and "*** " in told[:200]:
            found += [line.split(": ", 1)[1].strip() for line in told.splitlines() if _is_file_line(line)]
    return list(dict.fromkeys(path.removeprefix("file://") for path in found if len(path) < 4_000))[:MOST_FILES]


def _is_file_line(line: str) -> bool:
    return line.startswith(("*** Update File: ", "*** Add File: ", "*** Delete File: "))


def blobs(cwd: str, files: tuple[str, ...]) -> dict[str, str]:
    """git's names for what a few files hold now, so that a later change can be noticed."""
    found = {f"blob:{path}": blob(cwd, path) for path in files[:4]}
    return {path: name for path, name in found.items() if name}


def blob(folder: str, path: str) -> str:
    """git's name for what a file holds; empty for one that is not there, or too large."""
    whole = os.path.join(folder, path)
    try:
        # A pipe under this name would never end.
        if not os.path.isfile(whole):
            return ""
        with open(whole, "rb") as file:
            held = file.read(LARGEST + 1)
    except (OSError, ValueError):
        return ""
    if len(held) > LARGEST:
        return ""
    return hashlib.sha1(b"blob %d\0" % len(held) + held, usedforsecurity=False).hexdigest()
