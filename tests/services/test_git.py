"""Reading repositories with the real git, whatever they hold and whatever their configuration wants."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from keepsake.core.errors import BadInput, NotFound
from keepsake.services.git import Change, Commit, Failed, Git
from tests.gitting import BEGAN, Made

pytestmark = pytest.mark.anyio
SECOND = 1_000_000


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "repo")


async def commits(git: Git, counted: bool = True) -> list[Commit]:
    refs = await git.refs()
    return [one async for one in git.commits(refs.commits.values(), [], counted=counted)]


async def test_a_commit_comes_with_its_message_author_date_and_files(made: Made) -> None:
    made.commit("Begin", {"a.txt": "one\n", "b.txt": "x\n"})
    sha = made.commit("Say more\n\nBecause it was too short.", {"a.txt": "one\ntwo\n", "b.txt": None}, "Bob <b@x.org>")

    first, last = await commits(Git(made.path))

    assert first.message == "Begin" and first.parents == ()
    assert last == Commit(
        sha=sha,
        parents=(first.sha,),
        author="Bob",
        email="b@x.org",
        at=(BEGAN + 7200) * SECOND,
        message="Say more\n\nBecause it was too short.",
        changes=(Change("a.txt", 1, 0), Change("b.txt", 0, 1)),
        files=2,
        added=1,
        removed=1,
    )


async def test_renamed_files_strange_names_binaries_and_merges(made: Made) -> None:
    made.commit("Begin", {"old name.txt": "line\n" * 30, "tab\there": "x\n", "ü.md": "y\n", "b.bin": b"\0\1"})
    made.git("mv", "old name.txt", "new name.txt")
    made.commit("Rename")
    made.git("checkout", "-q", "-b", "side", "HEAD~1")
    made.commit("Side", {"side": "1\n"})
    made.git("checkout", "-q", "main")
    made.count += 1
    made.git("merge", "-q", "--no-ff", "-m", "Join", "side")

    first, *_, last = await commits(Git(made.path))
    found = {one.message: one for one in await commits(Git(made.path))}

    assert {change.path for change in first.changes} == {"old name.txt", "tab\there", "ü.md", "b.bin"}
    assert Change("b.bin") in first.changes
    assert found["Rename"].changes == (Change("new name.txt", 0, 0),)
    assert last.is_merge and last.changes == ()


async def test_without_counting_the_files_are_named_all_the_same(made: Made) -> None:
    made.commit("Begin", {"a": "1\n", "b/c": "2\n"})

    (one,) = await commits(Git(made.path), counted=False)

    assert one.changes == (Change("a"), Change("b/c")) and one.files == 2


async def test_messages_that_are_no_text_and_times_that_are_none(made: Made) -> None:
    made.commit("Begin", {"a": "1\n"})
    made.raw(b"caf\xe9 in latin\n")
    made.raw(b"late\n", at="99999999999999 +0000")
    made.raw(b"", author=b" <>")
    made.raw(b"line\x01with\x1e signs\n")

    _, latin, late, silent, signs = sorted(await commits(Git(made.path)), key=lambda one: len(one.parents) and 1)[:5]

    assert latin.message == "caf� in latin"
    assert late.at == BEGAN * SECOND
    assert silent.message == "" and silent.author == ""
    assert signs.message == "line\x01with\x1e signs"


async def test_only_what_known_commits_do_not_reach_is_read(made: Made) -> None:
    first = made.commit("One", {"a": "1\n"})
    second = made.commit("Two", {"a": "2\n"})
    git = Git(made.path)

    assert [one.sha async for one in git.commits([second], [first])] == [second]
    assert await git.count([second], [first]) == 1
    assert await git.reached([second], []) == [second, first]
    assert await git.exists(first, "0" * 40, "not a name") == {first}


async def test_refs_tags_and_what_is_checked_out(made: Made) -> None:
    sha = made.commit("One", {"a": "1\n"})
    made.git("tag", "light")
    made.git("tag", "-a", "v1.0", "-m", "The first\n\nWith a word.")
    made.git("tag", "tree", "HEAD^{tree}")

    refs = await Git(made.path).refs()

    assert (refs.branch, refs.head) == ("main", sha)
    assert set(refs.commits.values()) == {sha}
    assert [(tag.name, tag.sha, tag.message) for tag in refs.tags] == [
        ("light", sha, ""),
        ("v1.0", sha, "The first\n\nWith a word."),
    ]


async def test_an_empty_repository_has_nothing_and_says_so(made: Made) -> None:
    refs = await Git(made.path).refs()

    assert (refs.head, dict(refs.commits), list(refs.tags)) == ("", {}, [])


async def test_a_branch_is_found_where_head_names_one_that_does_not_exist(made: Made) -> None:
    sha = made.commit("One", {"a": "1\n"})
    made.git("symbolic-ref", "HEAD", "refs/heads/elsewhere")

    refs = await Git(made.path).refs()

    assert (refs.branch, refs.head) == ("main", sha)


async def test_files_are_listed_and_read_but_links_and_modules_are_not_followed(made: Made) -> None:
    made.put({"README.md": "# Hi\ntwo\nthree\n", "docs/a b.md": "x"})
    (made.path / "link.md").symlink_to("/etc/passwd")
    made.commit("One")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{made.head},module")
    made.count += 1
    made.git("commit", "-qm", "Module")
    git = Git(made.path)

    entries = {entry.path: entry for entry in await git.tree()}

    assert {path: entry.kind for path, entry in entries.items()} == {
        "README.md": "file",
        "docs/a b.md": "file",
        "link.md": "link",
        "module": "module",
    }
    assert entries["README.md"].size == 15
    assert await git.blob("HEAD:README.md", 100) == b"# Hi\ntwo\nthree\n"
    assert await git.lines("HEAD", "README.md", 2, 3, 100) == ["two", "three"]
    assert dict([one async for one in git.blobs([entries["docs/a b.md"].blob, "0" * 40], 100)]) == {
        entries["docs/a b.md"].blob: b"x"
    }
    for name in ("HEAD:none.md", "HEAD:docs", "HEAD:module", "nonsense"):
        with pytest.raises(NotFound):
            await git.blob(name, 100)
    for name in ("HEAD:README.md", "-x", "HEAD:a\nHEAD:b"):
        with pytest.raises(BadInput):
            await git.blob(name, 3)


async def test_the_history_of_a_path_and_of_a_text(made: Made) -> None:
    made.commit("One", {"a": "alpha\n"})
    made.commit("Two", {"b": "beta\n"})
    made.commit("Three", {"a": "gamma\n"})
    git = Git(made.path)

    assert [one.message for one in await git.history(path="a")] == ["Three", "One"]
    assert [one.message for one in await git.history(pickaxe="beta")] == ["Two"]
    assert [one.message for one in await git.history(since=(BEGAN + 7200) * SECOND)] == ["Three", "Two"]
    assert [one.message for one in await git.history(limit=1)] == ["Three"]


async def test_a_shallow_clone_tells_where_it_ends(made: Made, tmp_path: Path) -> None:
    for n in range(3):
        made.commit(f"Number {n}", {"a": f"{n}\n"})
    made.git("clone", "-q", "--depth", "1", f"file://{made.path}", str(tmp_path / "shallow"))

    assert Git(tmp_path / "shallow").shallow == {made.head}
    assert Git(made.path).shallow == set()


@pytest.mark.parametrize("name", ["nothing", "folder", "file", "folder/inside"])
def test_a_place_that_is_no_repository_is_refused(made: Made, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "file").write_text("x")

    with pytest.raises(BadInput, match="is not a git repository"):
        Git(tmp_path / name)


def test_a_folder_within_a_repository_is_not_taken_for_it(made: Made) -> None:
    made.commit("One", {"docs/a": "1\n"})

    with pytest.raises(BadInput, match="is not a git repository"):
        Git(made.path / "docs")


async def test_a_linked_working_tree_and_a_bare_repository_are_read(made: Made, tmp_path: Path) -> None:
    sha = made.commit("One", {"a": "1\n"})
    made.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    made.git("clone", "-q", "--bare", str(made.path), str(tmp_path / "bare.git"))

    for place in ("tree", "bare.git", "repo/.git"):
        assert (await Git(tmp_path / place).refs()).head == sha


async def test_nothing_that_a_repository_configures_is_run(made: Made, tmp_path: Path) -> None:
    made.commit("One", {"a.txt": "1\n", ".gitattributes": "*.txt diff=evil filter=evil\n"})
    made.commit("Two", {"a.txt": "2\n"})
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path / 'pwned'}\ncat\n")
    evil.chmod(0o755)
    for name in (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.gitProxy", "core.askPass", "core.editor"),
        *("diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.smudge", "filter.evil.clean"),
        *("filter.evil.process", "gpg.program", "credential.helper", "core.alternateRefsCommand"),
        *("remote.origin.uploadpack", "uploadpack.packObjectsHook", "alias.log", "pager.log", "interactive.diffFilter"),
    ):
        made.git("config", name, str(evil))
    made.git("config", "log.showSignature", "true")
    made.git("config", "core.hooksPath", str(tmp_path))
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc", "post-index-change"):
        evil_hook = made.path / ".git" / "hooks" / hook
        evil_hook.write_text(evil.read_text())
        evil_hook.chmod(0o755)
    git = Git(made.path)

    found = await commits(git)
    await git.history(path="a.txt", pickaxe="2")
    await git.tree()
    await git.blob("HEAD:a.txt", 100)

    assert [one.message for one in found] == ["One", "Two"]
    assert not (tmp_path / "pwned").exists()


async def test_objects_that_are_missing_are_an_error_that_says_so_and_fetch_nothing(made: Made, tmp_path: Path) -> None:
    made.commit("One", {"a.txt": "1\n" * 100})
    made.commit("Two", {"a.txt": "2\n" * 100})
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("clone", "-q", "--bare", "--filter=blob:none", f"file://{made.path}", str(tmp_path / "partial"))
    made.git(
        "-C", str(tmp_path / "partial"), "config", "remote.origin.uploadpack", f"touch {tmp_path / 'pwned'}; false"
    )
    git = Git(tmp_path / "partial")

    with pytest.raises(Failed):
        await commits(git)

    assert [one.changes for one in await commits(git, counted=False)] == [(Change("a.txt"),), (Change("a.txt"),)]
    assert not (tmp_path / "pwned").exists()


async def test_what_others_replaced_or_noted_is_not_read_for_what_was_written(made: Made) -> None:
    made.commit("One", {"a": "1\n"})
    real = made.commit("Two", {"a": "2\n"})
    other = made.raw(b"Forged\n")
    made.git("update-ref", "refs/heads/main", real)
    made.git("replace", real, other)
    made.git("notes", "add", "-m", "a note", real)

    assert [one.message for one in await commits(Git(made.path))][-1] == "Two"


async def test_whoever_stops_reading_ends_git_at_once(made: Made) -> None:
    made.many(20_000)
    git = Git(made.path)
    head = (await git.refs()).head

    async with asyncio.timeout(30), aclosing(git.commits([head], [])) as stream:
        async for _ in stream:
            break

    assert not [task for task in asyncio.all_tasks() if "subprocess" in repr(task.get_coro())]
