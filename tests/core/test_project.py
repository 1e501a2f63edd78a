"""What a project is called, and what tells it from every other."""

import pytest

from keepsake.core import bank_name, project
from keepsake.core.project import Project


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/Acme/My-API.git",
        "https://github.com/acme/my-api/",
        "http://github.com:8080/acme/my-api",
        "https://alice:ghp_0123456789@GitHub.com/acme/my-api.git/",
        "https://alice@corp.example:s3cret@github.com/acme/my-api",
        "https://github.com//acme/./my-api.git?x=1#readme",
        "git@github.com:acme/my-api.git",
        "github.com:acme/my-api",
        "git@github.com:/acme/my-api.git",
        "ssh://git@github.com/acme/my-api.git",
        "ssh://git@ssh.github.com:443/acme/my-api.git",
        "git+ssh://git@github.com:22/acme/my-api.git",
        "git://github.com/acme/my-api.git",
        "  https://github.com/acme/my%2Dapi.git\n",
    ],
)
def test_every_way_to_write_a_remote_is_one_project(url: str) -> None:
    assert project.remote(url) == "github.com/acme/my-api"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://git.example.org/Team/Deep/Repo.git", "git.example.org/Team/Deep/Repo"),
        ("https://gitlab.example.org/Team/Sub/Repo.git", "gitlab.example.org/team/sub/repo"),
        ("ssh://[2001:DB8::1]:2222/srv/repo.git", "[2001:db8::1]/srv/repo"),
        ("work-laptop:src/repo", "work-laptop/src/repo"),
        ("https://github.com/acme/.git", "github.com/acme"),
    ],
)
def test_case_counts_where_the_forge_says_so(url: str, told: str) -> None:
    assert project.remote(url) == told


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/srv/git/repo.git",
        "../other",
        "file:///srv/git/repo.git",
        "C:\\src\\repo",
        "c:/src/repo",
        "https://github.com/",
        "https://github.com",
        "origin",
        "git@github.com:",
    ],
)
def test_what_is_no_remote_elsewhere_tells_no_project(url: str) -> None:
    assert project.remote(url) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("my-api", "my-api"),
        ("My Project", "My-Project"),
        (".dotfiles", "dotfiles"),
        ("a/b\\c..d\x00e\x85", "a-b-c-de"),
        ("", "project"),
        ("...", "project"),
        ("x" * 300, "x" * 128),
        ("caf\udce9", "caf\\udce9".replace("\\", "-")),
    ],
)
def test_any_folder_gives_a_name_that_a_bank_may_have(text: str, name: str) -> None:
    made = project.named(text)

    assert bank_name.checked(made) == made
    assert made == name


def test_the_next_project_of_a_name_is_told_by_its_owner_then_by_its_digest() -> None:
    one = Project("git:github.com/acme/my-api", "my-api", "/src/my-api")

    names = project.candidates(one)

    assert names[:2] == ("my-api", "acme-my-api")
    assert names[2].startswith("my-api-") and len(names[2]) == len("my-api-") + 8


def test_a_folder_is_told_from_its_namesake_by_the_folder_above() -> None:
    there = Project("dir:/home/ada/writing/notes", "notes", "/home/ada/writing/notes")
    repository = Project("dir:/home/ada/writing/notes/.git", "notes", "/home/ada/writing/notes")

    assert project.candidates(there)[1] == "writing-notes"
    assert project.candidates(repository)[1] == "writing-notes"


def test_a_folder_called_default_does_not_share_everyones_bank() -> None:
    assert "default" not in project.candidates(Project("dir:/home/ada/default", "default", "/home/ada/default"))


def test_an_override_asks_for_one_bank_only() -> None:
    assert project.candidates(Project("shared", "shared", "/src/x")) == ("shared",)


def test_the_last_name_fits_however_long_the_folder_is() -> None:
    long = Project(f"dir:/{'x' * 200}", "x" * 128, "/")

    assert all(bank_name.checked(name) == name for name in project.candidates(long))
