"""`keepsake tool`: what agents may ask to be run, and what became of what nobody knows about."""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from keepsake.core.errors import BadInput
from keepsake.ops import enrolment, invocations
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import ask

app = typer.Typer(help="Enrol commands and calls that agents may ask for.")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_PARAM = re.compile(rf"(?P<name>[A-Za-z_]\w*)(:(?P<type>{'|'.join(_TYPES)}))?(?P<default>=.*)?", re.DOTALL)


@app.command()
def add(  # noqa: PLR0913  # typer reads a command's options from its parameters
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What agents call it.")] = None,
    *,
    argv: Annotated[
        list[str] | None, typer.Option("--argv", metavar="WORD", help="The program, then each argument; {name} is one.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME[:TYPE][=DEFAULT]", help="An argument; a string unless told otherwise."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Enrol every [[tool]] of a TOML file instead.")
    ] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it does.")] = None,
    effect: Annotated[str | None, typer.Option(metavar="EFFECT", help="read, mutate or destructive; mutate.")] = None,
    approval: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY", help="none, person, other-person, two-persons, elicitation or sampling; person."
        ),
    ] = None,
    directory: Annotated[str | None, typer.Option(metavar="PATH", help="Where it runs.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="VARIABLE", help="A variable it gets from ours.")] = None,
    read_only: Annotated[list[str] | None, typer.Option(metavar="PATH", help="A path more that it may read.")] = None,
    writable: Annotated[list[str] | None, typer.Option(metavar="PATH", help="A path that it may write.")] = None,
    network: Annotated[bool, typer.Option("--network", help="Let it use the network.")] = False,
    no_sandbox: Annotated[bool, typer.Option("--no-sandbox", help="Run it as the server itself.")] = False,
    timeout: Annotated[int | None, typer.Option(metavar="SECONDS", help="Until it is ended; 300.")] = None,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="How many may run at once; 1.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Enrol a command, or change one; agents may then ask for it, and a person agrees."""
    sandbox: dict[str, object] = {"read_only": read_only or [], "writable": writable or [], "network": network}
    if no_sandbox:
        sandbox["kind"] = "none"
    one: dict[str, object] = {
        "name": name,
        "argv": argv,
        "parameters": _schema(param or []),
        "description": description,
        "effect": effect,
        "approval": approval,
        "directory": directory,
        "env": env,
        "sandbox": sandbox,
        "timeout_s": timeout,
        "concurrency": concurrency,
    }
    if (file is None) == (name is None):
        raise BadInput("Give the NAME of one tool with its --argv, or --file with several.")
    wanted = [one] if file is None else _tools(file)
    made = [ask(effective(data_dir, database_url), enrolment.enrol, **given) for given in wanted]
    for tool in made:
        _told(tool, as_json)


def _told(tool: enrolment.Enrolled, as_json: bool) -> None:
    if as_json:
        show.document(tool)
        return
    gone = f" {tool.withdrawn} that waited for it ended." if tool.withdrawn else ""
    show.line(f"Agents may ask for {tool.name} ({_how(tool)}).{gone}")


def _how(tool: enrolment.Enrolled) -> str:
    return f"{tool.definition['effect']}, approval: {tool.definition['approval']}"


def _schema(params: list[str]) -> dict[str, object]:
    """The schema that a few words say."""
    properties: dict[str, object] = {}
    required: list[str] = []
    for told in params:
        found = _PARAM.fullmatch(told)
        if found is None:
            raise BadInput(f"--param: {told!r} is not NAME, NAME:TYPE or NAME:TYPE=DEFAULT, TYPE one of {_TYPES}.")
        kind = found["type"] or "string"
        properties[found["name"]] = {"type": kind}
        if found["default"] is None:
            required.append(found["name"])
        else:
            properties[found["name"]] = {"type": kind, "default": _value(kind, found["default"][1:])}
    return {"type": "object", "properties": properties, "required": required}


def _value(kind: str, told: str) -> object:
    try:
        return told if kind == "string" else json.loads(told)
    except ValueError:
        raise BadInput(f"--param: {told!r} is not a default for a parameter of type {kind}.") from None


def _tools(file: Path) -> list[dict[str, object]]:
    try:
        held = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeError):
        raise BadInput(f"The file {file} cannot be read.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"The file {file} is not TOML: {error}.") from None
    found = held.get("tool")
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise BadInput(f"The file {file} holds no [[tool]]. docs/guides/execution.md has an example.")
    return found


@app.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List what agents may ask for."""
    held = ask(effective(data_dir, database_url), enrolment.list_)
    if as_json:
        show.document(held)
        return
    if not held.tools:
        show.line("Nothing is enrolled. `keepsake tool add NAME --argv PROGRAM` enrols a command.")
        return
    show.rows(
        ("NAME", "EFFECT", "APPROVAL", "SANDBOX", "RUNS"),
        [(one.name, *map(str, _columns(one.definition))) for one in held.tools],
    )


def _columns(definition: dict[str, object]) -> tuple[object, ...]:
    sandbox, http = definition["sandbox"], definition["http"]
    runs = json.dumps(definition["argv"], ensure_ascii=False)
    kind: object = sandbox["kind"] if isinstance(sandbox, dict) else ""
    if isinstance(http, dict):
        kind, runs = "-", f"{http['method']} {http['url']}"
    return definition["effect"], definition["approval"], kind, runs


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the tool.")],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Strike a tool off; what waits for it ends, what runs goes on."""
    gone = ask(effective(data_dir, database_url), enrolment.remove, name=name)
    if as_json:
        show.document(gone)
        return
    show.line(f"Nobody may ask for {gone.name} any more.")


@app.command()
def settle(
    id: Annotated[str, typer.Argument(metavar="ID", help="The invocation, by its id.")],
    status: Annotated[str, typer.Argument(metavar="STATUS", help="succeeded or failed.")],
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="How you know.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Say what became of a run whose worker died; it is never run again by itself."""
    told = ask(effective(data_dir, database_url), invocations.settle, id=id, status=status, note=note)
    if as_json:
        show.document(told)
        return
    show.line(f"{told.tool} is known to have {told.status}.")


@app.command()
def runs(
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="Only those that stand so.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List what was asked to be run, and what came of it."""
    held = ask(effective(data_dir, database_url), invocations.list_, status=status)
    if as_json:
        show.document(held)
        return
    if not held.invocations:
        show.line("Nothing was asked for.")
        return
    show.rows(
        ("ID", "TOOL", "STATUS", "ASKED BY", "WHEN"),
        [(one.id, one.tool, one.status, one.requested_by, one.created_at[:19]) for one in held.invocations],
    )
