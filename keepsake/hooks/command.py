"""`keepsake hook EVENT --client NAME`: reads a client's JSON, keeps it, answers, and never stands in the way."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from keepsake import settings
from keepsake.core import bank_name, clock
from keepsake.core.errors import KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.core.project import Project
from keepsake.hooks import clients, direct, spool
from keepsake.services import repository
from keepsake.settings import Settings
from keepsake.store import events
from keepsake.store.events import Event

if TYPE_CHECKING:
    from keepsake.hooks import context, remote
else:
    context = lazy("keepsake.hooks.context")
    remote = lazy("keepsake.hooks.remote")

HELP = """Usage: keepsake hook EVENT --client NAME [--bank NAME] [--data-dir FOLDER] [--database-url URL]

Take one event of a coding client, as JSON on stdin; clients run this themselves. It always succeeds: what went
wrong is told in hook.log in the data folder.

  EVENT                session-start, prompt, tool, stop, compact or session-end, or the client's own name for it.
  --client NAME        {clients}.
  --bank NAME          Keep it in this bank instead of the project's own.
  --data-dir FOLDER    Folder of the SQLite database.
  --database-url URL   PostgreSQL to use instead.
"""
OPTIONS = ("client", "bank", "data-dir", "database-url")
#: Set for whatever a hook might start: a hook inside a hook does nothing.
GUARD = "KEEPSAKE_IN_HOOK"
DEADLINE_S = 2.0
#: Bytes of JSON that are read; more is no event that a memory could come from.
LARGEST = 8_000_000
#: Spooled events that are handed to a server at a time.
BATCH = 100
LOG, LOG_LARGEST = "hook.log", 1_000_000
_FOLDERS = ("DEVIN_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR")


@dataclass(slots=True)
class Hook:
    """One run: what was asked, and the answer that is given exactly once."""

    event: str
    client: str
    bank: str = ""
    data_dir: str | None = None
    database_url: str | None = None
    #: The client's own word for the event, once it is known.
    name: str = ""
    folder: Path | None = None
    _said: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, text: str = "") -> None:
        """Say it in the client's own form, unless something was said already."""
        if not self._said.acquire(blocking=False):
            return
        known = clients.CLIENTS.get(self.client)
        said = known.answer(self.name or self.event, text) if known else ""
        with contextlib.suppress(OSError):
            waiting = said.encode("utf-8", "replace")
            while waiting:
                waiting = waiting[os.write(1, waiting) :]

    def note(self, why: str) -> None:
        """Say in the log what went wrong; never what the event said."""
        folder = self.folder or settings.data_home()
        line = f"{clock.iso(clock.now())} {self.client} {self.name or self.event}: {' '.join(why.split())[:300]}\n"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / LOG
            if path.exists() and path.stat().st_size > LOG_LARGEST:
                path.replace(path.with_suffix(".log.1"))
            with path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(line)
        except OSError:
            with contextlib.suppress(OSError):
                os.write(2, f"keepsake: {line}".encode("utf-8", "replace"))


def help_text() -> str:
    """How the command is used."""
    return HELP.format(clients=", ".join(clients.CLIENTS))


def run(arguments: Sequence[str]) -> int:
    """Take one event; 0 whatever happens."""
    if "--help" in arguments or "-h" in arguments:
        print(help_text(), end="")
        return 0
    hook = _asked(arguments)
    # Nothing here may hold up the editor for longer: a pipe that stays open, a disk that hangs.
    timer = threading.Timer(DEADLINE_S, _give_up, [hook])
    timer.daemon = True
    timer.start()
    try:
        _take(hook)
    except (KeepsakeError, OSError, ValueError, RecursionError, MemoryError, direct.Unwritable) as error:
        hook.note(f"{type(error).__name__}: {error}")
    finally:
        hook.answer()
        timer.cancel()
    return 0


def _give_up(hook: Hook) -> None:
    hook.answer()
    hook.note(f"not done within {DEADLINE_S} s")
    os._exit(0)


def _asked(arguments: Sequence[str]) -> Hook:
    """What the command line says; a mistake in it is no reason to fail."""
    given: dict[str, str] = {}
    event, waiting = "", list(arguments)
    while waiting:
        name, has_value, value = waiting.pop(0).partition("=")
        if name.startswith("--") and name[2:] in OPTIONS:
            given[name[2:]] = value if has_value else waiting.pop(0) if waiting else ""
        elif not name.startswith("-"):
            event = event or name
    client = given.get("client", "")
    return Hook(
        event,
        clients.named(client) or client,
        given.get("bank", ""),
        given.get("data-dir"),
        given.get("database-url"),
    )


def _take(hook: Hook) -> None:
    effective = settings.load(
        data_dir=settings.folder(hook.data_dir) if hook.data_dir else None, database_url=hook.database_url
    )
    hook.folder = effective.data_dir
    told = _read(time.monotonic() + DEADLINE_S)
    if os.environ.get(GUARD):
        return
    os.environ[GUARD] = "1"
    if hook.client not in clients.CLIENTS:
        hook.note(f"there is no client of this name; the clients are {', '.join(clients.CLIENTS)}")
        return
    given = json.loads(told) if told.strip() else {}
    if not isinstance(given, dict):
        raise ValueError("stdin is no JSON object")
    if hook.client == "kiro" and os.environ.get("USER_PROMPT"):
        # Kiro's first IDE hands a prompt over in no other way.
        given = {"prompt": os.environ["USER_PROMPT"], **given}
    hook.name = clients.event_of(given, hook.event)
    here = next((os.environ[name] for name in _FOLDERS if os.environ.get(name)), None) or os.getcwd()
    envelopes = clients.read(hook.client, hook.event, given, clock.now(), here)
    if not envelopes:
        return
    found = [Event(envelope, _project(envelope.cwd, hook.bank)) for envelope in envelopes]
    takes = clients.CLIENTS[clients.sender(hook.client, given)].takes
    hook.answer(_kept(hook, effective, found, envelopes[-1].event in takes))


def _read(until: float) -> bytes:
    """What stands on stdin; too much is read to its end and dropped, so that the client is not left writing."""
    parts, size = [], 0
    while time.monotonic() < until and (part := os.read(0, 1 << 20)):
        size += len(part)
        if size <= LARGEST:
            parts.append(part)
    if size > LARGEST:
        raise ValueError(f"stdin holds over {LARGEST} bytes")
    return b"".join(parts)


def _project(cwd: str, bank: str) -> Project:
    project = repository.project_of(cwd)
    return replace(project, identity=bank_name.checked(bank), name=bank) if bank else project


def _kept(hook: Hook, effective: Settings, found: Sequence[Event], wants_text: bool) -> str:
    """Keep events where they belong, else in the spool; gives the text to inject."""
    try:
        if effective.url:
            text = remote.post(effective, found)
            with contextlib.suppress(direct.Unwritable, OSError):
                _flushed(effective)
            return text if wants_text else ""
        return _stored(effective, found, wants_text)
    except direct.Unwritable as error:
        hook.note(f"spooled, because {error}")
        if not spool.add(effective.data_dir, found):
            hook.note("the spool is full, and the event is lost")
    return ""


def _flushed(effective: Settings) -> None:
    """Hand over what was spooled while the server was away."""
    for path in spool.held(effective.data_dir)[:1]:
        told, _ = spool.read(path)
        for start in range(0, len(told), BATCH):
            remote.post(effective, told[start : start + BATCH])
        path.unlink(missing_ok=True)


def _stored(effective: Settings, found: Sequence[Event], wants_text: bool) -> str:
    last, text, now = found[-1], "", clock.now()
    if wants_text:
        given = direct.run(effective, lambda tx: context.text(tx, direct.ORG, last, now), writes=False)
        text = given.text
        if given.ids:
            extra = last.envelope.extra | {"handed": " ".join(map(str, given.ids))}
            found = [*found[:-1], Event(replace(last.envelope, extra=extra), last.project)]
    direct.run(effective, lambda tx: events.put(tx, direct.ORG, found, now), writes=True)
    return text
