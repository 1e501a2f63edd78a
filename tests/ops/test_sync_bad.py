"""Syncs of what is broken, huge, strange or forbidden, and syncs that are cut off or meet each other."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from keepsake import dispatch, settings, worker
from keepsake.context import App
from keepsake.core.errors import BadInput, Conflict, Forbidden
from keepsake.core.principal import DEFAULT_SCOPES, Principal, local_owner
from keepsake.ops import ingest
from keepsake.ops.pieces import Item
from keepsake.services import mirror
from keepsake.store import jobs
from keepsake.store.engine import Tx
from tests.git_server import forge
from tests.gitting import Made
from tests.ops.syncing import BANK, ORG, ask, bank_id, record, repo_of, rows, synced, told

pytestmark = pytest.mark.anyio
KEY_HOLDER = Principal(ORG, "key:agent", DEFAULT_SCOPES, key=7)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "engine")


REFUSED = {
    "ssh://git@github.com/a/b": "not read over ssh",
    "git@github.com:a/b.git": "not read over ssh",
    "git://github.com/a/b": "not read over git",
    "http://github.com/a/b": "not read over http",
    "file:///etc": "not read over file",
    "ext::sh -c touch": "not read over ssh",
    "https://bob:hunter22@github.com/a/b": "a user or a password",
    "https://ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0aB3dE5@github.com/a/b": "a user or a password",
    "https://github.com": "not the address of a repository",
    "https://github.com/a/../b": "not the address of a repository",
    "https://github.com/a/b?token=x": "not the address of a repository",
    "--upload-pack=touch": "from the root on",
    "relative/folder": "from the root on",
    "/nowhere/at/all": "is not a git repository",
}


@pytest.mark.parametrize("repo", REFUSED)
async def test_what_cannot_be_read_is_refused_in_a_sentence_without_secrets(app: App, repo: str) -> None:
    with pytest.raises(BadInput) as refused:
        await ask(app, repo)

    assert REFUSED[repo] in str(refused.value)
    assert "hunter22" not in str(refused.value) and "ghp_" not in str(refused.value)


async def test_a_key_holder_names_no_folder_and_no_host_but_those_that_are_allowed(app: App, made: Made) -> None:
    made.commit("One", {"a": "1\n"})

    for repo in (
        str(made.path),
        "https://10.0.0.1/a/b",
        "https://github.com.evil.example/a/b",
        "https://github.com:1/a/b",
    ):
        with pytest.raises(Forbidden):
            await ask(app, repo, who=KEY_HOLDER)
    asked = await ask(app, "https://github.com/Acme/Engine", who=KEY_HOLDER)

    assert (asked.repo, asked.state) == ("https://github.com/Acme/Engine", "new")


async def test_who_may_not_manage_banks_may_not_sync(app: App) -> None:
    reader = Principal(ORG, "key:reader", frozenset({"memory:read", "memory:write"}), key=8)

    with pytest.raises(Forbidden):
        await ask(app, "https://github.com/a/b", who=reader)
    with pytest.raises(Forbidden):
        await ask(app, "https://github.com/a/b", who=replace(KEY_HOLDER, banks=frozenset({"other"})))


async def test_a_bank_without_a_repository_is_not_made_by_asking(app: App) -> None:
    with pytest.raises(BadInput, match="no repository yet"):
        await ask(app)
    with pytest.raises(AssertionError):
        await bank_id(app)


async def test_an_empty_repository_is_a_partial_result_with_a_note(app: App, made: Made) -> None:
    ended = await synced(app, made.path)

    repo = await repo_of(app)
    assert (ended.state, repo.state) == ("completed", "partial")
    assert repo.note == "The repository is empty: nothing was committed yet."
    made.commit("At last", {"a": "1\n"})
    await synced(app)
    assert ((await repo_of(app)).state, [one.title for one in await told(app, "commit")]) == ("completed", ["At last"])


async def test_a_shallow_clone_is_partial_and_completed_when_it_grows(app: App, made: Made, tmp_path: Path) -> None:
    for n in range(3):
        made.commit(f"Number {n}", {"a": f"{n}\n", f"f{n}": "x\n"})
    made.git("clone", "-q", "--depth", "1", f"file://{made.path}", str(tmp_path / "shallow"))

    await synced(app, tmp_path / "shallow")
    (only,) = await told(app, "commit")
    state = (await repo_of(app)).state
    made.git("-C", str(tmp_path / "shallow"), "fetch", "-q", "--unshallow")
    await synced(app)

    assert (state, only.metadata["files"], only.parts) == ("partial", 0, {})
    assert sorted(one.title for one in await told(app, "commit")) == ["Number 0", "Number 1", "Number 2"]
    assert (await repo_of(app)).state == "completed"


async def test_a_repository_that_went_away_is_a_failure_that_stays_and_keeps_what_was_read(
    app: App, made: Made, tmp_path: Path
) -> None:
    made.commit("One", {"a": "1\n"})
    await synced(app, made.path)
    os.rename(made.path, tmp_path / "moved")

    ended = await synced(app)

    assert ended.state == "failed" and "is not a git repository" in ended.error
    assert (await repo_of(app)).state == "failed"
    assert len(await told(app, "commit")) == 1


async def test_a_repository_with_objects_missing_is_read_without_counts(app: App, made: Made, tmp_path: Path) -> None:
    made.commit("One", {"README.md": "# Hi\n\nWords.\n"})
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("clone", "-q", "--bare", "--filter=blob:none", f"file://{made.path}", str(tmp_path / "partial"))

    ended = await synced(app, tmp_path / "partial")

    (commit,) = await told(app, "commit")
    assert (ended.state, (await repo_of(app)).state) == ("completed", "partial")
    assert commit.parts["changes"] == ["README.md"]


async def test_messages_that_are_no_text_empty_ones_and_impossible_dates(app: App, made: Made) -> None:
    made.commit("Begin", {"a": "1\n"})
    made.raw(b"caf\xe9\n")
    made.raw(b"late\n", at="99999999999999 +0000")
    made.raw(b"")
    made.raw(b"nul \x00 in it\n")

    await synced(app, made.path)

    titles = sorted(one.title for one in await told(app, "commit"))
    assert titles == ["(no message)", "Begin", "caf�", "late", "nul"]


async def test_case_colliding_names_links_modules_and_huge_or_binary_documents(
    app: App, made: Made, tmp_path: Path
) -> None:
    made.put({"big.md": "x" * 700_000, "bin.md": b"\0\1\2", "wide.md": "é".encode("utf-16"), "README": "Plain words."})
    (made.path / "passwd.md").symlink_to("/etc/passwd")
    made.commit("One")
    for name in ("Docs/A.md", "docs/a.md"):
        sha = made.git("hash-object", "-w", "--stdin", given=f"I am {name}.".encode())
        made.git("update-index", "--add", "--cacheinfo", f"100644,{sha},{name}")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{made.head},module.md")
    made.count += 1
    made.git("commit", "-qm", "Two")

    ended = await synced(app, made.path)

    assert sorted(one.text for one in await told(app, "file", "readme")) == [
        *("I am Docs/A.md.", "I am docs/a.md."),
        "Plain words.",
    ]
    assert "1 documents were left out" in json.loads(ended.result)["notes"][0]
    kinds = await rows(app, "SELECT path, kind FROM repo_files WHERE org = :org AND bank = :bank AND kind <> 'file'")
    assert {row["path"]: row["kind"] for row in kinds} == {"passwd.md": "link", "module.md": "module"}


async def test_a_change_of_a_million_lines_is_counted_and_not_read(app: App, made: Made) -> None:
    made.commit("Begin", {"data.csv": "a\n"})
    made.commit("Add all the data", {"data.csv": "1,2,3\n" * 1_000_000})

    await synced(app, made.path)

    commit = next(one for one in await told(app, "commit") if one.title == "Add all the data")
    assert commit.parts["changes"] == ["data.csv +1000000 -1"]
    assert commit.text == "Add all the data"


async def test_a_commit_of_a_hundred_thousand_files(app: App, made: Made) -> None:
    files = b"".join(b"M 100644 inline d%d/f%d.py\ndata 2\n1\n\n" % (n % 300, n) for n in range(100_000))
    made.git(
        *("fast-import", "--quiet"),
        given=b"commit refs/heads/main\ncommitter Ada <a@x.org> 1772366400 +0000\ndata 5\nMany\n\n" + files,
    )

    ended = await synced(app, made.path)

    (commit,) = await told(app, "commit")
    assert ended.state == "completed"
    assert (commit.metadata["files"], len(commit.parts["files_modified"])) == (100_000, 200)  # type: ignore[arg-type]
    (count,) = await rows(app, "SELECT count(*) AS held FROM repo_files WHERE org = :org AND bank = :bank")
    assert count["held"] == 100_000
    assert len((await told(app, "tree"))[0].text) < 10_000


async def test_a_sync_that_is_cut_off_goes_on_and_nothing_is_doubled(
    app: App, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.many(900)
    whole, calls = ingest.Writer.stored, 0

    async def dying(self: ingest.Writer, items: Sequence[Item]) -> ingest.Tally:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("the power went out")
        return await whole(self, items)

    monkeypatch.setattr(ingest.Writer, "stored", dying)
    asked = await ask(app, made.path)
    await worker.step(app, ["sync"])
    half = len(await told(app, "commit"))
    monkeypatch.setattr(ingest.Writer, "stored", whole)

    await synced(app)

    shas = [one.metadata["sha"] for one in await told(app, "commit")]
    assert 0 < half < 900
    assert len(shas) == len(set(shas)) == 900
    assert (await record(app, int(asked.operation))).state == "completed"
    terms = await rows(app, "SELECT docs FROM terms WHERE org = :org AND bank = :bank AND term = ''")
    assert terms[0]["docs"] == len(await told(app))


async def test_what_a_cut_off_sync_stored_is_known_when_the_branch_is_gone(
    app: App, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.commit("Base", {"a": "1\n"})
    made.git("checkout", "-q", "-b", "doomed")
    made.commit("Doomed", {"a": "2\n"})

    async def dying(*_: object, **__: object) -> None:
        raise RuntimeError("the power went out")

    with monkeypatch.context() as patch:
        patch.setattr("keepsake.ops.sync_git.Reading._tags", dying)
        await synced(app, made.path)
    made.git("checkout", "-q", "main")
    made.git("branch", "-D", "doomed")

    await synced(app)

    assert [one.title for one in await told(app, "commit")] == ["Base"]


async def test_two_syncs_at_once_are_one(app: App, made: Made) -> None:
    made.many(300)
    first, second = await asyncio.gather(ask(app, made.path), ask(app, made.path))

    await asyncio.gather(worker.step(app, ["sync"]), worker.step(app, ["sync"]))
    while await worker.step(app, ["sync"]):
        pass

    assert first.operation == second.operation
    assert len(await told(app, "commit")) == 300


async def test_a_sync_that_was_taken_over_or_cancelled_writes_nothing_more(app: App, made: Made) -> None:
    made.many(300)
    asked = await ask(app, made.path)
    job = await app.store.engine.claim(lambda tx: jobs.claim(tx, ["sync"], app.now()))
    assert job is not None
    bank = await bank_id(app)
    repo = await repo_of(app)

    async def body(tx: Tx) -> bool:
        return await jobs.cancel(tx, ORG, bank, int(asked.operation), app.now())

    await app.store.write(ORG, body)
    piece = ingest.Piece("commit", "a" * 40, "", "commit", "Late", "Late")

    with pytest.raises(Conflict):
        await ingest.stored(app, job, repo, [piece])
    assert await told(app) == []


async def test_another_repository_is_not_taken_while_one_is_read(app: App, made: Made, tmp_path: Path) -> None:
    made.commit("One", {"a": "1\n"})
    other = Made(tmp_path / "other")
    other.commit("Two", {"a": "1\n"})
    await ask(app, made.path)
    await app.store.engine.claim(lambda tx: jobs.claim(tx, ["sync"], app.now()))

    with pytest.raises(Conflict, match="Wait for it, or cancel"):
        await ask(app, other.path)

    assert (await repo_of(app)).remote == str(made.path)


async def test_this_very_repository_can_be_learnt_from(app: App, tmp_path: Path) -> None:
    ours = Path(__file__).parents[2]
    if not (ours / ".git").exists():
        pytest.skip("This copy of the source is no repository.")
    Made(tmp_path / "x").git("clone", "-q", str(ours), str(tmp_path / "clone"))

    ended = await synced(app, tmp_path / "clone")

    assert ended.state == "completed"
    assert {one.subtype for one in await told(app)} >= {"commit", "readme", "file", "tree"}


async def test_a_large_public_repository_can_be_learnt_from(app: App) -> None:
    if not (large := os.environ.get("KEEPSAKE_TEST_REPO")):
        pytest.skip("KEEPSAKE_TEST_REPO names no folder of a large repository.")

    ended = await synced(app, large)
    again = await synced(app)

    result = json.loads(ended.result)
    assert ended.state == again.state == "completed"
    assert result["commits"] == len({one.metadata["sha"] for one in await told(app, "commit")})
    assert json.loads(again.result)["stored"] == 0


def test_the_settings_are_read() -> None:
    loaded = settings.load({"KEEPSAKE_SYNC_HOSTS": "github.com, git.acme.example", "KEEPSAKE_SYNC_FILE_LIMIT": "64"})

    assert (loaded.sync_hosts, loaded.sync_file_limit) == (("github.com", "git.acme.example"), 64)
    assert BANK == "project"


async def test_a_repository_elsewhere_is_copied_read_and_dropped_with_its_bank(
    app: App, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.commit("One", {"README.md": "# Engine\n\nWords.\n"})
    with forge(tmp_path, tmp_path) as served:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
        await synced(app, f"{served.url}/engine/.git")
        asked = len(served.asked)
        again = await synced(app)
        made.commit("Two", {"a": "1\n"})
        await synced(app)
    copy = mirror.place(app.settings.data_dir, ORG, await bank_id(app))

    assert [one.title for one in await told(app, "commit")] == ["One", "Two"]
    assert json.loads(again.result)["stored"] == 0 and asked < len(served.asked)
    assert copy.exists()
    await dispatch.call(app.ctx(local_owner()), "bank.delete", {"bank": BANK})
    assert not copy.exists()


async def test_a_repository_elsewhere_that_is_none_fails_at_once_and_says_so(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forge(tmp_path, tmp_path) as served:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
        ended = await synced(app, f"{served.url}/nothing")

    assert ended.state == "failed" and "does not exist, or is private" in ended.error
    assert (await repo_of(app)).note.startswith("The repository cannot be read")


async def test_a_host_that_does_not_answer_is_tried_again_later_and_at_once_when_asked(app: App) -> None:
    ended = await synced(app, "https://127.0.0.1:9/a/b")

    assert (ended.state, ended.attempts) == ("pending", 1) and "cannot be read" in ended.error
    again = await synced(app)
    assert again.attempts == 2
