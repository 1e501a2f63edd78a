"""`keepsake status`, `verify` and `version`."""

import json
import platform
from pathlib import Path
from typing import Annotated

import typer

from keepsake import __version__
from keepsake.core.errors import BadInput
from keepsake.ops import audit
from keepsake.ops import status as status_ops
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask


def status(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show the banks, memories, jobs and keys."""
    now = ask(effective(data_dir, database_url), status_ops.get)
    if as_json:
        show.document(now)
        return
    show.line(f"Keepsake {now.version} on {now.store}: {_many(now.memories, 'memory', 'memories')}")
    if now.banks:
        show.rows(("BANK", "MEMORIES"), [(bank.name, f"{bank.memories:,}") for bank in now.banks])
    waiting = _many(now.embedding.waiting, "memory waits", "memories wait")
    show.line(f"embedding: {now.embedding.model}{' (coming in)' if now.embedding.is_new else ''}, {waiting}")
    jobs = ", ".join(f"{count} {state}" for state, count in sorted(now.jobs.items()))
    show.line(f"jobs: {jobs or 'none'}")
    for failing in now.failing:
        show.line(f"  failing: {failing.kind} of bank {failing.bank} ({failing.error})")
    show.line(f"keys: {'unknown' if now.keys is None else now.keys}")


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def verify(
    file: Annotated[Path | None, typer.Argument(help="Heads exported earlier, to check the log against.")] = None,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the signed heads here instead.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check that nothing in the audit log was changed, or write down where it ends, signed."""
    settings = effective(data_dir, database_url)
    if export is not None:
        made = ask(settings, audit.export)
        _write(export, made.model_dump_json(indent=2))
        _written(export, len(made.heads), as_json)
        return
    checked = ask(settings, audit.verify, export=None if file is None else _read(file))
    if as_json:
        show.document(checked)
    else:
        size = f"{_many(checked.entries, 'entry', 'entries')} in {_many(checked.chains, 'chain', 'chains')}"
        show.line(f"The audit log holds: {size}." if checked.ok else f"The audit log was changed: {size}.")
        for broken in checked.broken:
            show.line(f"  {_whose(broken)}: entry {broken.entry} is the first that does not fit.")
    if not checked.ok:
        raise typer.Exit(1)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"Cannot write {file} ({error.strerror}).") from error


def _written(file: Path, heads: int, as_json: bool) -> None:
    if as_json:
        show.document({"file": str(file), "heads": heads})
        return
    show.line(f"{file} has the signed heads of {_many(heads, 'chain', 'chains')}. Keep it on another machine.")


def _read(file: Path) -> object:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"Cannot read {file} as an export of the audit log ({error}).") from error


def _whose(broken: audit.BrokenChain) -> str:
    if broken.bank is not None:
        return f"bank {broken.bank}"
    return "the org" if broken.chain == "0" else f"the deleted bank {broken.chain}"


def version(as_json: Json = False) -> None:
    """Show the version."""
    if as_json:
        show.document({"version": __version__, "python": platform.python_version()})
        return
    show.line(f"keepsake {__version__}")
