"""Every client that Keepsake connects to: its files, its keys, its words. `docs/guides/connect.md` shows this table."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from keepsake.core.errors import BadInput

#: What the server is called in every client's file.
NAME = "keepsake"
#: Where a client finds its key; a file holds the key itself only where it was asked to.
KEY_VARIABLE = "KEEPSAKE_API_KEY"
Shape = Literal["claude", "nested", "gemini", "flat", "windsurf", "kiro", "vscode", "scripts", "plugin"]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where a client's hooks stand, in which shape, and its words for our events."""

    file: str
    project: str
    shape: Shape
    events: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_own_file(self) -> bool:
        """Whether the whole file is ours."""
        return self.shape in ("kiro", "vscode", "scripts", "plugin")


@dataclass(frozen=True, slots=True)
class Rules:
    """Where a client reads what it is told in every session; a file of our own, or a block in everyone's."""

    file: str = ""
    project: str = ""
    is_own_file: bool = False
    #: What its own file begins with.
    front: str = ""
    #: Where a bundle puts it in a project, when that is elsewhere.
    bundled: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """One row of the table."""

    name: str
    title: str
    #: Its configuration, for the user and in a project; the first of several that exists, else the first.
    files: tuple[str, ...]
    project: str
    #: The key that holds the servers; a TOML table when the file ends in .toml.
    key: str = "mcpServers"
    local: Mapping[str, object] = field(default_factory=dict)
    remote: Mapping[str, object] = field(default_factory=dict)
    #: Empty for a client that starts its servers itself and knows no address.
    url_key: str = "url"
    #: How a header names a variable of the environment; empty where it cannot.
    variable: str = ""
    #: It starts its servers in the folder of the project, or tells them which one is open.
    is_in_project: bool = False
    #: A command is one list, not a word and its arguments.
    is_listed: bool = False
    hooks: Hooks | None = None
    rules: Rules = field(default_factory=Rules)
    #: A folder that shows that the client is installed.
    home: str = ""
    #: What remains for the user to do.
    todo: tuple[str, ...] = ()
    hooks_todo: tuple[str, ...] = ()

    @property
    def reads_variables(self) -> bool:
        """Whether its file can name a variable of the environment instead of a key."""
        return bool(self.variable) or self.key == "mcp_servers"


_CLAUDE_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PostToolUseFailure": "tool",
    "Stop": "stop",
    "PostCompact": "compact",
    "SessionEnd": "session-end",
}
_SOME = {name: _CLAUDE_EVENTS[name] for name in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")}
_CURSOR_EVENTS = {
    "sessionStart": "session-start",
    "beforeSubmitPrompt": "prompt",
    "afterShellExecution": "tool",
    "afterMCPExecution": "tool",
    "afterFileEdit": "tool",
    "postToolUse": "tool",
    "afterAgentResponse": "stop",
    "stop": "stop",
    "sessionEnd": "session-end",
}
_GEMINI_EVENTS = {
    "SessionStart": "session-start",
    "BeforeAgent": "prompt",
    "AfterTool": "tool",
    "AfterAgent": "stop",
    "SessionEnd": "session-end",
}
_CASCADE_EVENTS = {
    "pre_user_prompt": "prompt",
    "post_read_code": "tool",
    "post_write_code": "tool",
    "post_run_command": "tool",
    "post_mcp_tool_use": "tool",
    "post_cascade_response": "stop",
}
_CLINE_EVENTS = {
    "TaskStart": "session-start",
    "TaskResume": "session-start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "TaskComplete": "session-end",
    "TaskCancel": "session-end",
}
_CODE = "{app}/Code/User"
_BRACES, _ENV = "${{{}}}", "${{env:{}}}"

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            ("{claude_json}",),
            ".mcp.json",
            local={"type": "stdio"},
            remote={"type": "http"},
            variable=_BRACES,
            is_in_project=True,
            hooks=Hooks("{claude}/settings.json", ".claude/settings.json", "claude", _CLAUDE_EVENTS),
            rules=Rules("{claude}/CLAUDE.md", "CLAUDE.md", bundled=".claude/CLAUDE.md"),
            home="{claude}",
            todo=("Restart Claude Code; `/mcp` shows the server.",),
        ),
        Client(
            "codex",
            "OpenAI Codex",
            ("{codex}/config.toml",),
            ".codex/config.toml",
            key="mcp_servers",
            local={"startup_timeout_sec": 30},
            remote={"startup_timeout_sec": 30},
            is_in_project=True,
            hooks=Hooks("{codex}/hooks.json", ".codex/hooks.json", "nested", _SOME | {"SessionEnd": "session-end"}),
            rules=Rules("{codex}/AGENTS.md", "AGENTS.md"),
            home="{codex}",
            todo=("Restart Codex; `/mcp` shows the server.",),
            hooks_todo=("Run `/hooks` in Codex and trust the new hooks: until then Codex does not run them.",),
        ),
        Client(
            "cursor",
            "Cursor",
            ("{home}/.cursor/mcp.json",),
            ".cursor/mcp.json",
            variable=_ENV,
            is_in_project=True,
            hooks=Hooks("{home}/.cursor/hooks.json", ".cursor/hooks.json", "flat", _CURSOR_EVENTS),
            rules=Rules(
                project=".cursor/rules/keepsake.mdc",
                is_own_file=True,
                front="---\ndescription: The memory of this project\nalwaysApply: true\n---\n\n",
            ),
            home="{home}/.cursor",
            todo=("Switch the server on in Cursor's settings under MCP.",),
        ),
        Client(
            "vscode",
            "VS Code (Copilot)",
            (f"{_CODE}/mcp.json",),
            ".vscode/mcp.json",
            key="servers",
            local={"type": "stdio"},
            remote={"type": "http"},
            variable="${{input:keepsake-key}}",
            is_in_project=True,
            hooks=Hooks("{home}/.copilot/hooks/keepsake.json", ".github/hooks/keepsake.json", "vscode", _SOME),
            rules=Rules(project=".github/copilot-instructions.md"),
            home=_CODE,
            todo=("Start the server in VS Code: `MCP: List Servers`.",),
        ),
        Client(
            "kiro",
            "Kiro",
            ("{home}/.kiro/settings/mcp.json",),
            ".kiro/settings/mcp.json",
            local={"disabled": False},
            remote={"disabled": False},
            variable=_BRACES,
            is_in_project=True,
            hooks=Hooks("{home}/.kiro/hooks/keepsake.json", ".kiro/hooks/keepsake.json", "kiro", _SOME),
            rules=Rules(
                "{home}/.kiro/steering/keepsake.md",
                ".kiro/steering/keepsake.md",
                is_own_file=True,
                front="---\ninclusion: always\n---\n\n",
            ),
            home="{home}/.kiro",
            hooks_todo=("Kiro CLI before 2.14 reads hooks from agent files only: update it.",),
        ),
        Client(
            "gemini",
            "Gemini CLI",
            ("{home}/.gemini/settings.json",),
            ".gemini/settings.json",
            url_key="httpUrl",
            variable=_BRACES,
            is_in_project=True,
            hooks=Hooks("{home}/.gemini/settings.json", ".gemini/settings.json", "gemini", _GEMINI_EVENTS),
            rules=Rules("{home}/.gemini/GEMINI.md", "GEMINI.md"),
            home="{home}/.gemini",
        ),
        Client(
            "windsurf",
            "Windsurf (Cascade)",
            ("{home}/.codeium/windsurf/mcp_config.json",),
            "",
            url_key="serverUrl",
            variable=_ENV,
            hooks=Hooks("{home}/.codeium/windsurf/hooks.json", ".windsurf/hooks.json", "windsurf", _CASCADE_EVENTS),
            rules=Rules("{home}/.codeium/windsurf/memories/global_rules.md", ".windsurf/rules/keepsake.md"),
            home="{home}/.codeium/windsurf",
            todo=("Refresh the servers in Cascade's MCP panel.",),
        ),
        Client(
            "devin",
            "Devin Local",
            ("{config}/devin/config.json",),
            "",
            remote={"transport": "http"},
            hooks=Hooks(
                "{config}/devin/config.json",
                "",
                "nested",
                {name: _SOME[name] for name in ("SessionStart", "UserPromptSubmit", "Stop")},
            ),
            rules=Rules("{config}/devin/AGENTS.md", "AGENTS.md"),
            home="{config}/devin",
        ),
        Client(
            "cline",
            "Cline",
            (
                f"{_CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                "{home}/.cline/data/settings/cline_mcp_settings.json",
            ),
            "",
            local={"type": "stdio", "disabled": False},
            remote={"type": "streamableHttp", "disabled": False},
            hooks=Hooks("{home}/Documents/Cline/Hooks", ".clinerules/hooks", "scripts", _CLINE_EVENTS),
            rules=Rules("{home}/Documents/Cline/Rules/keepsake.md", ".clinerules/keepsake.md", is_own_file=True),
            home=f"{_CODE}/globalStorage/saoudrizwan.claude-dev",
            hooks_todo=("Enable hooks in Cline's settings.",),
        ),
        Client(
            "opencode",
            "opencode",
            ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
            "opencode.json",
            key="mcp",
            # opencode gives up after five seconds unless told otherwise.
            local={"type": "local", "enabled": True, "timeout": 30_000},
            remote={"type": "remote", "enabled": True, "timeout": 30_000, "oauth": False},
            variable="{{env:{}}}",
            is_in_project=True,
            is_listed=True,
            hooks=Hooks("{config}/opencode/plugins/keepsake.js", ".opencode/plugins/keepsake.js", "plugin"),
            rules=Rules("{config}/opencode/AGENTS.md", "AGENTS.md"),
            home="{config}/opencode",
            hooks_todo=(
                "Start opencode once while you are online: before it loads its first plugin it fetches a package of its"
                " own from npm, and waits for it.",
            ),
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            ("{app}/Claude/claude_desktop_config.json",),
            "",
            url_key="",
            home="{app}/Claude",
            todo=("Quit Claude Desktop and start it again.",),
        ),
        Client(
            "zed",
            "Zed",
            ("{zed}/settings.json",),
            ".zed/settings.json",
            key="context_servers",
            rules=Rules("{zed}/AGENTS.md", "AGENTS.md"),
            home="{zed}",
        ),
    )
}
ALIASES = {
    "claude": "claude-code",
    "vs-code": "vscode",
    "copilot": "vscode",
    "gemini-cli": "gemini",
    "kiro-cli": "kiro",
    "kiro-ide": "kiro",
    "devin-local": "devin",
}


def named(name: str) -> Client:
    """A client by its name."""
    told = ALIASES.get(name.lower(), name.lower())
    if told not in CLIENTS:
        raise BadInput(f"There is no client {name!r}; the clients are: {', '.join(CLIENTS)}, or all.")
    return CLIENTS[told]


@dataclass(frozen=True, slots=True)
class Place:
    """Where files are: of the user, or of one project."""

    home: Path
    #: A folder to write into instead of the user's own.
    project: Path | None = None
    #: Where copies of a project's files are kept, which would litter the project.
    copies: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    platform: str = sys.platform

    @property
    def within(self) -> Path:
        """What no link may lead out of."""
        return self.project or self.home

    def config(self, client: Client) -> Path | None:
        """The file that lists a client's servers; None where a project has none."""
        if self.project is not None:
            return self.project / client.project if client.project else None
        paths = [self.at(file) for file in client.files]
        return next((path for path in paths if path.exists()), paths[0])

    def hooks(self, client: Client) -> Path | None:
        """The file or folder of a client's hooks."""
        return None if client.hooks is None else self._chosen(client.hooks.file, client.hooks.project)

    def rules(self, client: Client) -> Path | None:
        """The file of a client's rules."""
        return self._chosen(client.rules.file, client.rules.project)

    def has(self, client: Client) -> bool:
        """Whether a client seems to be installed."""
        return self.at(client.home).exists() or any(self.at(file).exists() for file in client.files)

    def _chosen(self, file: str, project: str) -> Path | None:
        if self.project is not None:
            return self.project / project if project else None
        return self.at(file) if file else None

    def at(self, file: str) -> Path:
        """A path of the table on this machine."""
        given = self.environment
        home = str(self.home)
        config = given.get("XDG_CONFIG_HOME") or f"{home}/.config"
        app, zed = config, f"{config}/zed"
        if self.platform == "darwin":
            app, zed = f"{home}/Library/Application Support", f"{home}/.config/zed"
        elif self.platform == "win32":
            app = given.get("APPDATA") or f"{home}/AppData/Roaming"
            zed = f"{app}/Zed"
        claude = given.get("CLAUDE_CONFIG_DIR")
        return Path(
            file.format(
                home=home,
                config=config,
                app=app,
                zed=zed,
                claude=claude or f"{home}/.claude",
                claude_json=f"{claude or home}/.claude.json",
                codex=given.get("CODEX_HOME") or f"{home}/.codex",
            )
        )
