"""The typer app: every command and group, and what wrong usage looks like."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from keepsake import __version__
from keepsake.settings import load
from keepsake.surfaces import logs
from keepsake.surfaces.cli import (
    approvals,
    banks,
    checks,
    config,
    connect,
    doctor,
    exec_tools,
    importing,
    keys,
    overview,
    scan,
    serving,
    syncing,
    tools,
    users,
)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    help="Keepsake, the memory server for AI agents.",
    epilog="Commands work on the store of this machine, or on the server that KEEPSAKE_URL and KEEPSAKE_API_KEY name.",
)
# The tool's arguments are not ours to know: everything after `call` is read by the command itself.
_RAW = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

app.command("serve")(serving.serve)
app.command("stdio")(serving.stdio)
app.command("hook")(serving.hook)
app.command("worker")(serving.work)
app.command("call", context_settings=_RAW)(tools.call)
app.command("connect")(connect.connect)
app.command("disconnect")(connect.disconnect)
app.add_typer(keys.app, name="key")
app.add_typer(users.app, name="user")
app.add_typer(approvals.app, name="approvals")
app.add_typer(banks.app, name="bank")
app.add_typer(checks.app, name="check")
app.add_typer(exec_tools.app, name="tool")
app.add_typer(config.app, name="config")
app.command("status")(overview.status)
app.command("doctor")(doctor.examine)
app.command("verify")(overview.verify)
app.command("scan")(scan.scan)
app.command("import")(importing.import_)
app.command("sync")(syncing.sync_)
app.command("version")(overview.version)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"keepsake {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keepsake, the memory server for AI agents."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    _quiet()
    try:
        return int(app(args=list(arguments) or ["--help"], prog_name="keepsake", standalone_mode=False) or 0)
    except typer.TyperException as error:
        print(f"keepsake: {error.format_message().rstrip('.')}. `keepsake --help` tells more.", file=sys.stderr)
        return error.exit_code


def _quiet() -> None:
    """A command says what it has to say itself; its log is for whoever asked for one."""
    settings = load()
    if settings.origins["log_level"] != "default":
        logs.send(settings)
