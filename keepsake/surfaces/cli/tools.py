"""`keepsake call`: any tool of a dialect, from the terminal."""

from collections.abc import Sequence
from typing import Annotated

import typer

from keepsake import dispatch
from keepsake.core.errors import BadInput, UnknownTool
from keepsake.core.models import InBank
from keepsake.surfaces.cli import arguments, show
from keepsake.surfaces.cli.options import effective
from keepsake.surfaces.cli.reach import ask_tool
from keepsake.tools import catalog, gate
from keepsake.tools.dialect import Dialect, Text, Tool, schema

#: The command's own options with a value, and those without.
OWN, FLAGS = ("dialect", "bank", "json-args", "data-dir", "database-url"), ("json", "list", "help")
HELP = """Usage: keepsake call TOOL [--ARGUMENT VALUE …] [OPTIONS]

Call any tool of a dialect, for example: keepsake call recall --query "who likes tea"
Lists take their option several times, or a JSON array; objects are JSON.

  --json-args '{…}'    All arguments as one JSON object.
  --dialect NAME       Which set of tools.
  --bank NAME          Stay within this bank.
  --data-dir FOLDER    Folder of the SQLite database.
  --database-url URL   PostgreSQL to use instead.
  --json               Print one JSON document; only results that are a text to read are not one without it.
  --list               List the tools.
  TOOL --help          Show the arguments of a tool.
"""
Words = Annotated[list[str] | None, typer.Argument(metavar="TOOL [--ARGUMENT VALUE …]", show_default=False)]


def call(words: Words = None) -> None:
    """Call any tool of a dialect.

    The arguments are those of the tool, or one JSON object with `--json-args '{…}'`. `keepsake call --list` lists the
    tools, `keepsake call TOOL --help` the arguments of one, and `keepsake call --help` the other options.
    """
    name, own, rest = split(words or [])
    dialect = _dialect(own.get("dialect", catalog.DEFAULT), own.get("bank"))
    if "list" in own:
        _list(dialect, as_json="json" in own)
        return
    if name is None and "help" in own:
        print(HELP, end="")
        return
    if name is None:
        raise BadInput("Say which tool to call; `keepsake call --list` shows them.")
    tool = dialect.tools.get(name) or gate.TOOLS.get(name)
    if tool is None:
        raise UnknownTool(f"There is no tool {name!r} in {dialect.name}; `keepsake call --list` shows the tools.")
    if "help" in own:
        _help(tool)
        return
    given = arguments.parsed(rest, _properties(tool))
    if "json-args" in own:
        given = {**arguments.document(own["json-args"]), **given}
    settings = effective(own.get("data-dir"), own.get("database-url"))
    result = ask_tool(settings, dialect, tool, given, own.get("bank"))
    if isinstance(result, Text) and "json" not in own:
        for line in result.told().splitlines():
            show.line(line)
    else:
        show.document(result.model_dump(mode="json", exclude_none=True))


def split(words: Sequence[str]) -> tuple[str | None, dict[str, str], list[str]]:
    """Part the tool's name and the command's own options from the arguments of the tool."""
    name: str | None = None
    own: dict[str, str] = {}
    rest: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        option, has_value, value = word.partition("=")
        if option.removeprefix("--") in FLAGS and option.startswith("--") and not has_value:
            own[option[2:]] = ""
        elif option.startswith("--") and option[2:] in OWN:
            if not has_value and not waiting:
                raise BadInput(f"{option} needs a value.")
            own[option[2:]] = value if has_value else waiting.pop(0)
        elif name is None and not word.startswith("-"):
            name = word
        else:
            rest.append(word)
            if word.startswith("--") and not has_value and waiting and not waiting[0].startswith("--"):
                rest.append(waiting.pop(0))
    return name, own, rest


def _dialect(name: str, bank: str | None) -> Dialect:
    if name not in catalog.DIALECTS:
        raise BadInput(f"There is no dialect {name!r}; the dialects are: {', '.join(catalog.DIALECTS)}.")
    if bank is None:
        return catalog.DIALECTS[name]
    dispatch.validated(InBank, {"bank": bank}, "--bank")
    return catalog.BOUND.get(name, catalog.DIALECTS[name])


def _properties(tool: Tool) -> dict[str, object]:
    properties = schema(tool.arguments).get("properties", {})
    assert isinstance(properties, dict)
    return properties


def _list(dialect: Dialect, as_json: bool) -> None:
    tools = dialect.tools.values()
    if as_json:
        listed = [{"name": t.name, "effect": t.operation.effect, "description": t.operation.docs} for t in tools]
        show.document({"dialect": dialect.name, "tools": listed})
        return
    show.rows(("TOOL", "EFFECT", "WHAT IT DOES"), [(t.name, t.operation.effect, t.operation.docs) for t in tools])


def _help(tool: Tool) -> None:
    show.line(tool.operation.docs)
    show.line()
    required = schema(tool.arguments).get("required", [])
    assert isinstance(required, list)
    cells = []
    for name, part in _properties(tool).items():
        told = str(part.get("description", "")) if isinstance(part, dict) else ""
        kind = arguments.kind_of(part) or "JSON"
        cells.append((f"--{name}", kind, "required" if name in required else "", told))
    show.rows(("ARGUMENT", "TYPE", "", "MEANING"), cells)
