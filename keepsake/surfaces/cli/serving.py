"""`keepsake serve`, `worker` and `stdio`."""

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from keepsake import __version__, context, worker
from keepsake.auth import verify
from keepsake.context import App
from keepsake.core.lazy import lazy
from keepsake.settings import Settings
from keepsake.surfaces import logs
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.config import place
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective

if TYPE_CHECKING:
    from keepsake.ops import invitations
    from keepsake.surfaces import bearer
    from keepsake.surfaces import serve as http
else:
    invitations = lazy("keepsake.ops.invitations")
    bearer = lazy("keepsake.surfaces.bearer")
    http = lazy("keepsake.surfaces.serve")


def serve(
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, metavar="PORT", help="Port to listen on.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Serve MCP and REST over HTTP; background work is done inside."""
    settings = effective(data_dir, database_url, host=host, port=port)
    logs.send(settings)
    signal.signal(signal.SIGTERM, _ended)
    telling: set[asyncio.Task[None]] = set()

    def announce(app: App, address: str) -> None:
        telling.add(asyncio.get_running_loop().create_task(_announced(app, address, as_json)))

    http.main(settings, announce)


def _ended(signum: int, frame: object) -> NoReturn:
    """A service manager asked for the end: close everything, and leave as from a success."""
    raise SystemExit(0)


async def _announced(app: App, address: str, as_json: bool) -> None:
    """Say where it listens and how to connect."""
    is_open = bearer.is_loopback(app.settings.host) and not await verify.credentials_exist(app.store, app.settings)
    needs_key = not is_open
    # Who started the server may make the first account, wherever it listens.
    link = None if is_open else _opened_here(app.settings, address, await invitations.set_up(app))
    if as_json:
        told = {"version": __version__, "url": address, "mcp": f"{address}/keepsake/mcp", "needs_key": needs_key}
        show.document({**told, "console": f"{address}/console", "set_up": link, "data": _data(app.settings)})
    else:
        for text in [*_welcome(app.settings, address, needs_key), *_console(app.settings, address, is_open, link)]:
            show.line(text)


def _opened_here(settings: Settings, address: str, link: str | None) -> str | None:
    """A link as it is opened on this machine, where no public address is known."""
    if link is None or settings.public_url:
        return link
    return _near(address) + link[link.index("/console/") :]


def _near(address: str) -> str:
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _console(settings: Settings, address: str, is_open: bool, link: str | None) -> list[str]:
    """Where people look, and how they get in."""
    told = ["", f"The console, for people: {settings.public_url or _near(address)}/console"]
    if link is not None:
        told += ["Nobody has an account yet. Open this link within the hour to make the first one:", f"  {link}"]
    elif is_open:
        told += ["It opens without a password while nobody has an account."]
    return [*told, "", "Ctrl-C stops it."]


def _welcome(settings: Settings, address: str, needs_key: bool) -> list[str]:
    reachable = _near(address)
    connect = f"claude mcp add --transport http keepsake {reachable}/keepsake/mcp"
    told = [
        f"Keepsake {__version__} listens on {address}",
        f"  data  {_data(settings)}",
        f"  keys  {'needed by every request' if needs_key else 'none needed from this machine, until one is made'}",
        "",
    ]
    if settings.mcp_enabled:
        told += ["Connect a coding agent, with memory of what it does (claude-code, codex, cursor, …):"]
        ours = sys.argv[0] if sys.argv[0].endswith("keepsake") else "keepsake"
        told += [f"  {ours} connect claude-code --hooks --write", ""]
        told += ["Or just Claude Code, or any MCP client, to this server:"]
        told += [f'  {connect} --header "Authorization: Bearer ks_live_…"' if needs_key else f"  {connect}"]
    else:
        told += ["The MCP endpoints are switched off (KEEPSAKE_MCP_ENABLED)."]
    if not bearer.is_loopback(settings.host):
        told += ["From other machines use this one's name, and put that name into KEEPSAKE_ALLOWED_HOSTS."]
    return told


def _data(settings: Settings) -> str:
    return place(settings.database_url) if settings.database_url else str(settings.data_dir / "keepsake.db")


def work(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Do background work beside the servers, until Ctrl-C."""
    settings = effective(data_dir, database_url)
    logs.send(settings)
    signal.signal(signal.SIGTERM, _ended)
    asyncio.run(_worked(settings, as_json))


async def _worked(settings: Settings, as_json: bool) -> None:
    async with context.open(settings) as app:
        if as_json:
            show.document({"version": __version__, "data": _data(settings)})
        else:
            show.line(f"Keepsake {__version__} works in the background of {_data(settings)}. Ctrl-C stops it.")
        await worker.run(app)


def stdio() -> None:
    """Serve one MCP client over stdin and stdout."""
    raise AssertionError("main() serves stdio before typer is loaded.")


def hook() -> None:
    """Take one event of a coding client from stdin; clients run this themselves."""
    raise AssertionError("main() runs hooks before typer is loaded.")
