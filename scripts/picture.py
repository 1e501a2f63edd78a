"""Draws the README's picture from a real run: scripts/picture.py docs/images/first-success.svg

A server starts, the README's own command stores a memory, the server is killed and started again, and the command line
asks it over MCP. Nothing in the picture is typed by hand but the commands.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
PORT = 8888
ADDRESS = f"http://127.0.0.1:{PORT}"
FENCE = re.compile(r"<!-- story: (.+?) -->\n```sh\n(.*?)```", re.DOTALL)
ASK = 'keepsake call recall --query "What should I offer Dana to drink?"'
THEME = TerminalTheme(
    (250, 250, 247),
    (45, 45, 45),
    [
        (45, 45, 45),
        (176, 58, 46),
        (40, 116, 66),
        (154, 103, 0),
        (31, 97, 141),
        (118, 68, 138),
        (17, 122, 101),
        (90, 90, 90),
    ],
)

console = Console(record=True, width=96, file=sys.stderr, force_terminal=True, color_system="standard", highlight=False)


def said(text: str, style: str = "") -> None:
    """Show a line of output, its numbers as plain as its words."""
    console.print(Text(text.rstrip(), style=style))


def prompted(command: str) -> None:
    """Show a command as it was typed."""
    console.print(Text.assemble(("$ ", "bold green"), (command.rstrip(), "bold")))


def started(folder: str) -> "subprocess.Popen[str]":
    """Start a server and show what it says first."""
    prompted("make serve")
    command = [sys.executable, "-m", "keepsake", "serve", "--port", str(PORT), "--data-dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    said(server.stdout.readline(), "cyan")
    console.print()
    return server


def ran(command: str) -> None:
    """Run a command and show both it and its answer."""
    prompted(command)
    surroundings = {
        **os.environ,
        "KEEPSAKE_URL": ADDRESS,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    shell = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, env=surroundings)
    said(shell.stdout, "blue")
    console.print()


def main() -> None:
    """Live the story and draw it."""
    readme = dict(FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as folder:
        server = started(folder)
        try:
            ran(readme["store"])
            prompted(f"kill -9 {server.pid}")
            server.send_signal(signal.SIGKILL)
            server.wait()
            console.print()
            server = started(folder)
            ran(ASK)
        finally:
            server.kill()
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    drawn = console.export_svg(title="Keepsake", theme=THEME)
    # The picture must not call another site for its letters.
    target.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")
    print(f"Drew {shlex.quote(str(target))}")


if __name__ == "__main__":
    main()
