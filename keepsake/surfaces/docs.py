"""The reference pages, made from the declarations: `python -m keepsake.surfaces.docs docs/reference`."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from keepsake.core.errors import ALL, KeepsakeError
from keepsake.core.operation import SCOPES, AnyOperation, Effect
from keepsake.hooks import command as hook
from keepsake.ops.everything import REGISTRY
from keepsake.settings import SETTINGS, Setting
from keepsake.surfaces import main
from keepsake.surfaces.bodies import TooLarge
from keepsake.surfaces.cli import app as cli
from keepsake.surfaces.connect import capabilities
from keepsake.tools import catalog
from keepsake.tools.dialect import Dialect, Tool, schema

MADE = "<!-- Made by `make docs` from the declarations in the code; do not edit. -->"
#: Errors that no tool call meets.
ELSEWHERE = {"misconfigured": "at start only", "wrong_host": "as over REST", "wrong_origin": "as over REST"}
#: The one default that depends on the machine.
DATA_HOME = (
    "`~/.local/share/keepsake` (Linux), `~/Library/Application Support/keepsake` (macOS),"
    " `%LOCALAPPDATA%\\keepsake` (Windows)"
)


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    made = {
        "operations.md": operations(),
        "settings.md": settings(),
        "errors.md": errors(),
        "scopes.md": scopes(),
        "commands.md": commands(),
        "clients.md": clients(),
    }
    made |= {f"tools-{name}.md": dialect(catalog.DIALECTS[name], catalog.BOUND.get(name)) for name in catalog.DIALECTS}
    return {name: f"{MADE}\n\n{text.strip()}\n" for name, text in made.items()}


def dialect(told: Dialect, bound: Dialect | None) -> str:
    """The tools of one dialect."""
    parts = [f"# Tools of the {told.name} dialect", f"{len(told.tools)} tools. The server tells every client:"]
    parts.append(f"> {told.instructions}")
    if bound is not None:
        missing = [f"`{name}`" for name in told.tools if name not in bound.tools]
        gone = f"; {', '.join(missing)} are not there" if missing else ""
        parts.append(
            f"At an endpoint that is bound to one bank there are {len(bound.tools)} of them, without their bank"
            f" argument{gone}."
        )
    parts.append(table(("tool", "effect", "what for"), (_in_short(tool) for tool in told.tools.values())))
    parts += [_tool(tool) for tool in told.tools.values()]
    return "\n\n".join(parts)


def _in_short(tool: Tool) -> tuple[str, ...]:
    return f"[`{tool.name}`](#{_anchor(tool.name)})", tool.operation.effect.value, tool.operation.docs


def _tool(tool: Tool) -> str:
    operation = tool.operation
    facts = (
        f"- operation: [`{operation.id}`](operations.md#{_anchor(operation.id)})\n"
        f"- effect: {operation.effect.value}; scopes: {_scopes(operation)}\n"
        f"- hints: {', '.join(_hints(tool))}"
    )
    return "\n\n".join([f"## {tool.name}", tool.description, facts, *_shapes(tool.arguments, tool.results)])


def _hints(tool: Tool) -> Iterator[str]:
    effect = tool.operation.effect
    yield f"readOnlyHint {_yes(effect is Effect.READ)}"
    yield f"destructiveHint {_yes(effect is Effect.DESTRUCTIVE)}"
    yield f"idempotentHint {_yes(effect is Effect.READ)}"
    yield f"openWorldHint {_yes(tool.open_world)}"


def operations() -> str:
    """Every operation as REST runs it."""
    parts = [
        "# Operations",
        "Every operation is at `POST /v1/operations/{id}` with its arguments as a JSON object; `/openapi.json`"
        " describes them all. A tool is another name for one of these.",
    ]
    for id in sorted(REGISTRY):
        operation = REGISTRY[id]
        facts = f"- effect: {operation.effect.value}; scopes: {_scopes(operation)}"
        parts += [f"## {id}", operation.docs, facts, *_shapes(operation.given, operation.result)]
    return "\n\n".join(parts)


def _shapes(takes: type[BaseModel], gives: type[BaseModel]) -> Iterator[str]:
    arguments = list(_fields(takes, with_defaults=True))
    yield table(("argument", "type", "default", "meaning"), arguments) if arguments else "No arguments."
    result = [(name, kind, meaning) for name, kind, _, meaning in _fields(gives, with_defaults=False)]
    yield table(("result", "type", "meaning"), result)


def _fields(model: type[BaseModel], *, with_defaults: bool) -> Iterator[tuple[str, str, str, str]]:
    whole: Mapping[str, Any] = schema(model)
    required = set(whole.get("required", ())) if with_defaults else set()
    for name, field in whole.get("properties", {}).items():
        default = "required" if name in required else _default(field.get("default"))
        yield f"`{name}`", kind(field), default, str(field.get("description", ""))


def _default(value: object) -> str:
    return "" if value in (None, "", [], {}) else f"`{value}`"


def kind(field: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "anyOf" in field:
        return " or ".join(kind(one) for one in field["anyOf"] if one.get("type") != "null")
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {kind(field.get('items', {}))}"
    if field.get("type") == "object" and "properties" in field:
        return f"object with {', '.join(f'`{name}`' for name in field['properties'])}"
    return str(field.get("type", "any JSON")) + _bounds(field)


def _bounds(field: Mapping[str, Any]) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    longest = field.get("maxLength")
    return f", at most {longest:,} characters" if longest is not None else ""


def settings() -> str:
    """Every setting with its variable."""
    return "\n\n".join(
        [
            "# Settings",
            "A command-line flag comes first, then the variable, then its aliases in the order given, then the default."
            " `keepsake config list` shows the values in effect and where each came from.",
            table(("setting", "variable", "also read", "default", "meaning"), (_setting(each) for each in SETTINGS)),
        ]
    )


def _setting(each: Setting) -> tuple[str, ...]:
    default = DATA_HOME if each.name == "data_dir" else f"`{_written(each.default)}`"
    secret = " Never shown." if each.secret else ""
    shown = default if _written(each.default) else ""
    return (
        f"`{each.name}`",
        f"`{each.variable}`",
        ", ".join(f"`{alias}`" for alias in each.aliases),
        shown,
        each.meaning + secret,
    )


def _written(value: object) -> str:
    if isinstance(value, bool):
        return _yes(value)
    return " ".join(value) if isinstance(value, tuple) else str(value)


def errors() -> str:
    """Every error code with how it looks on each surface."""
    every: tuple[type[KeepsakeError], ...] = (*ALL, TooLarge)
    known = sorted(every, key=lambda error: (error.status, error.code))
    return "\n\n".join(
        [
            "# Errors",
            'Over REST an error is `{"error": {"code": …, "message": …}}` with its HTTP status. Over MCP it is a'
            " JSON-RPC error with the code below, or a tool result with `isError` that the model can read and act on."
            " The message always says what to do next.",
            table(("code", "HTTP status", "over MCP", "meaning"), (_error(error) for error in known)),
        ]
    )


def _error(error: type[KeepsakeError]) -> tuple[str, ...]:
    over_mcp = str(error.rpc) if error.rpc else ELSEWHERE.get(error.code, "result with `isError`")
    return f"`{error.code}`", str(error.status), over_mcp, (error.__doc__ or "").strip()


def scopes() -> str:
    """Every scope and what it opens today."""
    rows = [
        (
            f"`{scope}`",
            meaning,
            ", ".join(
                f"[`{id}`](operations.md#{_anchor(id)})"
                for id in sorted(REGISTRY)
                if scope in REGISTRY[id].named_scopes
            ),
        )
        for scope, meaning in SCOPES.items()
    ]
    return "\n\n".join(
        [
            "# Scopes",
            "A key carries scopes, and an operation runs only if the key has all that it needs. A deletion also needs a"
            " key made with `--allow-destructive`. A scope without operations is there for what is still to come.",
            table(("scope", "meaning", "operations that need it"), rows),
        ]
    )


def commands() -> str:
    """Every command with its arguments."""
    parts = [
        "# Commands",
        "Every command works on the store of this machine, or on the server that `KEEPSAKE_URL` names (with"
        " `KEEPSAKE_API_KEY`). Exit 0 is success, 2 wrong usage, 1 anything else, with one sentence on stderr.",
    ]
    for name, command in _leaves(typer.main.get_command(cli.app)):
        # These run before typer is loaded, and tell their own options.
        own = {"stdio": main.STDIO_HELP, "hook": hook.help_text()}
        told = f"```text\n{own[name]}```" if name in own else _usage(command)
        parts += [f"## keepsake {name}", told]
    return "\n\n".join(parts)


def command_names() -> list[str]:
    """Every command as it is typed."""
    return [name for name, _ in _leaves(typer.main.get_command(cli.app))]


def _leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The commands under a group; what typer makes of them has no type to name."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for each, child in command.commands.items():
        if not child.hidden:
            yield from _leaves(child, f"{name} {each}".strip())


def _usage(command: Any) -> str:
    rows = [
        (
            "`" + (", ".join(each.opts) if each.param_type_name == "option" else each.display_name_raw) + "`",
            "required" if each.required else _default(each.default or None),
            each.help or "",
        )
        for each in command.params
        if not each.hidden
    ]
    help = " ".join((command.help or "").split())
    return f"{help}\n\n{table(('argument', 'default', 'meaning'), rows)}" if rows else help


def _scopes(operation: AnyOperation) -> str:
    return ", ".join(f"`{scope}`" for scope in sorted(operation.named_scopes)) or "none"


def _anchor(heading: str) -> str:
    """How a heading is addressed: without its dots."""
    return heading.replace(".", "")


def _yes(value: bool) -> str:
    return "true" if value else "false"


def clients() -> str:
    """What each client can do with a server."""
    parts = [
        "# What clients can do",
        "Which parts of MCP each client knows, as far as was published; `?` where nobody has looked. It changes faster"
        " than the protocol: try it. `keepsake connect` writes their files"
        " ([how](../guides/connect.md)).",
        table(capabilities.HEADINGS, capabilities.rows()),
        "Prompts and resources are those of the [xerotier dialect](tools-xerotier.md), whose bundles call the server"
        " `xerotier`; connected by `keepsake connect` it is called `keepsake`, so write that in the place of the name."
        " Without resources, the tools read the same; without elicitation, name the workspace by its header.",
    ]
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(folder: Path) -> None:
    """Write every page, and remove those that no declaration asks for any more."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
