"""`keepsake sync`: lets a bank learn from a repository, and shows how far it is."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from keepsake import dispatch, worker
from keepsake.core.errors import BadInput, KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.core.models import InBank
from keepsake.ops import jobs, sync
from keepsake.ops.jobs import JobStatus
from keepsake.ops.sync import Synced
from keepsake.settings import Settings
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import Here, Reach, is_remote, reached

if TYPE_CHECKING:
    from rich import console, progress
else:
    console = lazy("rich.console")
    progress = lazy("rich.progress")

#: How often it is looked how far a sync is.
LOOK_S = 0.25
#: What is counted, in the order in which it is told.
COUNTED = ("commits", "tags", "files", "notes", "pulls", "issues", "releases")
Bank = Annotated[str, typer.Argument(metavar="BANK", help="The bank that learns; made when there is none.")]
Repo = Annotated[
    str | None,
    typer.Option("--repo", metavar="PATH_OR_URL", help="A folder or an https address; the bank's own when left out."),
]


def sync_(
    bank: Bank, repo: Repo = None, data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Let a bank learn from a git repository; again and again, only what is new is read."""
    settings = effective(data_dir, database_url)
    dispatch.validated(InBank, {"bank": bank}, "BANK")
    place = _place(repo, settings) if repo is not None else None
    try:
        asked, ended = asyncio.run(_synced(settings, bank, place, quiet=as_json))
    except KeyboardInterrupt:
        print("keepsake: stopped. What was read so far stays; run it again to go on.", file=sys.stderr)
        raise typer.Exit(130) from None
    _tell(asked, ended, as_json)
    if ended.state not in ("completed", "pending") or (ended.error and not _waits(ended)):
        raise KeepsakeError(f"The sync did not come to its end: {_reason(ended)}")


def _place(repo: str, settings: Settings) -> str:
    """A repository as the operation takes it: a folder from the root on."""
    is_path = "://" not in repo and (os.path.exists(os.path.expanduser(repo)) or ":" not in repo)
    if is_path and is_remote(settings):
        raise BadInput("A server elsewhere does not read folders of this machine. Give an https:// address.")
    return os.path.abspath(os.path.expanduser(repo)) if is_path else repo


async def _synced(settings: Settings, bank: str, repo: str | None, *, quiet: bool) -> tuple[Synced, JobStatus]:
    async with reached(settings) as reach:
        asked = await reach.call(sync.sync_bank, {"bank": bank, **({"repo": repo} if repo else {})})
        assert isinstance(asked, Synced)
        async with _done(reach):
            return asked, await _followed(reach, asked, quiet)


@asynccontextmanager
async def _done(reach: Reach) -> AsyncIterator[None]:
    """Do the sync in this process, unless a server was quicker to take it or is far away."""
    if not isinstance(reach, Here):
        yield
        return
    work = asyncio.create_task(_working(reach))
    try:
        yield
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _working(here: Here) -> None:
    """Do syncs until cancelled: another one may have waited longer than ours."""
    while True:
        if not await worker.step(here.app, [sync.JOB]):
            await asyncio.sleep(LOOK_S)


async def _followed(reach: Reach, asked: Synced, quiet: bool) -> JobStatus:
    """How the operation ended; a try that failed is an end as well, though the background may try again."""
    with _shown(quiet) as tell:
        while True:
            status = await reach.call(jobs.get, {"bank": asked.bank, "id": asked.operation})
            assert isinstance(status, JobStatus)
            tell(status)
            is_over = status.state in ("completed", "failed", "cancelled")
            if is_over or (status.state == "pending" and (status.error or _waits(status))):
                return status
            await asyncio.sleep(LOOK_S)


def _waits(status: JobStatus) -> str:
    """Until when a server wants to be left alone, if it does."""
    until = (status.result or {}).get("waiting_until")
    return until if isinstance(until, str) else ""


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[JobStatus], None]]:
    """A bar for whoever sits at a terminal; a line for each step elsewhere."""
    if sys.stderr.isatty() and not quiet:
        with progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeElapsedColumn(),
            console=console.Console(stderr=True),
            transient=True,
        ) as bar:
            task = bar.add_task("waiting", total=1.0)
            yield lambda status: bar.update(task, completed=status.progress, description=_doing(status))
        return
    last = ""

    def line(status: JobStatus) -> None:
        nonlocal last
        word = str((status.result or {}).get("doing", ""))
        if not quiet and status.state == "running" and word not in ("", "done", last):
            last = word
            print(_doing(status), file=sys.stderr, flush=True)

    yield line


def _doing(status: JobStatus) -> str:
    told = status.result or {}
    if until := _waits(status):
        return f"GitHub wants to be asked again at {until}"
    what = str(told.get("doing", "") or "waiting")
    return f"{what} {told.get('read', 0)}/{told['of']}" if told.get("of") else what


def _tell(asked: Synced, ended: JobStatus, as_json: bool) -> None:
    if as_json:
        show.document({**asked.model_dump(mode="json"), "state": ended.state, "result": ended.result or {}})
        return
    told = ended.result or {}
    counts = ", ".join(f"{told[name]} {name}" for name in COUNTED if told.get(name))
    if ended.state == "completed" or _waits(ended):
        show.line(f"{asked.bank} learns from {asked.repo}")
        show.line(f"  read {counts or 'nothing new'}; new memories {told.get('stored', 0)}, superseded {_gone(told)}")
    notes = told.get("notes")
    for note in notes if isinstance(notes, list) else []:
        show.line(f"  {note}")
    if told.get("stored"):
        show.line("  All of it can be found now; `keepsake serve` or `keepsake worker` sharpens it in the background.")


def _gone(told: dict[str, object]) -> object:
    return told.get("superseded", 0)


def _reason(ended: JobStatus) -> str:
    """Why it failed, without the code that programs tell it by."""
    if ended.state == "cancelled":
        return "it was cancelled."
    said = ended.error or "nothing tells why; look into the log."
    code, colon, rest = said.partition(": ")
    return rest if colon and code.isidentifier() else said
