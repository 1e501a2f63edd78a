"""Code: searched, looked over and read on GitHub with a token, and as it was synced without one; both stores."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch, settings
from keepsake.context import App
from keepsake.core.errors import BadInput, Forbidden, KeepsakeError, NotFound, Unavailable
from keepsake.core.principal import Principal, local_owner
from keepsake.services import mirror
from tests.github_server import Forge, serving
from tests.llm_server import Fails, Raw, Redirects
from tests.ops.asking import BUDGET, HISTORY, Step, _git, committed, repository, standing, synced

pytestmark = pytest.mark.anyio
TOKEN = "ghp_" + "a1" * 18
SECRET = "ghp_" + "Zz9Y" * 9


async def run(app: App, operation: str, /, who: Principal | None = None, **given: Any) -> dict[str, Any]:
    made = await dispatch.call(app.ctx(who or local_owner()), operation, given)
    return made.model_dump(mode="json", exclude_none=True)


@pytest.fixture
def forge() -> Iterator[Forge]:
    """GitHub, with a small repository."""
    with serving() as forge:
        forge.token = TOKEN
        forge.files = {
            "README.md": b"# Keeper\n\nKeeps things.\n",
            "src/keep.py": f"def keep(thing):\n    token = '{SECRET}'\n    return thing\n".encode(),
            "src/deep/a.py": b"import keep\n",
            "logo.png": b"\x89PNG\0\0",
            "long.txt": b"".join(b"line %d\n" % n for n in range(5_000)),
        }
        forge.about = {"description": "A keeper", "stargazers_count": 7, "topics": ["memory"], "license": None}
        told = {"message": "Keep it\n\nBecause.", "author": {"name": "Ada", "date": "2026-01-02T03:04:05Z"}}
        forge.commits = [{"sha": "a" * 40, "html_url": "https://github.com/x", "commit": told}]
        yield forge


@pytest.fixture
def asking(app: App, forge: Forge) -> App:
    """An application with a token for that GitHub."""
    environment = {"KEEPSAKE_GITHUB_URL": forge.url, "KEEPSAKE_GITHUB_TOKEN": TOKEN}
    return replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_github_is_searched_looked_over_and_read(asking: App, forge: Forge) -> None:
    found = await run(asking, "code.search", query="def keep", repo="octo/keeper", path="src")
    whole = await run(asking, "code.search", query="keep")
    seen = await run(asking, "code.overview", repo="octo/keeper")
    read = await run(asking, "code.read", repo="octo/keeper", paths=["src/keep.py", "src", ""])

    assert (found["answered_by"], found["total"], found["is_cut"]) == ("github", 1, False)
    match = found["matches"][0]
    assert (match["repo"], match["path"]) == ("octo/keeper", "src/keep.py")
    assert match["text"].startswith("def keep(thing):") and SECRET not in str((found, whole, read))
    assert {one.path for one in forge.asked if one.status == 200} >= {"/search/code", "/repos/octo/keeper"}
    assert (seen["description"], seen["stars"], seen["branch"], seen["topics"]) == ("A keeper", 7, "main", ["memory"])
    assert (seen["readme"], seen["languages"], seen["total_files"]) == (
        "# Keeper\n\nKeeps things.\n",
        {"Python": 101},
        5,
    )
    assert seen["commits"] == [{"sha": "a" * 40, "subject": "Keep it", "author": "Ada", "date": "2026-01-02T03:04:05Z"}]
    file, folder, top = read["items"]
    assert (file["kind"], file["total_lines"], file["text"].splitlines()[0]) == ("file", 3, "def keep(thing):")
    assert [(one["name"], one["kind"]) for one in folder["entries"]] == [("deep", "folder"), ("keep.py", "file")]
    assert [one["name"] for one in top["entries"]] == ["src", "README.md", "logo.png", "long.txt"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_long_files_are_read_part_by_part(asking: App) -> None:
    first = (await run(asking, "code.read", repo="octo/keeper", paths=["long.txt"]))["items"][0]
    then = (await run(asking, "code.read", repo="octo/keeper", paths=["long.txt"], start_line=2001, end_line=2002))[
        "items"
    ][0]

    assert (first["start_line"], first["end_line"], first["total_lines"], first["is_cut"]) == (1, 2_000, 5_000, True)
    assert (then["text"], then["is_cut"]) == ("line 2000\nline 2001", False)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_what_github_refuses_is_told_and_its_limit_not_waited_for(asking: App, forge: Forge) -> None:
    bad: list[tuple[str, dict[str, Any], type[KeepsakeError], str]] = [
        ("code.read", {"repo": "octo/keeper", "paths": ["nowhere.py"]}, NotFound, "no 'nowhere.py' in octo/keeper"),
        ("code.read", {"repo": "octo/keeper", "paths": ["logo.png"]}, NotFound, "is no text"),
        ("code.read", {"repo": "octo/other", "paths": [""]}, NotFound, "GitHub shows no such thing"),
        ("code.overview", {"repo": "octo/../x"}, BadInput, "is no repository of GitHub"),
        ("code.search", {"query": "keep", "repo": "octo/other"}, BadInput, "cannot search for that"),
        ("code.overview", {"repo": "keeper"}, NotFound, "Name one on GitHub as `owner/name`"),
    ]
    for operation, given, kind, words in bad:
        with pytest.raises(kind, match=words):
            await run(asking, operation, **given)

    forge.will(Fails(403, headers={"Retry-After": "3600"}), on="/search/code")
    with pytest.raises(Unavailable, match="takes no more requests before"):
        await run(asking, "code.search", query="keep")
    forge.will(Fails(401), on="/search/code")
    with pytest.raises(Unavailable, match="does not take the token"):
        await run(asking, "code.search", query="keep")
    forge.will(*[Redirects("https://elsewhere.example/search")], on="/search/code")
    with pytest.raises(Unavailable, match="pointed to another address"):
        await run(asking, "code.search", query="keep")
    forge.will(Raw("[1, 2"), Fails(502), on="/languages")
    forge.commits = []
    seen = await run(asking, "code.overview", repo="octo/keeper")
    assert (list(seen["languages"]), seen["commits"], seen.get("note")) == (["Python"], [], None)


async def test_synced_repositories_answer_without_a_token(app: App, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    committed(folder, Step("Ada", "2024-09-01", "Keep a key", {"src/key.py": f"KEY = '{SECRET}'\nreserve(KEY)\n"}))
    head = await synced(app, "api", folder)

    found = await run(app, "code.search", query="reserve")
    named = await run(app, "code.search", query="RESERVE(KEY", repo="acme/api", path="src")
    seen = await run(app, "code.overview", repo="api")
    read = await run(app, "code.read", repo="api", paths=["src/budget.py", "src", ""], start_line=6, end_line=7)

    assert (found["answered_by"], found["total"]) == ("synced", 2)
    assert (found["matches"][0]["path"], found["matches"][0]["line"]) == ("src/budget.py", 6)
    assert found["matches"][0]["text"] == "def reserve(hold, limit):"
    assert [(one["path"], one["line"], one["revision"]) for one in named["matches"]] == [("src/key.py", 2, head)]
    assert (seen["bank"], seen["repo"], seen["branch"], seen["revision"]) == ("api", "acme/api", "main", head)
    assert seen["readme"].startswith("# Service") and list(seen["languages"]) == ["Python"]
    assert seen["commits"][0]["subject"] == "Keep a key" and len(seen["commits"]) == len(HISTORY) + 1
    assert [one["path"] for one in seen["files"]] == [
        "README.md",
        "docs/budgets.md",
        "src/budget.py",
        "src/key.py",
        "src/retry.py",
    ]
    file, source, top = read["items"]
    assert file["text"] == "\n".join(BUDGET.splitlines()[5:7])
    assert [one["name"] for one in source["entries"]] == ["budget.py", "key.py", "retry.py"]
    assert [(one["name"], one["kind"]) for one in top["entries"]] == [
        ("docs", "folder"),
        ("src", "folder"),
        ("README.md", "file"),
    ]
    keys = await run(app, "code.read", repo="api", paths=["src/key.py"])
    secret = await run(app, "code.search", query="KEY =")
    assert SECRET not in str((keys, secret))


async def test_other_revisions_are_read_and_only_those_a_branch_has(app: App, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    _git(folder, "tag", "v1", "HEAD~2")
    _git(folder, "checkout", "-q", "-b", "lost")
    lost = committed(folder, Step("Eve", "2024-09-01", "Lose", {"src/lost.py": "lost = 1\n"}))
    _git(folder, "checkout", "-q", "main")
    _git(folder, "branch", "-q", "-D", "lost")
    (folder / "image.bin").write_bytes(b"\0\1\2 reserve")
    (folder / "large.dat").write_text("x" * 600_000)
    head = committed(folder, Step("Ada", "2024-09-02", "Add", {"note.txt": "one\r\ntwo\r\n"}))
    await synced(app, "api", folder)
    committed(folder, Step("Eve", "2025-01-01", "Later", {"src/later.py": "later = 1\n"}))

    tagged = await run(app, "code.read", repo="api", ref="v1", paths=["src/budget.py", "src"])
    short = await run(app, "code.read", repo="api", ref=head[:10], paths=["note.txt"])

    assert "600_000" in tagged["items"][0]["text"] and "tokens > limit" in tagged["items"][0]["text"]
    assert [one["name"] for one in tagged["items"][1]["entries"]] == ["budget.py", "retry.py"]
    assert (short["ref"], short["items"][0]["text"]) == (head, "one\ntwo")
    for given, kind, words in (
        ({"ref": lost}, NotFound, "no branch, tag or commit"),
        ({"ref": "nowhere"}, NotFound, "no branch, tag or commit"),
        ({"ref": "--upload-pack=x"}, BadInput, "cannot be a branch"),
        ({"ref": "HEAD@{1}"}, BadInput, "cannot be a branch"),
        ({"ref": "main..v1"}, BadInput, "cannot be a branch"),
        ({"paths": ["src/later.py"]}, NotFound, "no file or folder"),
        ({"paths": ["image.bin"]}, NotFound, "is no text"),
        ({"paths": ["large.dat"]}, NotFound, "too large"),
        ({"paths": ["large.dat"], "ref": "main"}, BadInput, "too large"),
        ({"paths": ["../api"]}, BadInput, "without `..`"),
        ({"paths": ["src/../../x"]}, BadInput, "without `..`"),
        ({"paths": ["/etc/passwd"]}, BadInput, "from the top of the repository"),
        ({"paths": ["a\nHEAD:src/budget.py"]}, BadInput, "one line"),
        ({"paths": ["-n"]}, NotFound, "no file or folder"),
        ({"paths": ["-n"], "ref": "v1"}, NotFound, "no file or folder"),
    ):
        with pytest.raises(kind, match=words):
            await run(app, "code.read", repo="api", **given)
    assert (await run(app, "code.search", query="--help"))["total"] == 0
    assert (await run(app, "code.search", query="later"))["total"] == 0
    assert (await run(app, "code.search", query="reserve", path="-O"))["total"] == 0
    with pytest.raises(BadInput, match="one line"):
        await run(app, "code.search", query="a\nb")


async def test_a_foreign_banks_repository_is_unknown(app: App, tmp_path: Path) -> None:
    await synced(app, "api", repository(tmp_path / "api"))
    await run(app, "bank.create", name="yard")
    narrow = replace(local_owner(), banks=frozenset({"yard"}))
    blind = replace(local_owner(), scopes=frozenset({"research:read"}))

    for who in (narrow, blind):
        for repo in ("api", "acme/api", "nowhere"):
            for operation in ("code.search", "code.overview", "code.read"):
                given = {"repo": repo, **({"query": "reserve"} if operation == "code.search" else {})}
                with pytest.raises(NotFound, match=f"No repository '{repo}' was synced to a bank that you may read"):
                    await run(app, operation, who, **given)
        with pytest.raises(NotFound, match="No repository was synced"):
            await run(app, "code.search", who, query="reserve")
    with pytest.raises(NotFound, match="was not synced from a repository"):
        await run(app, "code.overview")
    reader = replace(local_owner(), scopes=frozenset({"memory:read"}))
    with pytest.raises(Forbidden):
        await run(app, "code.search", reader, query="reserve")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_copy_that_is_gone_is_told_and_nothing_else_breaks(app: App, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    await synced(app, "api", folder)
    assert not mirror.place(app.settings.data_dir, 1, (await standing(app, "api")).bank).exists()
    folder.rename(tmp_path / "moved")

    found = await run(app, "code.search", query="reserve")
    seen = await run(app, "code.overview", repo="api")

    assert (found["matches"], found["note"]) == ([], "The files of api are not on this machine.")
    assert (seen["readme"], seen["total_files"]) == ("", 4) and "cannot be read from here" in seen["note"]
    with pytest.raises(NotFound, match="cannot be read from here"):
        await run(app, "code.read", repo="api", paths=["src/budget.py"])
