"""`/hooks/{client}` over real HTTP, and the command that goes through a server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from keepsake.hooks import spool
from tests.hooks.replaying import client_of, folders, recorded, repository_at
from tests.hooks.running import inbox, ran, start
from tests.surfaces.serving import Client, environment, made_key, process, serving, until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository_at(tmp_path / "my-api")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path / "data", worker="true") as address:
        yield address


def post(address: str, client: str, told: object, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{address}/hooks/{client}", json=told, headers=given, timeout=30)


def context_at(address: str, root: Path) -> str:
    """What a new session of Claude Code is told."""
    said = post(address, "claude-code", {**start(root), "session_id": "later"}).text
    return str(json.loads(said)["hookSpecificOutput"]["additionalContext"]) if said else ""


@pytest.mark.parametrize("folder", [folder for folder in folders() if folder not in ("windsurf", "devin")])
def test_every_client_is_understood(tmp_path: Path, address: str, root: Path, folder: str) -> None:
    answers = [post(address, client_of(folder), given) for _, given in recorded(folder, root)]

    assert [answer.status_code for answer in answers] == [200] * len(answers)
    until(lambda: "We decided to use JWT" in context_at(address, root))


def test_what_one_client_did_is_known_to_the_next(address: str, root: Path) -> None:
    for _, given in recorded("codex", root):
        post(address, "codex", given)

    until(lambda: "Rate limit the login route" in context_at(address, root))
    told = context_at(address, root)
    assert told.startswith("<keepsake-memory>") and told.endswith("</keepsake-memory>")
    assert "Never commit directly to main." in told
    answer = post(address, "cursor", recorded("cursor", root)[0][1]).json()
    assert "We decided to use JWT for API authentication." in answer["additional_context"]


def test_what_was_injected_is_not_stored_again(address: str, root: Path) -> None:
    for _, given in recorded("codex", root):
        post(address, "codex", given)
    until(lambda: "We decided to use JWT" in context_at(address, root))

    def retained() -> str:
        arguments = {"content": "We decided to use JWT for API authentication."}
        return str(Client(f"{address}/mcp/my-api/").call("retain", arguments)["result"]["structuredContent"])

    assert "handed this text out itself" in retained()


def test_a_prompt_is_answered_only_where_something_fits(address: str, root: Path) -> None:
    for _, given in recorded("codex", root):
        post(address, "codex", given)
    until(lambda: "We decided to use JWT" in context_at(address, root))
    asked = {**start(root), "hook_event_name": "UserPromptSubmit"}

    fits = post(
        address, "claude-code", {**asked, "prompt": "Which authentication did we decide to use for the API, JWT?"}
    )
    other = post(address, "claude-code", {**asked, "prompt": "Please write a haiku about the autumn leaves in Kyoto."})

    assert "We decided to use JWT" in fits.json()["hookSpecificOutput"]["additionalContext"]
    assert other.text == ""


def test_refusals_are_clear(address: str, root: Path) -> None:
    assert post(address, "emacs", start(root)).status_code == 404
    assert httpx.post(f"{address}/hooks/claude-code", content=b"garbage").status_code == 400
    assert httpx.post(f"{address}/hooks/claude-code", content=b"[]").status_code == 400
    assert httpx.post(f"{address}/hooks/keepsake", content=b"{}").status_code == 400
    assert httpx.get(f"{address}/hooks/claude-code").status_code in (404, 405)


def test_a_key_writes_only_where_it_reaches(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "data"
    other = made_key(folder, "other", "--bank", "elsewhere", "--bank", "there")
    only = made_key(folder, "only", "--bank", "mine")
    with serving(folder) as address:
        bare = post(address, "claude-code", start(root))
        foreign = post(address, "claude-code", start(root), Authorization=f"Bearer {other}")
        own = post(address, "claude-code", start(root), Authorization=f"Bearer {only}")
        named = post(address, "claude-code", start(root), Authorization=f"Bearer {only}", X_Bank_Id="there")

    assert [answer.status_code for answer in (bare, foreign, own, named)] == [401, 403, 200, 403]
    assert inbox(folder) == [("session-start", "claude-code")]


def test_a_server_that_comes_back_gets_what_was_spooled(tmp_path: Path, root: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "data"
    away = ran(here, "claude-code", {**start(root), "source": "startup"}, KEEPSAKE_URL="http://127.0.0.1:9")
    assert away.returncode == 0 and (here / spool.NAME).exists()

    with serving(there) as address:
        back = ran(here, "claude-code", {**start(root), "source": "resume"}, KEEPSAKE_URL=address)

    assert back.returncode == 0
    assert inbox(there) == [("session-start", "claude-code")] * 2
    assert list(here.glob(f"{spool.NAME}*")) == []


def test_the_command_gets_its_context_from_the_server(tmp_path: Path, address: str, root: Path) -> None:
    for _, given in recorded("codex", root):
        post(address, "codex", given)
    until(lambda: "We decided to use JWT" in context_at(address, root))

    done = ran(tmp_path / "here", "cline", recorded("cline", root)[0][1], KEEPSAKE_URL=address)

    assert "We decided to use JWT" in json.loads(done.stdout)["contextModification"]


def test_a_worker_takes_in_what_was_spooled(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "data"
    for _, given in recorded("claude-code", root):
        assert ran(folder, "claude-code", given).returncode == 0
    assert (folder / spool.NAME).exists()

    with process(folder, worker="true") as (_, address):
        until(lambda: "Never commit directly to main." in context_at(address, root), 60)


def test_the_plugin_for_opencode_tells_and_is_told(tmp_path: Path, address: str, root: Path) -> None:
    for _, given in recorded("codex", root):
        post(address, "codex", given)
    until(lambda: "We decided to use JWT" in context_at(address, root))
    source = Path(spool.__file__).with_name("opencode.js").read_text()
    command = json.dumps([sys.executable, "-m", "keepsake", "hook"])[1:-1]
    (tmp_path / "plugin.mjs").write_text(source.replace("__KEEPSAKE_COMMAND__", command))
    (tmp_path / "drive.mjs").write_text(DRIVE.replace("ROOT", str(root)))
    settings = environment(tmp_path / "here") | {"KEEPSAKE_URL": address, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        ["node", str(tmp_path / "drive.mjs")], env=settings, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "We decided to use JWT" in done.stdout
    until(lambda: [row for row in inbox(tmp_path / "data") if row[1] == "opencode"] == OPENCODE)


def test_the_plugin_for_opencode_waits_for_no_command_that_does_not_end(tmp_path: Path) -> None:
    source = Path(spool.__file__).with_name("opencode.js").read_text()
    # What it starts is not ended with it, and holds on to its output.
    stuck = json.dumps(["sh", "-c", "sleep 30 & wait", "sh"])[1:-1]
    (tmp_path / "plugin.mjs").write_text(source.replace("__KEEPSAKE_COMMAND__", stuck).replace("4000", "100"))
    (tmp_path / "drive.mjs").write_text(DRIVE.partition("const output")[0].replace("ROOT", str(tmp_path)))

    done = subprocess.run(["node", str(tmp_path / "drive.mjs")], capture_output=True, timeout=15, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


OPENCODE = [(event, "opencode") for event in ("session-start", "prompt", "tool", "turn-end")]
DRIVE = """
import { Keepsake } from "./plugin.mjs"
const hooks = await Keepsake({ directory: "ROOT" })
const parts = [{ type: "text", text: "Rename the login route to sign-in everywhere." }]
await hooks["chat.message"]({ sessionID: "ses_1", messageID: "m1" }, { message: {}, parts })
const output = { system: [] }
await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, output)
console.log(output.system.join("\\n"))
const args = { filePath: "ROOT/src/auth.ts", oldString: "a", newString: "b" }
await hooks["tool.execute.after"]({ tool: "edit", sessionID: "ses_1", callID: "c1", args }, { output: "" })
await new Promise((done) => setTimeout(done, 1500))
const part = { type: "text", messageID: "m2", sessionID: "ses_1", text: "Renamed." }
await hooks.event({ event: { type: "message.updated", properties: { info: { id: "m2", role: "assistant" } } } })
await hooks.event({ event: { type: "message.part.updated", properties: { part } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
"""
