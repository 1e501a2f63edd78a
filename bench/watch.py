"""What watching costs: `python -m bench.watch [postgres] [CHECKS] [SECONDS]`; the bar is 1,000 checks a minute."""

import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench.speed import TICK, cpu, server
from keepsake import context, dispatch, settings
from keepsake.core.principal import local_owner

#: Every check has run once before, so that they are spread over the minute and everything is loaded.
WARM_S = 75
#: One check in so many is of this kind, as in a company: mostly pages.
KINDS = ("http", "http", "https", "http", "https", "http", "tcp", "redis", "https", "http")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A page, or a Redis, whatever is asked for."""
    try:
        line = await reader.readline()
        if line.startswith(b"PING"):
            writer.write(b"+PONG\r\n")
        elif line:
            while (await reader.readline()).strip():
                pass
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nall is well")
        await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve(certificate: str) -> None:
    """What is watched, in a process of its own."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    plain = await asyncio.start_server(answer, "127.0.0.1", 0)
    secure = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    print(*(each.sockets[0].getsockname()[1] for each in (plain, secure)), flush=True)
    await asyncio.Event().wait()


@contextmanager
def targets(folder: Path) -> Iterator[tuple[int, int]]:
    """The ports of something to watch, without and with TLS; this process trusts its certificate."""
    from tests import watched

    authority = watched.authority(folder)
    authority.server(days=90)
    os.environ["SSL_CERT_FILE"] = str(authority.bundle)
    command = [sys.executable, "-m", "bench.watch", "serve", str(folder / "server-90.pem")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        plain, secure = process.stdout.readline().split()
        yield int(plain), int(secure)
    finally:
        process.terminate()
        process.wait(10)


async def add(data_dir: Path, url: str, count: int, plain: int, secure: int) -> None:
    """So many checks, each due once a minute."""
    addresses: dict[str, dict[str, object]] = {
        "http": {"kind": "http", "target": f"http://127.0.0.1:{plain}/", "contains": "is well"},
        "https": {"kind": "http", "target": f"https://localhost:{secure}/", "tls_days": 14},
        "tcp": {"kind": "tcp", "target": f"127.0.0.1:{plain}"},
        "redis": {"kind": "redis", "target": f"127.0.0.1:{plain}"},
    }
    async with context.open(settings.load({}, data_dir=data_dir, database_url=url or None)) as app:
        for n in range(count):
            given = addresses[KINDS[n % len(KINDS)]]
            await dispatch.call(app.ctx(local_owner(), "bench"), "check.add", {"name": f"check {n}", **given})


async def found(data_dir: Path, url: str, since: int) -> tuple[int, int]:
    """Runs since a moment, and how many of them failed."""
    async with context.open(settings.load({}, data_dir=data_dir, database_url=url or None)) as app:
        sql = "SELECT count(*) AS runs, coalesce(sum(1 - ok), 0) AS failures FROM check_results WHERE at >= :since"
        [row] = await app.store.read(1, lambda tx: tx.all(sql, since=since))
        return int(row["runs"]), int(row["failures"])


def of_postgres(url: str) -> float:
    """Seconds of CPU that the whole of a PostgreSQL has used, with the processes that have ended."""
    if not url:
        return 0.0
    folder = parse_qs(urlsplit(url).query)["host"][0]
    postmaster = int(Path(folder, "postmaster.pid").read_text().split()[0])
    fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    ended = (int(fields[13]) + int(fields[14])) / TICK
    return cpu(postmaster) + ended + sum(cpu(int(child)) for child in children)


def measured(url: str = "", count: int = 1_000, seconds: int = 120) -> dict[str, float]:
    """The share of a core that a server uses which watches so much, and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with targets(folder) as (plain, secure):
            asyncio.run(add(folder, url, count, plain, secure))
            with server(folder, url, worker=True) as (_, pid):
                time.sleep(WARM_S)
                began, at = time.monotonic(), time.time_ns() // 1000
                own, others = cpu(pid), of_postgres(url)
                time.sleep(seconds)
                own, others = cpu(pid) - own, of_postgres(url) - others
                passed = time.monotonic() - began
            runs, failures = asyncio.run(found(folder, url, at))
    return {
        "% of a core": 100 * own / passed,
        "% of a core, PostgreSQL with all its processes": 100 * others / passed,
        "runs a minute": 60 * runs / passed,
        "failures": failures,
        "ms CPU a run": 1_000 * (own + others) / max(1, runs),
    }


def main() -> None:
    """Measure one store."""
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(sys.argv[2]))
        return
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    if "postgres" in sys.argv:
        from bench.__main__ import postgres

        with postgres() as url:
            told = measured(url, *numbers)
    else:
        told = measured("", *numbers)
    for what, figure in told.items():
        print(f"  {what:<50}{figure:>10.2f}")


if __name__ == "__main__":
    main()
