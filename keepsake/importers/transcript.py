"""What the transcripts of all clients share: their files, and how an entry becomes the event its hook would tell."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from keepsake.core import clock
from keepsake.core.errors import BadInput
from keepsake.core.project import Project
from keepsake.hooks import clients
from keepsake.importers import lines
from keepsake.importers.lines import Entry
from keepsake.importers.record import Broken, Event, Found, Step, Steps
from keepsake.services import repository

#: Tools that wait for their result; a transcript that was cut off leaves some waiting for ever.
WAITING = 1_000


def files(path: Path) -> list[Path]:
    """The transcripts under a folder, oldest first: a resumed session may repeat what an older one tells."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(f"There is no folder {path}. Give the folder of the transcripts, or one of them.")
    there = [each for each in path.rglob("*.jsonl") if each.is_file()]
    return sorted(there, key=lambda each: (each.stat().st_mtime, str(each)))


def found(name: str, path: Path) -> Found:
    """How many bytes there are to read."""
    return Found(name, path, sum(each.stat().st_size for each in files(path)))


@dataclass(slots=True)
class Reading:
    """What a reader remembers while it goes through one transcript."""

    client: str
    file: str
    session: str = ""
    cwd: str = ""
    branch: str = ""
    #: The client's id of the turn, where it has one.
    turn: str = ""
    #: What the agent said last, and when; told when its turn ends.
    said: str = ""
    said_at: int = 0
    #: Bytes of the transcript that were read.
    end: int = 0
    tools: dict[str, tuple[str, object]] = field(default_factory=dict)
    projects: dict[str, Project] = field(default_factory=dict)
    #: Lines of this and earlier transcripts, as hashes of their ids.
    seen: set[int] = field(default_factory=set)

    def is_repeated(self, id: str) -> bool:
        """Whether a line was met before; a session that was resumed can begin with a copy of the one before."""
        known = len(self.seen)
        self.seen.add(hash(id))
        return bool(id) and len(self.seen) == known

    def used(self, id: str, name: str, given: object) -> None:
        """A tool was asked for; its result comes later."""
        if len(self.tools) >= WAITING:
            self.tools.pop(next(iter(self.tools)))
        self.tools[id] = (name, given)

    def told(self, event: str, at: int, given: Mapping[str, object]) -> Iterator[Event]:
        """The event that the client's hook would have told, with the same key."""
        common = {"session_id": self.session, "cwd": self.cwd}
        if not self.session or not self.cwd:
            return
        for envelope in clients.read(self.client, event, {**common, **given}, at):
            # What the files hold today is not what they held then.
            extra = {name: told for name, told in envelope.extra.items() if not name.startswith("blob:")}
            made = replace(envelope, branch=self.branch, extra=extra)
            yield Event(made, self._project(), self.file, self.end)

    def ended(self) -> Iterator[Event]:
        """The turn is over: what the agent said last is its answer."""
        if self.said:
            yield from self.told("Stop", self.said_at, {"last_assistant_message": self.said, **self.turn_id()})
        self.said = ""

    def turn_id(self) -> dict[str, object]:
        """The turn as hooks tell it."""
        return {"prompt_id": self.turn} if self.turn else {}

    def _project(self) -> Project:
        if self.cwd not in self.projects:
            self.projects[self.cwd] = repository.project_of(self.cwd)
        return self.projects[self.cwd]


def read(name: str, path: Path, events: Callable[[Reading, Entry], Iterator[Event]]) -> Steps:
    """The events of every transcript, file by file; the projects are looked up once."""
    before = 0
    projects: dict[str, Project] = {}
    seen: set[int] = set()
    for file in files(path):
        reading = Reading(name, file.stem, projects=projects, seen=seen)
        for line in lines.read(file):
            reading.end = line.end
            if line.entry is None:
                yield Step(Broken(f"{file.name} line {line.number}"), before + line.end)
                continue
            for event in events(reading, line.entry):
                yield Step(event, before + line.end)
        for event in reading.ended():
            yield Step(event, before + reading.end)
        before += reading.end


def moment(entry: Entry) -> int | None:
    """When a line was written; None for one that does not tell."""
    told = entry.get("timestamp")
    try:
        return clock.parse(told) if isinstance(told, str) else None
    except ValueError:
        return None


def blocks(content: object) -> list[Entry]:
    """The parts of a message; a plain text is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def texts(content: object, *types: str) -> str:
    """The text of a message."""
    told = [part.get("text") for part in blocks(content) if part.get("type") in types]
    return "\n".join(text for text in told if isinstance(text, str)).strip()
