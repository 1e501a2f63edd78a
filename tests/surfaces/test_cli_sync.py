"""`keepsake sync`: a repository becomes memories, in this process or by a server elsewhere."""

from pathlib import Path

import pytest

from tests.gitting import Made
from tests.stories.processes import serving
from tests.surfaces.helpers import Terminal, keepsake

__all__ = ["keepsake"]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path / "engine")
    made.commit("Turn the wheel twice", {"README.md": "# Engine\n\nIt turns.\n"})
    return made


def test_a_bank_learns_and_tells_what_it_read(keepsake: Terminal, made: Made) -> None:
    first = keepsake("sync", "engine", "--repo", str(made.path))
    again = keepsake("sync", "engine")

    assert first.code == 0, first.err
    assert first.out.splitlines()[:2] == [
        f"engine learns from {made.path}",
        "  read 1 commits, 1 files; new memories 3, superseded 0",
    ]
    assert again.out.splitlines()[1] == "  read nothing new; new memories 0, superseded 0"
    found = keepsake(
        "call", "recall", "--dialect", "hindsight", "--bank-id", "engine", "--query", "who turned the wheel"
    ).json
    assert found["results"][0]["text"] == "Turn the wheel twice"


def test_a_folder_may_be_given_as_one_types_it(keepsake: Terminal, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.path)

    told = keepsake("sync", "engine", "--repo", ".", "--json").json

    assert (told["repo"], told["state"], told["result"]["commits"]) == (str(made.path), "completed", 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["engine", "--repo", "/nowhere"], 2, "is not a git repository"),
        (["engine", "--repo", "git@github.com:a/b.git"], 2, "not read over ssh"),
        (["engine", "--repo", "https://bob:hunter22@github.com/a/b"], 2, "a user or a password"),
        (["engine"], 2, "no repository yet"),
        (["bad/name", "--repo", "."], 2, "BANK"),
        (["engine", "--repo", "https://127.0.0.1:9/a/b"], 1, "cannot be read"),
    ],
)
def test_what_fails_is_one_sentence(keepsake: Terminal, words: list[str], code: int, said: str) -> None:
    ran = keepsake("sync", *words)

    assert ran.code == code and said in ran.err and ran.err.count("\n") == 1
    assert "hunter22" not in ran.err + ran.out and "Traceback" not in ran.err


def test_a_server_elsewhere_is_followed_and_reads_no_folder(keepsake: Terminal, made: Made, tmp_path: Path) -> None:
    keepsake("sync", "engine", "--repo", str(made.path))
    with serving(keepsake.folder) as server:
        keepsake.set(KEEPSAKE_URL=server.url)

        refused = keepsake("sync", "engine", "--repo", str(made.path))
        made.commit("Three times", {"a": "1\n"})
        again = keepsake("sync", "engine")

    assert refused.code == 2 and "does not read folders of this machine" in refused.err
    assert again.code == 0 and "read 1 commits" in again.out
