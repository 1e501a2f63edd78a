"""Observations by rules: what an agent did, from the tool that it used, in words that can be found again.

Looking around is no observation of its own: listings, searches and commands that only show something are left out,
and files that are read one after the other become one observation.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from keepsake.core import concepts, words
from keepsake.core.envelope import Envelope, Tool

Type = Literal["file-write", "file-read", "command", "research", "delegation", "tool-use", "prompt"]
Sort = Type | Literal["look", "none"]


def _names(told: str) -> frozenset[str]:
    return frozenset(told.split())


#: The clients' tools, in lower case and without `_`, `-` and blanks.
_TOOLS: dict[Sort, frozenset[str]] = {
    "file-write": _names(
        """edit write multiedit notebookedit writefile replace fswrite strreplace strreplaceeditor applypatch createfile
        inserteditintofile replacestringinfile multireplacestringinfile writetofile replaceinfile patch editfile
        deletefile postfilecreate postfilesave postfiledelete newrule editnotebookfile"""
    ),
    "file-read": _names("read readfile view fsread viewfile openfile notebookread readmanyfiles getnotebooksummary"),
    "command": _names(
        """bash shell runshellcommand executebash executecommand executecmd runinterminal execcommand localshell
        powershell terminal runcommand unifiedexec"""
    ),
    "research": _names(
        """webfetch websearch googlewebsearch fetchwebpage fetch browseraction webtofetch internetsearch
        searchweb readurl"""
    ),
    "delegation": _names("task agent delegate usesubagent runsubagent newtask spawnagent subagent"),
    "look": _names(
        """grep glob ls list listdirectory listdir searchfilecontent grepsearch filesearch semanticsearch searchfiles
        listfiles codebasesearch codesearch findfiles listcodedefinitionnames geterrors getchangedfiles codelistfiles"""
    ),
    "none": _names(
        """todowrite todoread todolist updateplan exitplanmode enterplanmode askuserquestion toolsearch
        attemptcompletion askfollowupquestion planmoderespond thinking think introspect bashoutput killshell killbash
        skill managetodolist reportintent savememory updatememory sleep writestdin focuschain"""
    ),
}
#: Commands that only show something.
_LOOKS = _names(
    "ls cat pwd cd echo which head tail grep rg find wc tree file stat less more type env printenv date whoami"
)
_GIT_LOOKS = _names("status log diff show branch remote rev-parse blame")
_STRUNG = re.compile(r"\s*(?:&&|\|\||;|\|)\s*")
_RESULT = re.compile(
    r"test result: \w+\. \d+ passed; \d+ failed|Tests?:\s+[^\n]*\d+ (?:passed|failed)[^\n]*"
    r"|\d+ (?:tests? )?(?:passed|failed)\b[^\n]{0,60}|Ran \d+ tests?|BUILD \w+|Build succeeded|\d+ errors?\b[^\n]{0,40}"
    r"|compiled successfully|All checks passed",
    re.IGNORECASE,
)
_FAILED = re.compile(r"\b[1-9]\d* (?:tests? )?fail|\bBUILD FAIL|\b[1-9]\d* errors?\b|FAILED", re.IGNORECASE)
LONGEST_TITLE, LONGEST_LINE, LONGEST_PROMPT = 80, 160, 4_000
#: Files that one observation names.
MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation before it is stored."""

    type: Type
    title: str
    subtitle: str
    narrative: str
    at: int
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    #: git's names for what the files held then.
    blobs: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, object]:
        """What is stored beside title and narrative."""
        told = {
            "subtitle": self.subtitle,
            "facts": list(self.facts),
            "concepts": list(self.concepts),
            "files_read": list(self.read),
            "files_modified": list(self.modified),
        }
        return {name: part for name, part in told.items() if part}


def observed(envelopes: Sequence[Envelope], root: str) -> list[Observation]:
    """What events of one session show, in their order; repetitions and reading on are drawn together."""
    made: list[Observation] = []
    for envelope in envelopes:
        one = _one(envelope, root)
        if one is None:
            continue
        if made and (joined := _joined(made[-1], one)):
            made[-1] = joined
        else:
            made.append(one)
    return made


def _one(envelope: Envelope, root: str) -> Observation | None:
    if envelope.event == "prompt":
        return _prompt(envelope)
    return _used(envelope, envelope.tool, root) if envelope.tool is not None else None


def sort(tool: Tool) -> Sort:
    """What kind of doing a tool's use is."""
    name = re.sub(r"[\s_\-]", "", tool.name).lower()
    for kind, names in _TOOLS.items():
        if name in names:
            return _narrowed(kind, name, tool)
    return "tool-use"


def _narrowed(kind: Sort, name: str, tool: Tool) -> Sort:
    if kind == "command" and _only_looks(_command(tool)):
        return "look"
    # Anthropic's editor tool reads and writes under one name.
    if name == "strreplaceeditor" and tool.input.get("command") == "view":
        return "file-read"
    return kind


def _used(envelope: Envelope, tool: Tool, root: str) -> Observation | None:
    kind = sort(tool)
    files = tuple(dict.fromkeys(relative(path, envelope.cwd, root) for path in envelope.files))[:MOST_FILES]
    if kind == "file-write":
        return _written(envelope, tool, files)
    if kind == "file-read":
        return _read(envelope, files)
    if kind == "command":
        return _ran(envelope, tool)
    if kind == "research":
        return _looked_up(envelope, tool)
    if kind == "delegation":
        return _delegated(envelope, tool)
    return _other(envelope, tool, files) if kind == "tool-use" else None


def relative(path: str, cwd: str, root: str) -> str:
    """A path as the project knows it: from its root, where it lies within."""
    path, cwd, root = (part.replace("\\", "/") for part in (path, cwd, root))
    whole = posixpath.normpath(path if path.startswith("/") or path[1:2] == ":" else posixpath.join(cwd, path))
    for top in (root.rstrip("/"), cwd.rstrip("/")):
        if top and whole.startswith(f"{top}/"):
            return whole[len(top) + 1 :]
    return whole


def _written(envelope: Envelope, tool: Tool, files: tuple[str, ...]) -> Observation | None:
    if not files or not tool.is_ok:
        return None
    name, verb = posixpath.basename(files[0]), _verb(tool)
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    content = " ".join(str(tool.input.get(part, "")) for part in ("new_string", "content", "newText", "file_text"))
    return Observation(
        type="file-write",
        title=f"{verb} {name}{more}",
        subtitle=f"{_tool_word(tool)} {files[0]}",
        narrative=f"{verb} {name} at {', '.join(files)}{_lines(tool)}",
        at=envelope.at,
        facts=envelope.files[:MOST_FILES],
        concepts=concepts.of(" ".join(files), content),
        modified=files,
        blobs=_blobs(envelope, files),
    )


def _verb(tool: Tool) -> str:
    name = tool.name.lower().replace("_", "")
    if "delete" in name:
        return "Deleted"
    return "Created" if "create" in name or tool.input.get("command") == "create" else "Modified"


def _tool_word(tool: Tool) -> str:
    name = tool.name.lower()
    return next((word for word in ("edit", "patch", "delete", "create", "write") if word in name), "edit")


def _lines(tool: Tool) -> str:
    new, old = (tool.input.get(name) for name in ("new_lines", "old_lines"))
    if isinstance(new, int) and isinstance(old, int) and new != old:
        return f" — replacing {_count(old)} with {_count(new)}"
    lines = new if isinstance(new, int) else old
    if not isinstance(lines, int):
        return ""
    return f" — {'updating' if old or 'edit' in tool.name.lower() else 'writing'} {_count(lines)}"


def _count(lines: int) -> str:
    return f"{lines} line{'s' if lines != 1 else ''}"


def _blobs(envelope: Envelope, files: Sequence[str]) -> dict[str, str]:
    named = [envelope.extra.get(f"blob:{path}", "") for path in envelope.files]
    return {path: blob for path, blob in zip(files, named, strict=False) if blob}


def _read(envelope: Envelope, files: tuple[str, ...]) -> Observation | None:
    if not files:
        return None
    return replace(_reading(files, envelope.at), facts=envelope.files[:MOST_FILES], blobs=_blobs(envelope, files))


def _reading(files: tuple[str, ...], at: int) -> Observation:
    names = [posixpath.basename(path) for path in files]
    title = names[0] if len(names) == 1 else f"Read {len(names)} files: {', '.join(names)}"
    what = f"{names[0]} to understand its structure" if len(names) == 1 else ", ".join(files)
    return Observation(
        type="file-read",
        title=words.line(title, LONGEST_TITLE),
        subtitle=words.line(f"read {files[0]}", LONGEST_LINE),
        narrative=f"Read {what}",
        at=at,
        concepts=concepts.of(" ".join(files), ""),
        read=files,
    )


def _command(tool: Tool) -> str:
    given = tool.input.get("command") or tool.input.get("cmd") or tool.input.get("script") or ""
    if isinstance(given, list):
        # Codex gives a shell and its script: ["bash", "-lc", "npm test"].
        argv = [str(word) for word in given]
        given = argv[-1] if len(argv) > 2 and argv[1].startswith("-") else " ".join(argv)
    return str(given).strip()


def _only_looks(command: str) -> bool:
    if not command or len(command) > 2_000 or re.search(r"(?<![0-9&])>(?!&)", command):
        return False
    return all(_is_look(part.split()) for part in _STRUNG.split(command) if part)


def _is_look(argv: Sequence[str]) -> bool:
    if not argv:
        return True
    if argv[0] == "git":
        return len(argv) > 1 and argv[1] in _GIT_LOOKS
    if argv[0] == "sed":
        return "-n" in argv and "-i" not in argv
    return argv[0] in _LOOKS and "-delete" not in argv and "-exec" not in argv


def _ran(envelope: Envelope, tool: Tool) -> Observation | None:
    command = _command(tool)
    if not command:
        return None
    shown = words.line(command.splitlines()[0], LONGEST_TITLE)
    told = tool.response
    found = [match[0] for match in _RESULT.finditer(told)]
    is_ok = tool.is_ok and not (found and _FAILED.search(found[-1]))
    said = words.line(found[-1] if found else _last(told), LONGEST_LINE)
    return Observation(
        type="command",
        title=shown,
        subtitle=words.line(f"run {shown}", LONGEST_LINE),
        narrative=f"Ran {shown}{f' — {said}' if said else ''} ({'success' if is_ok else 'failure'})",
        at=envelope.at,
        facts=(words.line(command, 1_000),),
        concepts=concepts.of(command, ""),
    )


def _last(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip(" \t{}[]()\"'=-_*#")]
    return lines[-1] if lines else ""


def _looked_up(envelope: Envelope, tool: Tool) -> Observation | None:
    query, url = (str(tool.input.get(name) or "") for name in ("query", "url"))
    query = query or str(tool.input.get("prompt") or "") if not url else ""
    if not query and not url:
        return None
    place = urlsplit(url)
    title = f"Searched: {query}" if query else f"Fetched {place.netloc}{place.path}"
    # What a page says stays out: it is nobody's word here.
    said = f"Searched the web for “{query}”" if query else f"Fetched {url}"
    facts = tuple(part for part in (url, query) if part)
    return Observation(
        "research",
        words.line(title, LONGEST_TITLE),
        words.line(url or query, LONGEST_LINE),
        words.line(said, 500),
        envelope.at,
        facts=facts,
        concepts=concepts.of(f"{query} {place.path}", ""),
    )


def _delegated(envelope: Envelope, tool: Tool) -> Observation | None:
    task = str(tool.input.get("description") or tool.input.get("prompt") or tool.input.get("task") or "")
    if not task:
        return None
    who = str(tool.input.get("subagent_type") or tool.input.get("agent_name") or "a subagent")
    prompt = str(tool.input.get("prompt") or "")
    return Observation(
        "delegation",
        words.line(task.splitlines()[0], LONGEST_TITLE),
        words.line(f"delegate to {who}", LONGEST_LINE),
        f"Delegated to {who}: {words.line(task, 400)} ({'success' if tool.is_ok else 'failure'})",
        envelope.at,
        facts=(words.line(prompt, 1_000),) if prompt and prompt != task else (),
        concepts=concepts.of(task, prompt),
    )


def _other(envelope: Envelope, tool: Tool, files: tuple[str, ...]) -> Observation:
    name = tool.name.removeprefix("mcp__").replace("__", " ")
    given = [
        f"{key}={words.line(str(part), 60)}" for key, part in tool.input.items() if isinstance(part, str | int) and part
    ]
    told = f" with {', '.join(given[:4])}" if given else ""
    said = f"Used {name}{told} ({'success' if tool.is_ok else 'failure'})"
    return Observation(
        "tool-use",
        words.line(f"Used {name}", LONGEST_TITLE),
        words.line(tool.name, LONGEST_LINE),
        said,
        envelope.at,
        facts=tuple(words.line(one, 300) for one in given[:8]),
        concepts=concepts.of(name, ""),
        read=files,
    )


def _prompt(envelope: Envelope) -> Observation | None:
    told = envelope.text.strip()
    if not told or (told.startswith("/") and " " not in told):
        return None
    return Observation(
        "prompt",
        words.line(told.splitlines()[0], LONGEST_TITLE),
        f"asked in {envelope.client}",
        told[:LONGEST_PROMPT],
        envelope.at,
        concepts=concepts.of(told[:1_000], ""),
    )


def _joined(last: Observation, new: Observation) -> Observation | None:
    """Two observations as one, where the second adds nothing but more of the same."""
    if last.type != new.type:
        return None
    if last.type == "file-read":
        files = tuple(dict.fromkeys((*last.read, *new.read)))
        if len(files) > MOST_FILES:
            return None
        facts = tuple(dict.fromkeys((*last.facts, *new.facts)))
        return replace(_reading(files, new.at), facts=facts, blobs={**last.blobs, **new.blobs})
    if (last.title, last.narrative) == (new.title, new.narrative):
        return replace(new, blobs={**last.blobs, **new.blobs})
    return None
