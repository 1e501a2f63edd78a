"""The console entry: `keepsake stdio` and `keepsake hook` start light, every other command goes to the typer app."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from keepsake.core.bank_name import HERE
from keepsake.core.errors import BadInput, Broken, KeepsakeError, UnknownTool
from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    import asyncio
    import traceback

    from keepsake import dispatch, settings
    from keepsake.core import models
    from keepsake.hooks import command
    from keepsake.surfaces import logs, stdio
    from keepsake.surfaces.cli import app
    from keepsake.tools import catalog
else:
    app = lazy("keepsake.surfaces.cli.app")
    asyncio = lazy("asyncio")
    catalog = lazy("keepsake.tools.catalog")
    command = lazy("keepsake.hooks.command")
    dispatch = lazy("keepsake.dispatch")
    logs = lazy("keepsake.surfaces.logs")
    models = lazy("keepsake.core.models")
    settings = lazy("keepsake.settings")
    stdio = lazy("keepsake.surfaces.stdio")
    traceback = lazy("traceback")

STDIO_HELP = """Usage: keepsake stdio [--dialect NAME] [--bank NAME] [--data-dir FOLDER] [--database-url URL]

Serve one MCP client over stdin and stdout; coding clients start this themselves.

  --dialect NAME       Which set of tools to speak; `keepsake call --list` shows them.
  --bank NAME          Reach this bank alone; `.` for that of the project of the folder you are in.
  --data-dir FOLDER    Folder of the SQLite database.
  --database-url URL   PostgreSQL to use instead.
"""
_STDIO_OPTIONS = ("dialect", "bank", "data-dir", "database-url")


def main() -> None:
    """Run the command line and leave with its exit code."""
    # What Keepsake stores is for the eyes of the user who runs it.
    os.umask(0o077)
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"]:
        # An editor waits: a process this short needs no collector, and no orderly end.
        gc.disable()
        code = _hook(arguments[1:])
        sys.stdout.flush()
        os._exit(code)
    sys.exit(guarded(lambda: _stdio(arguments[1:]) if arguments[:1] == ["stdio"] else app.run(arguments)))


def _hook(arguments: Sequence[str]) -> int:
    """A hook never stands in the way of the editor that runs it."""
    try:
        return command.run(arguments)
    except Exception as error:
        _say(f"the hook failed ({type(error).__name__})")
        return 0


def guarded(work: Callable[[], int]) -> int:
    """Run a command; whatever goes wrong becomes one sentence and an exit code."""
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has left, as `head` does; Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Broken as error:
        return _failed(error.__cause__ or error)
    except KeepsakeError as error:
        _say(str(error))
        return 2 if isinstance(error, BadInput | UnknownTool) else 1
    except Exception as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    if os.environ.get("KEEPSAKE_LOG_LEVEL") == "debug":
        traceback.print_exception(error)
        _say(f"something went wrong ({type(error).__name__}); the lines above tell where.")
    else:
        _say(
            f"something went wrong ({type(error).__name__}). Run it again with KEEPSAKE_LOG_LEVEL=debug to see where,"
            " or ask `keepsake doctor`."
        )
    return 1


def _say(sentence: str) -> None:
    # A database's own words may come with a hint on a line of its own.
    print(f"keepsake: {' '.join(sentence.split())}", file=sys.stderr)


def _stdio(arguments: Sequence[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        print(STDIO_HELP, end="")
        return 0
    given = _options(arguments)
    effective = settings.load(
        data_dir=settings.folder(given["data-dir"]) if "data-dir" in given else None,
        database_url=given.get("database-url"),
    )
    name, bank = given.get("dialect", catalog.DEFAULT), given.get("bank")
    if name not in catalog.DIALECTS:
        raise BadInput(f"There is no dialect {name!r}; the dialects are: {', '.join(catalog.DIALECTS)}.")
    if bank not in (None, HERE):
        dispatch.validated(models.InBank, {"bank": bank}, "--bank")
    dialect = catalog.DIALECTS[name] if bank is None else catalog.BOUND.get(name) or catalog.DIALECTS[name]
    logs.send(effective)
    asyncio.run(stdio.serve(effective, dialect, bank))
    return 0


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """Read `--name value` and `--name=value`; typer would cost a fifth of the whole start."""
    given: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        name, has_value, value = waiting.pop(0).partition("=")
        if not name.startswith("--") or name[2:] not in _STDIO_OPTIONS:
            known = ", ".join(f"--{option}" for option in _STDIO_OPTIONS)
            raise BadInput(f"stdio does not know {name!r}; its options are {known}.")
        if not has_value and not waiting:
            raise BadInput(f"{name} needs a value.")
        given[name[2:]] = value if has_value else waiting.pop(0)
    return given
