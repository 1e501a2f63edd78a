"""The README's first success, typed as it stands there, against a real server that is killed in between."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.stories.processes import serving

README = Path(__file__).parents[2] / "README.md"
FENCE = re.compile(r"<!-- story: (?P<name>.+?) -->\n```sh\n(?P<command>.*?)```", re.DOTALL)
MEMORY = "Dana drinks tea without sugar and never meets before ten."

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the README types curl")


def commands() -> dict[str, str]:
    """The commands that the README marks, by name."""
    return {found["name"]: found["command"] for found in FENCE.finditer(README.read_text(encoding="utf-8"))}


def typed(command: str, url: str) -> Any:
    """What a command of the README answers, with the server at its real address."""
    assert "http://127.0.0.1:8888" in command
    ran = subprocess.run(
        ["sh", "-c", command.replace("http://127.0.0.1:8888", url)], check=True, capture_output=True, text=True
    )
    return json.loads(ran.stdout)


def test_what_the_readme_stores_is_found_also_after_kill_9(tmp_path: Path) -> None:
    readme = commands()
    with serving(tmp_path) as server:
        stored = typed(readme["store"], server.url)
        found = typed(readme["find"], server.url)
        server.kill()

    with serving(tmp_path) as server:
        found_again = typed(readme["find"], server.url)

    assert stored["status"] == "stored"
    assert [hit["memory"]["text"] for hit in found["hits"]] == [MEMORY]
    assert [hit["memory"]["id"] for hit in found_again["hits"]] == [stored["id"]]


def test_the_readmes_bare_post_calls_a_tool(tmp_path: Path) -> None:
    readme = commands()
    with serving(tmp_path) as server:
        typed(readme["store"], server.url)

        answer = typed(readme["find over MCP"], server.url)

    (told,) = answer["result"]["content"]
    assert told["text"].startswith("- [") and MEMORY in told["text"]
