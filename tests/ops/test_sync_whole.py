"""A sync from its beginning to its end: git and GitHub in one job, what it says meanwhile, and how it goes on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from keepsake import settings, worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.clock import HOUR
from keepsake.ops import announced
from keepsake.services import github
from keepsake.services.github import Hub
from tests.github_server import Forge
from tests.gitting import Made
from tests.llm_server import Fails
from tests.ops import hubbing
from tests.ops.hubbing import TOKEN
from tests.ops.syncing import record, repo_of, synced, told

pytestmark = pytest.mark.anyio
forge = hubbing.forge


@pytest.fixture
def app(app: App, forge: Forge) -> App:
    environment = {"KEEPSAKE_GITHUB_URL": forge.url, "KEEPSAKE_GITHUB_TOKEN": TOKEN}
    return replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))


@pytest.fixture(autouse=True)
def hub(app: App) -> Hub:
    made = github.configured(app.settings)
    made.pause_s = 0.01
    return made


@pytest.fixture
def made(tmp_path: Path, forge: Forge) -> Made:
    """A folder that came from GitHub, where people talk about it."""
    made = Made(tmp_path / "keeper")
    made.git("remote", "add", "origin", f"{forge.url}/octo/keeper.git")
    made.commit("Begin", {"README.md": "# Keeper\n\nIt keeps.\n"})
    forge.issue(1, "It loses things", "Since Monday.")
    forge.pull(2, "Lose nothing", "Because of issue 1.", "grace")
    forge.release("v1.0", "First", "It keeps.")
    return made


async def subtypes(app: App) -> list[str]:
    return sorted(memory.subtype for memory in await told(app))


async def test_a_folder_from_github_brings_its_conversations_with_it(app: App, made: Made) -> None:
    ended = await synced(app, made.path)

    repo = await repo_of(app)
    assert (ended.state, repo.state, repo.note, repo.full_name) == ("completed", "completed", "", "octo/keeper")
    assert await subtypes(app) == ["commit", "issue", "pull", "readme", "release", "tree"]
    shown = json.loads(ended.result)
    assert {name: shown[name] for name in ("commits", "pulls", "issues", "releases")} == {
        "commits": 1,
        "pulls": 1,
        "issues": 1,
        "releases": 1,
    }


async def test_a_folder_from_elsewhere_is_no_ones_at_github(app: App, made: Made, forge: Forge) -> None:
    made.git("remote", "set-url", "origin", "https://gitlab.com/octo/keeper.git")

    await synced(app, made.path)

    assert (forge.asked, (await repo_of(app)).full_name) == ([], "")


async def test_a_limit_puts_the_rest_off_and_says_until_when(app: App, made: Made, forge: Forge, hub: Hub) -> None:
    forge.will(Fails(429, {"Retry-After": "1800"}), on="/releases")

    ended = await synced(app, made.path)

    repo, shown = await repo_of(app), json.loads(ended.result)
    assert (ended.state, ended.attempts, repo.state) == ("pending", 0, "partial")
    assert shown["doing"] == "waiting for GitHub" and clock.parse(shown["waiting_until"]) > clock.now()
    assert repo.note.startswith("GitHub takes no more requests before")
    assert await subtypes(app) == ["commit", "issue", "pull", "readme", "tree"]
    assert not await worker.step(app, ["sync"])

    hub._rests_until = 0
    assert await worker.step(replace(app, now=lambda: clock.now() + HOUR), ["sync"])

    repo = await repo_of(app)
    assert ((await record(app, ended.id)).state, repo.state, repo.note) == ("completed", "completed", "")
    assert await subtypes(app) == ["commit", "issue", "pull", "readme", "release", "tree"]


async def test_a_fault_leaves_what_was_read_and_is_tried_again(app: App, made: Made, forge: Forge) -> None:
    forge.will(*[Fails(502)] * 4, on="/releases")

    ended = await synced(app, made.path)

    repo = await repo_of(app)
    assert (ended.state, ended.attempts, repo.state) == ("pending", 1, "partial")
    assert ended.error.startswith("unavailable: ") and "502" in repo.note
    assert await subtypes(app) == ["commit", "issue", "pull", "readme", "tree"]

    assert await worker.step(replace(app, now=lambda: clock.now() + HOUR), ["sync"])

    assert (await repo_of(app)).state == "completed"
    assert await subtypes(app) == ["commit", "issue", "pull", "readme", "release", "tree"]


async def test_a_refusal_is_marked_and_not_tried_again(app: App, made: Made, forge: Forge) -> None:
    forge.token = "another"

    ended = await synced(app, made.path)

    repo = await repo_of(app)
    assert (ended.state, repo.state) == ("completed", "partial")
    assert "GitHub does not take the token" in repo.note
    assert TOKEN not in repo.note + ended.result


async def test_what_github_announces_is_read_by_the_next_sync(app: App, made: Made, forge: Forge) -> None:
    await synced(app, made.path)
    forge.comment(1, "Found it: the lock was missing.")
    forge.delete(2)

    await announced.deleted(app, "Octo/Keeper")
    assert await worker.step(app, ["sync"])

    assert [memory.text for memory in await told(app, "issue", "pull")] == [
        "It loses things\n\nSince Monday.",
        "bob: Found it: the lock was missing.",
    ]
