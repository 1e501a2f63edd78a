"""`keepsake doctor`: finds what is wrong and says how to mend it."""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from keepsake import context
from keepsake.auth import verify
from keepsake.context import App
from keepsake.core.errors import KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.ops import banks, doctor
from keepsake.ops.doctor import Finding, note, ok, problem
from keepsake.settings import Settings
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import There, connected, is_remote
from keepsake.surfaces.connect import checks
from keepsake.surfaces.connect.clients import Place

if TYPE_CHECKING:
    import httpx

    from keepsake.surfaces import bearer
else:
    bearer = lazy("keepsake.surfaces.bearer")
    httpx = lazy("httpx")

MARKS = {"ok": "ok  ", "note": "note", "problem": "BAD "}


def examine(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Look for what is wrong, and say how to mend it."""
    settings = effective(data_dir, database_url)
    findings = asyncio.run(_found(settings))
    problems = sum(finding.level == "problem" for finding in findings)
    if as_json:
        listed = [finding.model_dump() for finding in findings]
        show.document({"ok": not problems, "problems": problems, "findings": listed})
    else:
        for finding in findings:
            show.line(f"{MARKS[finding.level]}  {finding.check}: {finding.found}")
            if finding.mend:
                show.line(f"      → {finding.mend}")
        show.line()
        show.line("All is well." if not problems else f"Problems: {problems}.")
    if problems:
        raise typer.Exit(1)


async def _found(settings: Settings) -> list[Finding]:
    found = await (_remote(settings) if is_remote(settings) else _local(settings))
    return [*found, *await checks.clients(Place(Path.home()))]


async def _local(settings: Settings) -> list[Finding]:
    found = [doctor.python()]
    if not settings.database_url:
        found += doctor.folder(settings)
    looked = await doctor.database(settings)
    found += looked
    exists = bool(settings.database_url) or (settings.data_dir / "keepsake.db").exists()
    commands = 0
    if exists and all(finding.level == "ok" for finding in looked if finding.check in ("database", "integrity")):
        inside, commands = await _inside(settings)
        found += inside
    found += [*await doctor.models(), *await doctor.endpoints(settings)]
    return [*found, await doctor.git(), await doctor.walls(commands), await _port(settings)]


async def _inside(settings: Settings) -> tuple[list[Finding], int]:
    """What only an opened store can tell, and how many commands are to run in a sandbox."""
    try:
        async with context.open(settings) as app:
            return [await _door(app), await doctor.work(app), await doctor.meaning(app)], await doctor.walled(app)
    except KeepsakeError as error:
        return [problem("store", str(error), "Mend what the message names, then look again.")], 0


async def _door(app: App) -> Finding:
    if await verify.credentials_exist(app.store, app.settings):
        return ok("door", "closed: every request over HTTP needs a key")
    if bearer.is_loopback(app.settings.host):
        told = "open: every program on this machine may read and delete everything"
        return note("door", told, "`keepsake key create --name NAME` closes it.")
    told = f"There is no key, so `keepsake serve` will not start on {app.settings.host}."
    return problem("door", told, "`keepsake key create --name NAME` makes one.")


async def _port(settings: Settings) -> Finding:
    """The port is free, or Keepsake is already there."""
    where = f"{settings.host}:{settings.port}"
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return ok("port", f"{where} is free")
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if version := await _served(f"http://{host}:{settings.port}"):
        return ok("port", f"Keepsake {version} serves on {where}")
    mend = "Stop what uses it, or choose another port with KEEPSAKE_PORT."
    return problem("port", f"{where} cannot be used: {reason}.", mend)


async def _served(url: str) -> str | None:
    """The version of the Keepsake at an address; None when there is none."""
    try:
        async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
            document = (await client.get(f"{url}/openapi.json")).json()["info"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    return str(document["version"]) if document.get("title") == "Keepsake" else None


async def _remote(settings: Settings) -> list[Finding]:
    """The server that KEEPSAKE_URL names, and whether it lets us in."""
    found = [doctor.python()]
    try:
        async with connected(settings) as client:
            await There(client).call(banks.list_, {})
    except KeepsakeError as error:
        mend = "Check KEEPSAKE_URL and KEEPSAKE_API_KEY, and run `keepsake doctor` on the machine of the server."
        return [*found, problem("server", str(error), mend)]
    return [*found, ok("server", f"{settings.url} answers and lets you in")]
