"""The plugin for Claude Code, made from the same table as `connect`: `make plugin` writes it."""

import json
import sys
from pathlib import Path

from keepsake import __version__
from keepsake.surfaces.connect import entries
from keepsake.surfaces.connect.clients import CLIENTS, NAME
from keepsake.surfaces.connect.entries import Target
from keepsake.surfaces.connect.jsontext import Json
from keepsake.tools import catalog

#: Where the plugin stands in the repository.
FOLDER = "plugins/claude-code"
_ABOUT = "Long-term memory: what was said, done and decided, in every session, kept on your machine."
_OWNER: dict[str, Json] = {"name": "Keepsake"}


def made() -> dict[str, str]:
    """Every file of the plugin and its marketplace, by its path in the repository."""
    client = CLIENTS["claude-code"]
    # Whoever installs a plugin has the command on their PATH.
    target = Target((NAME,), catalog.DEFAULT, is_default=True)
    hooks: Json = {name: [*items] for name, items in entries.hooks(client, target).items()}
    about: dict[str, Json] = {"name": NAME, "description": _ABOUT}
    plugin: Json = {**about, "version": __version__, "author": _OWNER, "license": "Apache-2.0", "keywords": ["memory"]}
    listed: Json = {**about, "source": f"./{FOLDER}"}
    return {
        ".claude-plugin/marketplace.json": _json(
            {"name": NAME, "owner": _OWNER, "metadata": {"description": _ABOUT}, "plugins": [listed]}
        ),
        f"{FOLDER}/.claude-plugin/plugin.json": _json(plugin),
        f"{FOLDER}/.mcp.json": _json({"mcpServers": {NAME: entries.server(client, target)}}),
        f"{FOLDER}/hooks/hooks.json": _json({"description": _ABOUT, "hooks": hooks}),
        **{f"{FOLDER}/commands/{name}.md": text for name, text in _commands().items()},
    }


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _commands() -> dict[str, str]:
    tools = {tool.operation.id: name for name, tool in catalog.DIALECTS[catalog.DEFAULT].tools.items()}
    recall, retain = tools["memory.recall"], tools["memory.retain"]
    return {
        "recall": _command(
            "Look something up in your memory",
            "QUESTION",
            f"Call `{recall}` of the MCP server `{NAME}` with this question and answer from what it finds. Say so when"
            " nothing is found; do not guess.\n\n$ARGUMENTS",
        ),
        "remember": _command(
            "Keep something in your memory",
            "WHAT",
            f"Store this with `{retain}` of the MCP server `{NAME}`, in one clear sentence per fact that will still be"
            " understood in a year, and say what you stored.\n\n$ARGUMENTS",
        ),
    }


def _command(description: str, hint: str, text: str) -> str:
    return f"---\ndescription: {description}\nargument-hint: {hint}\n---\n\n{text}\n"


def main() -> None:
    """Write the plugin into the repository that is named."""
    root = Path(sys.argv[1])
    for path, text in made().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
