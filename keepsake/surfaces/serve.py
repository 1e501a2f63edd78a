"""`keepsake serve`: opens the store, says where it listens, and ends when told to."""

import asyncio
import socket
from collections.abc import Callable

import uvicorn

from keepsake import context
from keepsake.auth import verify
from keepsake.context import App
from keepsake.core.errors import Misconfigured
from keepsake.ops import invitations
from keepsake.settings import Settings
from keepsake.surfaces import bearer, metrics
from keepsake.surfaces.http import Site

Announce = Callable[[App, str], None]
#: How long a connection may stand idle. Whoever closes it risks a request that is on its way, so it must be the client:
#: longer than httpx (5 s, as every Python client), nginx and AWS (60 s), Go (90 s) and Google's balancer (600 s).
IDLE_SECONDS = 620


class Server(uvicorn.Server):
    """Ends open streams first, so that a shutdown does not wait for listeners."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self.site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.site.sessions.end_listening()
        await super().shutdown(sockets)


def nothing_more(site: Site) -> None:
    """The product serves what the contract names."""


async def run(settings: Settings, announce: Announce, extend: Callable[[Site], None] = nothing_more) -> None:
    """Serve until a signal says otherwise; `extend` lets tests add endpoints of their own."""
    async with context.open(settings) as app:
        if not bearer.is_loopback(settings.host) and not await _is_guarded(app):
            raise Misconfigured(
                f"Not starting on {settings.host}: nobody could be told from anybody else. Make an account first with"
                " `keepsake user invite NAME --role owner`, or a key with `keepsake key create`, or bind to 127.0.0.1."
            )
        listener = _bound(settings)
        site = Site(app)
        extend(site)
        metrics.measure()
        server = Server(configured(site), site)
        announce(app, _address(listener))
        await server.serve(sockets=[listener])


def configured(site: Site) -> uvicorn.Config:
    """How we listen."""
    return uvicorn.Config(
        site.asgi(),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=site.app.settings.shutdown_seconds,
    )


async def _is_guarded(app: App) -> bool:
    """Whether someone has a credential, or a link by which they get one."""
    return await verify.credentials_exist(app.store, app.settings) or await invitations.any_open(app)


def _bound(settings: Settings) -> socket.socket:
    """Take the port before anything is announced."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP, because asyncio turns Nagle's delay off only for sockets that say so: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise Misconfigured(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Stop what uses it, or choose another"
            " port with --port."
        ) from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def main(settings: Settings, announce: Announce) -> None:
    """Run the server in a loop of its own."""
    asyncio.run(run(settings, announce))
