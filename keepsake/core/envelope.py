"""What a coding client told us, in one shape for all of them; no pydantic here, because hooks must start fast."""

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

#: session-start, prompt, tool, turn-end (the agent has answered), compact (the client's own summary), session-end.
Moment = Literal["session-start", "prompt", "tool", "turn-end", "compact", "session-end"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent used."""

    name: str
    input: dict[str, object]
    response: str = ""
    is_ok: bool = True


@dataclass(frozen=True, slots=True)
class Envelope:
    """One event of one session."""

    client: str
    session: str
    event: Moment
    #: Microseconds UTC.
    at: int
    #: The folder that the client works in; it tells the project.
    cwd: str
    #: What tells this event from all others of its session, however often a client delivers it.
    key: str
    #: What the person asked, the agent answered, or the client summed up.
    text: str = ""
    tool: Tool | None = None
    files: tuple[str, ...] = ()
    branch: str = ""
    #: Why a session began or ended.
    reason: str = ""
    extra: dict[str, str] = field(default_factory=dict)


MOMENTS: tuple[Moment, ...] = get_args(Moment)


def packed(envelope: Envelope) -> str:
    """An envelope as the inbox, the spool and the wire carry it."""
    return json.dumps(asdict(envelope), ensure_ascii=False)


def unpacked(told: str) -> Envelope:
    """The envelope again; raises ValueError for what is none."""
    given = json.loads(told)
    try:
        tool = Tool(**given["tool"]) if given["tool"] is not None else None
        made = Envelope(**{**given, "tool": tool, "files": tuple(map(str, given["files"]))})
        texts = [made.client, made.session, made.cwd, made.key, made.text, made.branch, made.reason]
        texts += [*made.extra, *made.extra.values(), *([tool.name, tool.response, *tool.input] if tool else [])]
        is_one = all(isinstance(part, str) for part in texts) and made.event in MOMENTS and type(made.at) is int
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it is no envelope") from error
    if not is_one:
        raise ValueError("it is no envelope")
    return made
