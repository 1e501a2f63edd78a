"""Which project a folder belongs to, in repositories that git itself made."""

import os
import subprocess
from pathlib import Path

import pytest

from keepsake.core.project import Project
from keepsake.services import repository

QUIET = {
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "PATH": os.environ["PATH"],
    "GIT_ALLOW_PROTOCOL": "file",
}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, env=QUIET, check=True, capture_output=True)


def made(folder: Path, *, remote: str = "", branch: str = "main") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", branch)
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def test_a_repository_is_told_by_its_remote(tmp_path: Path) -> None:
    root = made(tmp_path / "checkout", remote="git@GitHub.com:Acme/My-API.git", branch="feature/login")
    (root / "src/deep").mkdir(parents=True)

    found = repository.project_of(str(root / "src/deep"))

    assert found == Project("git:github.com/acme/my-api", "my-api", str(root), "feature/login")


def test_two_clones_of_a_remote_are_one_project(tmp_path: Path) -> None:
    one = made(tmp_path / "one", remote="https://token:x@github.com/acme/my-api.git")
    two = made(tmp_path / "two", remote="ssh://git@github.com:22/acme/my-api")

    assert repository.project_of(str(one)).identity == repository.project_of(str(two)).identity


def test_worktrees_are_one_project_each_on_its_branch(tmp_path: Path) -> None:
    root = made(tmp_path / "api")
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "elsewhere/side"))

    main = repository.project_of(str(root))
    side = repository.project_of(str(tmp_path / "elsewhere/side"))

    assert main == Project(f"dir:{root}/.git", "api", str(root), "main")
    assert side == Project(f"dir:{root}/.git", "api", str(tmp_path / "elsewhere/side"), "side")


def test_worktrees_of_a_bare_repository_are_one_project(tmp_path: Path) -> None:
    made(tmp_path / "seed")
    git(tmp_path, "clone", "-q", "--bare", "seed", "api.git")
    git(tmp_path / "api.git", "remote", "remove", "origin")
    for name in ("a", "b"):
        git(tmp_path / "api.git", "worktree", "add", "-q", "-b", name, str(tmp_path / name))

    found = [repository.project_of(str(tmp_path / place)) for place in ("a", "b", "api.git", "api.git/refs")]

    assert {project.identity for project in found} == {f"dir:{tmp_path}/api.git"}
    assert {project.name for project in found} == {"api"}
    assert [project.branch for project in found] == ["a", "b", "main", "main"]


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    part = made(tmp_path / "part")
    whole = made(tmp_path / "whole", remote="https://github.com/acme/whole")
    git(whole, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "libs/part")

    inside = repository.project_of(str(whole / "libs/part"))

    assert inside.identity == f"dir:{whole}/.git/modules/libs/part"
    assert (inside.name, inside.root) == ("part", str(whole / "libs/part"))
    git(whole / "libs/part", "remote", "set-url", "origin", "https://github.com/acme/part")
    assert repository.project_of(str(whole / "libs/part")).identity == "git:github.com/acme/part"
    assert repository.project_of(str(whole / "libs")).identity == "git:github.com/acme/whole"


def test_a_repository_kept_apart_is_called_by_its_working_tree(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    git(tmp_path, "init", "-q", f"--separate-git-dir={tmp_path}/store/x.git", str(tmp_path / "api"))

    found = repository.project_of(str(tmp_path / "api"))

    assert (found.identity, found.name, found.root) == (f"dir:{tmp_path}/store/x.git", "api", str(tmp_path / "api"))


def test_the_git_folder_belongs_to_its_working_tree(tmp_path: Path) -> None:
    root = made(tmp_path / "api")

    assert repository.project_of(str(root / ".git/hooks")) == repository.project_of(str(root))


def test_a_folder_outside_a_repository_is_its_own_project_whatever_link_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "real/Notes").mkdir(parents=True)
    (tmp_path / "real/notes").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    through = repository.project_of(str(tmp_path / "link/Notes/"))

    assert through == Project(f"dir:{tmp_path}/real/Notes", "Notes", f"{tmp_path}/real/Notes")
    assert repository.project_of(str(tmp_path / "real/notes")).identity != through.identity


def test_git_dir_in_the_environment_is_not_listened_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = made(tmp_path / "mine"), made(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))

    assert repository.project_of(str(mine)).identity == f"dir:{mine}/.git"


def test_the_remote_that_tells_is_origin_then_upstream_then_the_first_that_is_elsewhere(tmp_path: Path) -> None:
    root = made(tmp_path / "api")
    remotes = {"backup": "/srv/git/api.git", "fork": "https://github.com/me/api"}
    remotes |= {"upstream": "https://github.com/acme/api", "origin": "https://github.com/mine/api"}
    told = []

    for name, url in remotes.items():
        git(root, "remote", "add", name, url)
        told.append(repository.project_of(str(root)).identity)

    assert told == [f"dir:{root}/.git", "git:github.com/me/api", "git:github.com/acme/api", "git:github.com/mine/api"]


def test_a_config_is_read_as_git_reads_it(tmp_path: Path) -> None:
    root = made(tmp_path / "api")
    (root / ".git/config").write_text(
        '[core]\n\turl = https://github.com/wrong/core\n[Remote "origin"] # mine\n\tfetch = x\n'
        '\tURL = "https://github.com/acme/" ; tail\n[branch "main"]\n\turl = https://github.com/wrong/branch\n'
        '[remote "upstream"]\n\tpushurl = https://github.com/wrong/push\n\turl = https://github.com/ac\\\nme/api # c\n'
    )

    assert repository.project_of(str(root)).identity == "git:github.com/acme"


@pytest.mark.parametrize("place", [".keepsake", ".keepsake/project"])
def test_an_override_file_wins_over_the_remote(tmp_path: Path, place: str) -> None:
    root = made(tmp_path / "api", remote="https://github.com/acme/api")
    (root / place).parent.mkdir(exist_ok=True)
    (root / place).write_text("# the team's\n\n  Shared Memory \nmore\n")
    (root / "src").mkdir()

    found = repository.project_of(str(root / "src"))

    assert found == Project("Shared-Memory", "Shared-Memory", str(root), "main")


def test_an_override_of_the_first_working_tree_holds_in_the_others(tmp_path: Path) -> None:
    root = made(tmp_path / "api")
    (root / ".keepsake").write_text("ours")
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))

    assert repository.project_of(str(tmp_path / "side")).identity == "ours"


def test_an_override_outside_a_repository_holds_below_its_folder(tmp_path: Path) -> None:
    (tmp_path / "notes/2026").mkdir(parents=True)
    (tmp_path / "notes/.keepsake").write_text("diary")

    found = repository.project_of(str(tmp_path / "notes/2026"))

    assert (found.identity, found.root) == ("diary", str(tmp_path / "notes"))


def test_an_override_above_the_repository_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / ".keepsake").write_text("all")
    root = made(tmp_path / "api")

    assert repository.project_of(str(root)).identity == f"dir:{root}/.git"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_override_that_says_nothing_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".keepsake").write_text(text)

    assert repository.project_of(str(tmp_path)).identity == f"dir:{tmp_path}"


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    root = made(tmp_path / "api")
    git(root, "checkout", "-q", "--detach")

    assert repository.project_of(str(root)).branch == ""


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: /nowhere", "\xff\x00", "gitdir: ../.."])
def test_a_broken_git_file_leaves_the_folder(tmp_path: Path, text: str) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api/.git").write_text(text, encoding="latin-1")

    assert repository.project_of(str(tmp_path / "api")).identity == f"dir:{tmp_path}/api"


def test_any_path_gives_a_project(tmp_path: Path) -> None:
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(strange)

    found = [repository.project_of(path) for path in (strange, f"{tmp_path}/gone/deep", f"{tmp_path}/a\x00b", "", "/")]

    assert found[0].identity == f"dir:{tmp_path}/caf\\udce9"
    assert [project.identity.encode() for project in found]
    assert found[1].identity == f"dir:{tmp_path}/gone/deep"
    assert found[4].name


def test_it_is_read_without_git_and_without_pydantic() -> None:
    script = (
        "import sys; from keepsake.services import repository; repository.project_of('.');"
        "print(*{'pydantic', 'subprocess', 'asyncio'} & sys.modules.keys())"
    )

    loaded = subprocess.run(["python", "-c", script], capture_output=True, text=True, check=True)

    assert loaded.stdout.split() == []
