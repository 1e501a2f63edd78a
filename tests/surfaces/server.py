"""The product with the probes beside it, as a program of its own: `python -m tests.surfaces.server http|stdio`.

Settings come from the environment, as the product's do.
"""

import asyncio
import signal
import sys
from typing import NoReturn

from keepsake import settings
from keepsake.context import App
from keepsake.surfaces import serve, stdio
from keepsake.surfaces.front import Endpoint
from keepsake.surfaces.http import Site
from tests.gate import gated
from tests.surfaces import probes


def extend(site: Site) -> None:
    """Add the probes at a path of their own."""
    site.more.append(("/probe", Endpoint(site.app, probes.DIALECT, site.sessions)))
    site.more.append(("/gated", Endpoint(site.app, gated.GATED, site.sessions)))


def announce(app: App, address: str) -> None:
    """Say where it listens."""
    print(address, flush=True)


def ended(signum: int, frame: object) -> NoReturn:
    """Leave as from a success, as the command line does."""
    raise SystemExit(0)


if __name__ == "__main__":
    if sys.argv[1] == "http":
        signal.signal(signal.SIGTERM, ended)
        asyncio.run(serve.run(settings.load(), announce, extend))
    else:
        asyncio.run(stdio.serve(settings.load(), probes.DIALECT, None))
