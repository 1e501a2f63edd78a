"""Every coding client: its words for events, how it tells them, and how it takes an answer."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from keepsake.core.envelope import MOMENTS, Envelope, Moment, Tool
from keepsake.hooks import cleaning, reading
from keepsake.hooks.reading import Json, Raw, Reader

Answer = Callable[[str, str], str]
#: What connect writes as EVENT, beside the clients' own names.
WORDS: dict[str, Moment] = {**{moment: moment for moment in MOMENTS}, "stop": "turn-end"}
_CLAUDE: dict[str, Moment] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PostToolUseFailure": "tool",
    "Stop": "turn-end",
    "PostCompact": "compact",
    "SessionEnd": "session-end",
}
_CURSOR: dict[str, Moment] = {
    "sessionStart": "session-start",
    "beforeSubmitPrompt": "prompt",
    "afterShellExecution": "tool",
    "afterMCPExecution": "tool",
    "afterFileEdit": "tool",
    "postToolUse": "tool",
    "postToolUseFailure": "tool",
    "afterAgentResponse": "turn-end",
    "stop": "turn-end",
    "preCompact": "compact",
    "sessionEnd": "session-end",
}
_KIRO: dict[str, Moment] = {
    **{name: moment for name, moment in _CLAUDE.items() if name != "SessionEnd"},
    "agentSpawn": "session-start",
    "userPromptSubmit": "prompt",
    "postToolUse": "tool",
    "stop": "turn-end",
    "PostTaskExec": "turn-end",
    "PostFileCreate": "tool",
    "PostFileSave": "tool",
    "PostFileDelete": "tool",
}
_GEMINI: dict[str, Moment] = {
    "SessionStart": "session-start",
    "BeforeAgent": "prompt",
    "AfterTool": "tool",
    "AfterAgent": "turn-end",
    "PreCompress": "compact",
    "SessionEnd": "session-end",
}
_WINDSURF: dict[str, Moment] = {
    **_CLAUDE,
    "pre_user_prompt": "prompt",
    "post_write_code": "tool",
    "post_read_code": "tool",
    "post_run_command": "tool",
    "post_mcp_tool_use": "tool",
    "post_cascade_response": "turn-end",
}
_CLINE: dict[str, Moment] = {
    "TaskStart": "session-start",
    "TaskResume": "session-start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PreCompact": "compact",
    "TaskComplete": "session-end",
    "TaskCancel": "session-end",
}


def _claude(raw: Raw) -> Envelope | None:
    """Claude Code, and all who speak as it does: Codex, VS Code, Gemini CLI, Kiro, Devin, our plugin for opencode."""
    if raw.moment == "prompt":
        return reading.envelope(raw, raw.text("prompt"))
    if raw.moment == "turn-end":
        return reading.envelope(
            raw, raw.text("last_assistant_message", "prompt_response", "assistant_response", "text")
        )
    if raw.moment == "compact":
        return reading.envelope(raw, raw.text("compact_summary", "summary"))
    if raw.moment != "tool":
        return reading.envelope(raw)
    if raw.name.startswith("PostFile"):
        path = raw.text("file_path", "filePath", "path")
        given: Json = {"file_path": path}
        return _used(raw, reading.used(raw.name, given, "")) if path else None
    response = raw.given.get("tool_response", raw.given.get("error"))
    is_ok = raw.name not in {"PostToolUseFailure", "postToolUseFailure"}
    return _used(raw, reading.used(raw.text("tool_name", "tool"), raw.given.get("tool_input"), response, is_ok))


def _used(raw: Raw, tool: Tool | None) -> Envelope | None:
    return reading.envelope(raw, tool=tool) if tool is not None else None


#: Cursor tells these by an event of their own.
_TOLD_APART = ("Shell", "Write", "Edit", "MultiEdit", "StrReplace", "MCP")


def _cursor(raw: Raw) -> Envelope | None:
    if raw.name == "afterShellExecution":
        given: Json = {"command": raw.text("command")}
        return _used(raw, reading.used("Shell", given, {"output": raw.text("output"), **_code(raw)}))
    if raw.name == "afterMCPExecution":
        given = {"server": raw.text("server_name", "url", "command")}
        if reading.used(raw.text("tool_name"), given, "") is None:
            return None
        name = f"mcp__{raw.text('tool_name')}"
        return _used(raw, reading.used(name, raw.given.get("tool_input"), raw.given.get("result_json")))
    if raw.name == "afterFileEdit":
        given = {"file_path": raw.text("file_path"), "edits": raw.given.get("edits")}
        return _used(raw, reading.used("Edit", given, ""))
    if raw.moment == "tool":
        told = {**raw.given, "tool_response": raw.given.get("tool_output", raw.given.get("tool_response"))}
        return None if raw.text("tool_name").startswith(_TOLD_APART) else _claude(replace(raw, given=told))
    return _claude(raw)


def _code(raw: Raw) -> Json:
    code = raw.given.get("exit_code", raw.given.get("exitCode"))
    return {"exit_code": code} if isinstance(code, int) else {}


_CASCADE = {
    "post_write_code": "Edit",
    "post_read_code": "Read",
    "post_run_command": "Shell",
}


def _windsurf(raw: Raw) -> Envelope | None:
    info = raw.given.get("tool_info")
    if not isinstance(info, dict):
        return _claude(raw)
    told = replace(raw, given=info)
    if raw.moment == "prompt":
        return reading.envelope(raw, told.text("user_prompt"))
    if raw.moment == "turn-end":
        return reading.envelope(raw, told.text("response"))
    if raw.name == "post_mcp_tool_use":
        server, name = told.text("mcp_server_name"), told.text("mcp_tool_name")
        full = f"mcp__{server}__{name}" if server else f"mcp__{name}"
        return _used(raw, reading.used(full, info.get("mcp_tool_arguments"), info.get("mcp_result")))
    given = info | {"command": info.get("command_line", "")}
    return _used(raw, reading.used(_CASCADE.get(raw.name, raw.name), given, info.get("output", "")))


def _cline(raw: Raw) -> Envelope | None:
    part = raw.given.get(raw.name[:1].lower() + raw.name[1:])
    told = replace(raw, given=part if isinstance(part, dict) else {})
    if raw.moment == "tool":
        name, given = told.text("toolName", "tool"), told.given.get("parameters")
        return _used(raw, reading.used(name, given, told.given.get("result"), told.given.get("success") is not False))
    if raw.moment == "session-start":
        about = told.given.get("taskMetadata")
        task = about.get("initialTask") if isinstance(about, dict) else ""
        return reading.envelope(raw, task if isinstance(task, str) else "", reason=raw.name)
    return reading.envelope(raw, told.text("prompt", "summary"), reason=raw.name)


def _nested(name: str, text: str) -> str:
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}, ensure_ascii=False)


def _pure(name: str, text: str) -> str:
    return _nested(name, text) or "{}"


def _additional(name: str, text: str) -> str:
    if name == "beforeSubmitPrompt":
        return '{"continue": true}'
    return json.dumps({"additional_context": text}, ensure_ascii=False) if text else "{}"


def _modified(name: str, text: str) -> str:
    return json.dumps({"cancel": False, "contextModification": text, "errorMessage": ""}, ensure_ascii=False)


def _context(name: str, text: str) -> str:
    return json.dumps({"context": text}, ensure_ascii=False)


def _bare(name: str, text: str) -> str:
    return text


def _silent(name: str, text: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Client:
    """One coding client."""

    moments: Mapping[str, Moment]
    read: Reader = _claude
    answer: Answer = _nested
    #: When it takes text from us.
    takes: frozenset[Moment] = frozenset({"session-start", "prompt"})


_AT_START: frozenset[Moment] = frozenset({"session-start"})
CLIENTS: dict[str, Client] = {
    "claude-code": Client(_CLAUDE),
    "codex": Client(_CLAUDE),
    "cursor": Client(_CURSOR, _cursor, _additional, _AT_START),
    "vscode": Client(_CLAUDE | {"PreCompact": "compact"}, takes=_AT_START),
    "kiro": Client(_KIRO, answer=_bare),
    "gemini": Client(_GEMINI, answer=_pure),
    "windsurf": Client(_WINDSURF, _windsurf, _silent, frozenset()),
    "devin": Client(_CLAUDE),
    "cline": Client(_CLINE, _cline, _modified),
    "opencode": Client({}, answer=_context),
}
ALIASES = {
    "claude": "claude-code",
    "copilot": "vscode",
    "gemini-cli": "gemini",
    "vs-code": "vscode",
    "kiro-cli": "kiro",
}


def named(name: str) -> str | None:
    """A client by its name or another one; None when it is unknown."""
    name = ALIASES.get(name.lower(), name.lower())
    return name if name in CLIENTS else None


def empty(client: str, event: str) -> str:
    """What a client takes as nothing said."""
    return CLIENTS[client].answer(event, "") if client in CLIENTS else ""


def event_of(given: Json, event: str) -> str:
    """The client's own word for an event, else what the command line says."""
    for name in ("hook_event_name", "hookEventName", "hookName", "agent_action_name", "trigger_name"):
        told = given.get(name)
        if isinstance(told, str) and told:
            return told
    return event


def sender(client: str, given: Json) -> str:
    """Who really tells: VS Code and Cursor run the hooks of Claude Code beside their own."""
    if client != "claude-code":
        return client
    if "cursor_version" in given or "conversation_id" in given:
        return "cursor"
    is_claude = any(name in given for name in ("permission_mode", "prompt_id", "effort"))
    return "vscode" if "timestamp" in given and not is_claude else client


def read(client: str, event: str, given: Json, now: int, here: str = "") -> list[Envelope]:
    """The events that a client's JSON tells; none for what does not matter, or is our own doing.

    `here` is where the client works, if its JSON does not say.
    """
    client = sender(client, given)
    found = []
    for one in _several(given):
        name = event_of(one, event)
        moment = CLIENTS[client].moments.get(name) or WORDS.get(name)
        if moment is None:
            continue
        envelope = CLIENTS[client].read(Raw(client, one, name, moment, now, here))
        if envelope is not None and envelope.cwd and not _is_empty(envelope):
            found.append(_filed(envelope))
    return found


def _several(given: Json) -> Iterator[Json]:
    """Kiro can hand over all events of a turn at once."""
    events = given.get("hook_events")
    if not isinstance(events, list):
        yield given
        return
    rest = {name: part for name, part in given.items() if name != "hook_events"}
    for event in events[:200]:
        if isinstance(event, dict):
            yield {**rest, **event}


def _is_empty(envelope: Envelope) -> bool:
    return envelope.event == "prompt" and not envelope.text.strip()


def _filed(envelope: Envelope) -> Envelope:
    """The same with the files that it is about."""
    if envelope.tool is None:
        return envelope
    files = tuple(reading.paths(envelope.tool.input))
    return (
        replace(envelope, files=files, extra=envelope.extra | reading.blobs(envelope.cwd, files)) if files else envelope
    )


def cleaned(envelope: Envelope) -> Envelope:
    """An envelope that someone else made, without what must not be kept."""
    tool = envelope.tool
    used = reading.used(tool.name, tool.input, tool.response, tool.is_ok) if tool else None
    extra = list(envelope.extra.items())[:20]
    return replace(
        envelope,
        client=cleaning.text(envelope.client, 100),
        session=cleaning.plain(envelope.session)[:200],
        key=cleaning.plain(envelope.key)[:200],
        cwd=cleaning.plain(envelope.cwd)[:4_000],
        text=cleaning.text(envelope.text, cleaning.SAID),
        tool=used,
        files=tuple(cleaning.plain(path)[:4_000] for path in envelope.files[: reading.MOST_FILES]),
        branch=cleaning.text(envelope.branch, 200),
        reason=cleaning.text(envelope.reason, 100),
        extra={cleaning.plain(name)[:4_000]: cleaning.text(part, 200) for name, part in extra},
    )
