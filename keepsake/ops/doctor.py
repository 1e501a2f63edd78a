"""What the doctor looks at: each check tells what it found and, where something is wrong, how to mend it."""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from keepsake import context
from keepsake.context import App
from keepsake.core.errors import KeepsakeError, Misconfigured
from keepsake.core.lazy import lazy
from keepsake.core.models import Result
from keepsake.core.principal import LOCAL_ORG
from keepsake.ops import status
from keepsake.settings import Settings
from keepsake.store import banks, checkup, exec_tools, jobs
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.services import remote, rerank, sandbox, subprocess_git
else:
    remote = lazy("keepsake.services.remote")
    rerank = lazy("keepsake.services.rerank")
    sandbox = lazy("keepsake.services.sandbox")
    subprocess_git = lazy("keepsake.services.subprocess_git")

OLDEST_PYTHON = (3, 11)
#: Below the first the doctor speaks up, below the second it calls it a problem.
SCARCE, TOO_LITTLE = 1 << 30, 100 << 20


class Finding(Result):
    """One thing that was looked at."""

    check: str = Field(description="What was looked at.")
    level: Literal["ok", "note", "problem"] = Field(description="A note is worth knowing; a problem needs mending.")
    found: str = Field(description="What was found.")
    mend: str = Field("", description="What to do about it.")


def ok(check: str, found: str) -> Finding:
    """All is well."""
    return Finding(check=check, level="ok", found=found)


def note(check: str, found: str, mend: str = "") -> Finding:
    """Worth knowing, but nothing is broken."""
    return Finding(check=check, level="note", found=found, mend=mend)


def problem(check: str, found: str, mend: str) -> Finding:
    """Something is wrong."""
    return Finding(check=check, level="problem", found=found, mend=mend)


def python() -> Finding:
    """The Python that runs this."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < OLDEST_PYTHON:
        return problem("python", f"This is Python {version}.", "Install Python 3.11 or newer and Keepsake with it.")
    return ok("python", f"Python {version}")


def folder(settings: Settings) -> list[Finding]:
    """The data folder: there, writable, private, with room on its disk."""
    path = settings.data_dir
    if path.exists() and not path.is_dir():
        return [problem("data folder", f"{path} is not a folder.", "Move that file away, or give another --data-dir.")]
    nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        mend = f"Give yourself the right to write to {nearest}, or choose another folder with --data-dir."
        return [problem("data folder", f"{nearest} cannot be written to.", mend), _room(nearest)]
    if nearest != path:
        return [ok("data folder", f"{path} does not exist yet; the first use makes it"), _room(nearest)]
    if exposed := [file for file in (path / "keepsake.db", path / "counters.db") if _is_exposed(file)]:
        names = ", ".join(file.name for file in exposed)
        mend = f"chmod 700 '{path}'"
        return [problem("data folder", f"Other users of this machine can read {names} in {path}.", mend), _room(path)]
    return [ok("data folder", f"{path} is there, writable and private"), _room(path)]


def _is_exposed(file: Path) -> bool:
    """Whether others can read a file, and can get to it."""
    if os.name != "posix" or not file.exists():
        return False
    reachable = file.parent.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    return bool(reachable and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def _room(path: Path) -> Finding:
    free = shutil.disk_usage(path).free
    told = f"{free / (1 << 30):,.1f} GiB free"
    if free < TOO_LITTLE:
        return problem("disk space", f"Only {free >> 20} MiB are free.", f"Make room on the disk of {path}.")
    return note("disk space", told, f"Make room on the disk of {path}.") if free < SCARCE else ok("disk space", told)


async def database(settings: Settings) -> list[Finding]:
    """The database: reachable, whole, and of a schema that this version knows."""
    try:
        return await (_postgres(settings.database_url) if settings.database_url else _sqlite(settings))
    except Misconfigured as error:
        found, _, mend = str(error).partition(". ")
        return [problem("database", f"{found}.", mend)]
    except KeepsakeError as error:
        mend = (
            "Check KEEPSAKE_DATABASE_URL, and that PostgreSQL runs and lets this user in."
            if settings.database_url
            else "Restore a backup, or move the file away to begin anew."
        )
        return [problem("database", str(error), mend)]


async def _sqlite(settings: Settings) -> list[Finding]:
    path = settings.data_dir / "keepsake.db"
    if settings.data_dir.exists() and not settings.data_dir.is_dir():
        return []
    if not path.exists():
        return [ok("database", f"{path} does not exist yet; the first use makes it")]
    file = await asyncio.to_thread(checkup.sqlite_file, path)
    whole = ok("integrity", "quick_check finds no fault")
    if file.faults:
        mend = f"Stop every Keepsake and restore a backup; keep {path} aside, much of it may be readable."
        whole = problem("integrity", f"The database is damaged: {file.faults[0]}", mend)
    return [_schema("sqlite", file.applied, f"SQLite at {path}"), whole]


async def _postgres(url: str) -> list[Finding]:
    server = await checkup.postgres_server(url)
    return [_schema("postgres", server.applied, f"PostgreSQL {server.version}"), _vector(server), _role(server)]


def _vector(server: checkup.Server) -> Finding:
    if server.vector is None:
        mend = "Install pgvector 0.8 or newer on the database server; the image pgvector/pgvector has it."
        return problem("pgvector", "The server has no pgvector.", mend)
    if not (server.has_vector or server.is_superuser):
        mend = "Have an administrator run CREATE EXTENSION vector; in this database, once."
        return problem("pgvector", "The database has no pgvector yet, and this user may not add it.", mend)
    return ok("pgvector", f"pgvector {server.vector}")


def _role(server: checkup.Server) -> Finding:
    if not server.is_superuser:
        return ok("database role", "not a superuser")
    told = "Keepsake connects as a superuser, who could reach every database of that server."
    mend = "CREATE ROLE keepsake LOGIN CREATEROLE PASSWORD '…'; make it the database's owner and use it in the URL."
    return problem("database role", told, mend)


def _schema(engine: str, applied: Mapping[int, str], where: str) -> Finding:
    held, newest = checkup.schema(engine, applied)
    if held < newest:
        return note("database", f"{where}, schema {held} of {newest}", "The next start brings it up to date.")
    return ok("database", f"{where}, schema {held}")


async def models() -> list[Finding]:
    """The embedding models: their files are there and are the right ones."""
    embedding = context.Embedding()
    try:
        return [
            await _model("quick model", embedding.static(["a question"])),
            await _model("sharp model", embedding.sharp(["a question"])),
        ]
    finally:
        await asyncio.to_thread(embedding.close)


async def _model(check: str, embedded: Awaitable[object]) -> Finding:
    try:
        await embedded
    except KeepsakeError as error:
        return problem(check, str(error), "Install Keepsake again with its dependencies.")
    return ok(check, "its files are there and are the right ones")


async def work(app: App) -> Finding:
    """The background's jobs: none that keeps failing."""
    standing = await app.store.read(LOCAL_ORG, lambda tx: jobs.standing(tx, LOCAL_ORG))
    failing = [one for one in standing if one.error]
    if failing:
        kinds = ", ".join(sorted({f"{one.kind} ({one.error.partition(':')[0]})" for one in failing}))
        mend = (
            "The log of the server tells why; list_operations shows which are tried again and which have been given up."
        )
        return problem("jobs", f"{sum(one.jobs for one in failing)} keep failing: {kinds}.", mend)
    waiting = sum(one.jobs for one in standing if one.state == "pending")
    return ok("jobs", f"{waiting} waiting, none failing")


async def meaning(app: App) -> Finding:
    """The embedding model in use, and how many memories wait for it."""

    async def body(tx: Tx) -> status.Embedded:
        return await status.embedded(tx, app, LOCAL_ORG, [bank.id for bank in await banks.listed(tx, LOCAL_ORG)])

    now = await app.store.read(LOCAL_ORG, body)
    told = "is coming in" if now.is_new else "is current"
    return ok("embedding", f"{now.model} {told}; memories that wait for it: {now.waiting:,}")


async def git() -> Finding:
    """Git, for whoever learns from repositories."""
    try:
        told = await subprocess_git.whole(subprocess_git.Command(["version"], patience_s=10))
    except KeepsakeError as error:
        mend = "apt install git, where the worker runs; until then no bank learns from a repository."
        return note("git", str(error).partition(". ")[0] + ".", mend)
    return ok("git", told.decode("utf-8", "replace").strip())


async def walled(app: App) -> int:
    """How many enrolled commands are to run in a sandbox here."""
    found = await app.store.read(LOCAL_ORG, lambda tx: exec_tools.listed(tx, LOCAL_ORG))
    wanted = [one for one in found if one.definition.argv and one.definition.sandbox.kind != "none"]
    return len(wanted) if app.settings.worker else 0


async def walls(commands: int) -> Finding:
    """The sandbox of enrolled commands: one is made."""
    told = problem if commands else note
    or_none = "or enrol them with --no-sandbox: then they see all that the server sees."
    if missing := sandbox.missing():
        found = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there, so enrolled commands fail."
        return told("sandbox", found, f"Install bubblewrap and util-linux where the worker runs, {or_none}")
    if why := await sandbox.why_not():
        mend = f"Let the server's user make namespaces (docs/guides/execution.md tells how), {or_none}"
        return told("sandbox", f"bubblewrap makes no sandbox here ({why}), so enrolled commands fail.", mend)
    return ok("sandbox", "bubblewrap made one")


async def endpoints(settings: Settings) -> list[Finding]:
    """The endpoints that are configured beside the packaged models: each is asked once."""
    found = []
    if settings.embedding_base_url and (embedder := remote.configured(settings)):
        found.append(await _answers("embedding", settings.embedding_base_url, embedder.embed([remote.PROBE])))
    if judge := rerank.configured(settings) if settings.rerank_base_url else None:
        found.append(await _answers("rerank", settings.rerank_base_url, judge.judged(remote.PROBE, [remote.PROBE])))
    return found


async def _answers(name: str, url: str, asked: Awaitable[object]) -> Finding:
    try:
        await asked
    except KeepsakeError as error:
        mend = f"Check that {url} runs, and KEEPSAKE_{name.upper()}_BASE_URL, _API_KEY and _MODEL; until then searches"
        return problem(f"{name} endpoint", str(error), f"{mend} do without it.")
    return ok(f"{name} endpoint", f"{url} answers")
