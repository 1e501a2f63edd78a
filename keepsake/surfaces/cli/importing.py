"""`keepsake import`: takes over what other tools remember, as often as one likes."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepsake import dispatch
from keepsake.core import clock
from keepsake.core.errors import BadInput
from keepsake.core.lazy import lazy
from keepsake.core.models import InBank
from keepsake.core.operation import AnyOperation
from keepsake.importers.catalog import SOURCES, Source
from keepsake.importers.record import Broken, Event, Record, Steps
from keepsake.ops import importing, transcripts
from keepsake.ops.importing import Imported
from keepsake.settings import Settings
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import Reach, reached

if TYPE_CHECKING:
    from rich import console, progress
else:
    console = lazy("rich.console")
    progress = lazy("rich.progress")

#: Characters of one call; a server takes no more than a few of these at once.
ROOM = 1_000_000
#: Places of what could not be read that are told; all are counted.
TOLD = 3

Given = Record | Event
What = Annotated[
    str, typer.Argument(metavar="SOURCE", help=f"One of {', '.join(SOURCES)}; or all, which tells what is there.")
]
Where = Annotated[
    Path | None, typer.Argument(metavar="PATH", help="The file or folder to read; the tool's own when left out.")
]
Bank = Annotated[
    str | None, typer.Option("--bank", metavar="BANK", help="Put everything here; by project when left out.")
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be taken over.")]
Yes = Annotated[bool, typer.Option("--yes", help="With all: take it over.")]


@dataclass(slots=True)
class Report:
    """What came of one source."""

    source: str
    path: str
    read: int = 0
    stored: int = 0
    known: int = 0
    forgotten: int = 0
    broken: int = 0
    banks: dict[str, int] = field(default_factory=dict)
    redacted: list[str] = field(default_factory=list)
    #: Where something could not be read, the first few.
    where: list[str] = field(default_factory=list)

    def add(self, told: Imported) -> None:
        """Count what one call did."""
        self.stored, self.known = self.stored + told.stored, self.known + told.known
        self.forgotten += told.forgotten
        self.redacted = list(dict.fromkeys((*self.redacted, *told.redacted)))
        for name, count in told.banks.items():
            self.banks[name] = self.banks.get(name, 0) + count

    def miss(self, where: str) -> None:
        """Count something that could not be read."""
        self.broken += 1
        if len(self.where) < TOLD:
            self.where.append(where)


def import_(
    source: What,
    path: Where = None,
    bank: Bank = None,
    dry_run: Dry = False,
    yes: Yes = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Take over what another tool remembers, with its times; what was taken over before is skipped."""
    wanted = _wanted(source, path)
    if bank is not None:
        dispatch.validated(InBank, {"bank": bank}, "--bank")
    is_dry = dry_run or (source == "all" and not yes)
    settings = effective(data_dir, database_url)
    try:
        reports = asyncio.run(_imported(settings, bank, wanted, is_dry))
    except KeyboardInterrupt:
        print("keepsake: stopped. What was taken over so far stays; run it again to go on.", file=sys.stderr)
        raise typer.Exit(130) from None
    _tell(reports, is_dry, as_json)
    if source == "all" and is_dry and not dry_run and not as_json and reports:
        show.line("Nothing was changed. `keepsake import all --yes` takes it over.")


def _wanted(source: str, path: Path | None) -> list[tuple[Source, Path]]:
    if source == "all":
        if path is not None:
            raise BadInput("`all` looks at the places where the tools keep their files; name one tool to give a path.")
        return [(each, place) for each in SOURCES.values() if (place := each.place()) and place.exists()]
    if source not in SOURCES:
        raise BadInput(f"There is nothing called {source!r} to import; there are: {', '.join(SOURCES)}, all.")
    place = path or SOURCES[source].place()
    if place is None:
        raise BadInput(f"Nothing tells where {SOURCES[source].what} is. Give its path.")
    return [(SOURCES[source], place.expanduser())]


async def _imported(
    settings: Settings, bank: str | None, wanted: list[tuple[Source, Path]], is_dry: bool
) -> list[Report]:
    async with reached(settings, bank) as reach:
        return [await taken(reach, source, path, is_dry=is_dry) for source, path in wanted]


async def taken(reach: Reach, source: Source, path: Path, *, is_dry: bool) -> Report:
    """Take over what one tool has, or tell what there is to take."""
    report = Report(source.name, str(path))
    with _bar(source.name, source.found(path).size) as advance:
        for batch in _batches(source.read(path), report, advance):
            await _sent(reach, batch, is_dry, report)
    return report


def _batches(steps: Steps, report: Report, advance: "Advance") -> Iterator[list[Given]]:
    """What a reader gives in calls of moderate size; nothing is held beyond one of them."""
    batch: list[Given] = []
    room = ROOM
    for step in steps:
        if isinstance(step.given, Broken):
            report.miss(step.given.where)
            continue
        if batch and (_is_apart(batch[-1], step.given) or _is_full(batch, room, step.given)):
            yield batch
            batch, room = [], ROOM
            advance(step.done)
        report.read += 1
        batch.append(step.given)
        room -= _weight(step.given)
    if batch:
        yield batch


def _is_apart(last: Given, given: Given) -> bool:
    """Whether two things cannot go in one call: a transcript goes alone."""
    if isinstance(last, Event) and isinstance(given, Event):
        return (last.envelope.session, last.file) != (given.envelope.session, given.file)
    return type(last) is not type(given)


def _is_full(batch: list[Given], room: int, given: Given) -> bool:
    last = batch[-1]
    # How far a transcript was read is counted in lines, so what one line tells stays together.
    is_split = isinstance(last, Event) and isinstance(given, Event) and last.end == given.end
    return (len(batch) >= importing.MOST or room <= 0) and not (is_split and len(batch) < transcripts.MOST)


def _weight(given: Given) -> int:
    if isinstance(given, Record):
        return len(given.text)
    return len(given.envelope.text) + len(str(given.envelope.tool))


async def _sent(reach: Reach, batch: list[Given], is_dry: bool, report: Report) -> None:
    operation, arguments = _call(batch, is_dry)
    try:
        told = await reach.call(operation, arguments)
    except BadInput:
        # One that does not fit must not keep its neighbours out.
        if len(batch) == 1:
            report.miss(batch[0].key if isinstance(batch[0], Record) else batch[0].file)
            return
        for one in batch:
            await _sent(reach, [one], is_dry, report)
        return
    assert isinstance(told, Imported)
    report.add(told)


def _call(batch: list[Given], is_dry: bool) -> tuple[AnyOperation, Mapping[str, object]]:
    """The operation for a batch, and what it is given."""
    if isinstance(batch[0], Event):
        first = batch[0].envelope
        written = [_event(one) for one in batch if isinstance(one, Event)]
        told = {"client": first.client, "session": first.session, "file": batch[0].file, "events": written}
        return (transcripts.preview if is_dry else transcripts.import_), told
    records = [_record(one) for one in batch if isinstance(one, Record)]
    return (importing.preview if is_dry else importing.import_), {"records": records}


def _record(record: Record) -> dict[str, object]:
    """A record as the operation takes it."""
    told = asdict(record)
    at = told.pop("at")
    told |= {"tags": list(record.tags), "entities": [{"name": name, "kind": kind} for name, kind in record.entities]}
    return told | ({} if at is None else {"happened_at": clock.iso(at)})


def _event(event: Event) -> dict[str, object]:
    """An event as the operation takes it."""
    told = {name: part for name, part in asdict(event.envelope).items() if name not in ("client", "session")}
    told |= {"at": clock.iso(event.envelope.at), "files": list(event.envelope.files)}
    return told | {"project": asdict(event.project), "end": event.end}


class Advance:
    """Tells a progress bar how far a reader has come."""

    def __init__(self, bar: "progress.Progress", task: "progress.TaskID") -> None:
        self._bar, self._task = bar, task

    def __call__(self, done: int) -> None:
        self._bar.update(self._task, completed=done)


@contextmanager
def _bar(name: str, size: int) -> Iterator[Advance]:
    """A progress bar for whoever sits at a terminal."""
    with progress.Progress(
        console=console.Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        yield Advance(bar, bar.add_task(name, total=size or None))


def _tell(reports: list[Report], is_dry: bool, as_json: bool) -> None:
    if as_json:
        show.document({"dry_run": is_dry, "sources": [asdict(report) for report in reports]})
        return
    if not reports:
        show.line(f"Nothing to import was found. `keepsake import SOURCE PATH` reads a file: {', '.join(SOURCES)}.")
    for report in reports:
        show.line(f"{report.source}: {report.path}")
        verb = "new" if is_dry else "stored"
        show.line(f"  {verb} {report.stored}, known {report.known}, forgotten {report.forgotten} of {report.read} read")
        for bank, count in sorted(report.banks.items()):
            show.line(f"  bank {bank}: {count}")
        if report.redacted:
            show.line(f"  secrets taken out first: {', '.join(report.redacted)}")
        if report.broken:
            show.line(f"  could not be read: {report.broken} ({', '.join(report.where)}, …)")
