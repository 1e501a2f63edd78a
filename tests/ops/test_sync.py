"""A bank learns from a repository: everything once, then only what is new, and what is gone goes out of the way."""

import json
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch, worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import local_owner
from keepsake.store import audit
from tests.endpoint_server import serving
from tests.gitting import BEGAN, Made
from tests.ops.syncing import BANK, ORG, bank_id, repo_of, rows, synced, told
from tests.ops.test_reembed import using

pytestmark = pytest.mark.anyio
SECOND = 1_000_000
README = "# Engine\n\nIt turns steam into sums.\n\n## Install\n\nUse the crank.\n\n## Use\n\nTurn it gently.\n"


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "engine")


async def recall(app: App, query: str) -> list[str]:
    found = await dispatch.call(app.ctx(local_owner()), "memory.recall", {"bank": BANK, "query": query})
    return [hit.memory.title for hit in found.hits]  # type: ignore[attr-defined]


async def test_everything_of_a_repository_can_be_found_after_the_first_sync(app: App, made: Made) -> None:
    made.commit("Begin the engine", {"README.md": README, "src/wheel.py": "x = 1\n"})
    sha = made.commit(
        "Turn the wheel twice\n\nOne turn was not enough for Babbage.", {"src/wheel.py": "x = 2\n"}, "Bob <bob@x.org>"
    )
    made.commit(
        "Note conventions", {".keystone/rules.md": "Never divide by zero.", "docs/why.rst": "Why\n===\nSums.\n"}
    )
    made.git("tag", "-a", "v1.0", "-m", "First engine that runs")

    ended = await synced(app, made.path)

    assert (ended.state, ended.progress) == ("completed", 1.0)
    result = json.loads(ended.result)
    assert [result[name] for name in ("commits", "tags", "files", "notes", "stored")] == [3, 1, 2, 1, 10]
    assert (await recall(app, "why was the wheel turned twice"))[0] == "Turn the wheel twice"
    assert (await recall(app, "how to install the engine"))[0] == "Engine › Install"
    commit = (await told(app, "commit"))[1]
    assert (commit.kind, commit.fact_type, commit.trust, commit.author) == ("chunk", "experience", "outside", "sync")
    assert commit.text == "Turn the wheel twice\n\nOne turn was not enough for Babbage."
    assert commit.parts == {"files_modified": ["src/wheel.py"], "changes": ["src/wheel.py +1 -1"]}
    assert commit.event_at == commit.happened_from == (BEGAN + 7200) * SECOND
    assert {**commit.metadata, "email_hash": ""} == {
        "type": "commit",
        "date": clock.iso((BEGAN + 7200) * SECOND),
        "sha": sha,
        "author": "Bob",
        "email_hash": "",
        "files": 1,
        "added": 1,
        "removed": 1,
        "merge": False,
    }
    assert commit.metadata["email_hash"] and "bob@x.org" not in json.dumps(dict(commit.metadata))
    install = next(one for one in await told(app, "readme") if one.title == "Engine › Install")
    assert (install.fact_type, install.metadata["path"], install.metadata["start_line"]) == ("world", "README.md", 5)
    assert [one.text for one in await told(app, "tag")] == ["Tag v1.0\n\nFirst engine that runs"]
    assert [one.text for one in await told(app, "note")] == ["Never divide by zero."]
    assert (await told(app, "tree"))[0].text.startswith("4 files in 3 folders")
    repo = await repo_of(app)
    assert (repo.state, repo.branch, repo.head, repo.folder_files, repo.completed) == (
        *("completed", "main", made.head),
        *(1, 1),
    )


async def test_who_and_which_files_are_linked(app: App, made: Made) -> None:
    made.commit("Oil it\n\nCo-authored-by: Grace Hopper <g@x.org>", {"src/oil.py": "x\n"}, "Bob Ross <bob@x.org>")
    await synced(app, made.path)

    (commit,) = await told(app, "commit")
    named = await rows(
        app,
        "SELECT e.name AS name, e.kind AS kind, l.role AS role FROM memory_entities l JOIN entities e ON e.org = l.org"
        " AND e.bank = l.bank AND e.id = l.entity WHERE l.org = :org AND l.bank = :bank AND l.role = 'speaker'"
        " ORDER BY e.name",
    )
    files = await rows(app, "SELECT memory, path, wrote, at FROM memory_files WHERE org = :org AND bank = :bank")

    assert [tuple(row.values()) for row in named] == [
        ("Bob Ross", "person", "speaker"),
        ("Grace Hopper", "person", "speaker"),
    ]
    assert [tuple(row.values()) for row in files] == [(commit.id, "src/oil.py", 1, (BEGAN + 3600) * SECOND)]
    assert (await recall(app, "src/oil.py"))[0] == "Oil it"


async def test_a_second_sync_reads_only_what_is_new(app: App, made: Made) -> None:
    made.commit("One", {"README.md": README})
    await synced(app, made.path)
    before = await told(app)
    unchanged = await synced(app)
    made.commit("Two", {"src/a.py": "x\n"})

    ended = await synced(app)

    assert json.loads(unchanged.result) == {"doing": "done", "stored": 0, "known": 0, "superseded": 0}
    result = json.loads(ended.result)
    # The new commit and the new tree of files.
    assert (result["commits"], result["stored"], result["superseded"]) == (1, 2, 1)
    kept = {one.id for one in await told(app)}
    assert {one.id for one in before if one.subtype != "tree"} <= kept
    assert (await repo_of(app)).completed == 3


async def test_unchanged_sections_keep_their_memory_and_vector_and_follow_their_lines(app: App, made: Made) -> None:
    made.commit("One", {"README.md": README})
    await synced(app, made.path)
    while await worker.step(app, ["embed"]):
        pass
    vectors = "SELECT memory, model, text_hash FROM vectors WHERE org = :org AND bank = :bank"
    before = {one.title: one for one in await told(app, "readme")}
    sharp = {row["memory"]: row["model"] for row in await rows(app, vectors)}
    text = README.replace("# Engine\n", "# Engine\n\nNew words.\n").replace("gently", "with force")
    made.commit("Change the read-me", {"README.md": text})

    await synced(app)

    now = {one.title: one for one in await told(app, "readme")}
    install = now["Engine › Install"]
    assert install.id == before["Engine › Install"].id
    assert sharp[install.id] == {row["memory"]: row["model"] for row in await rows(app, vectors)}[install.id]
    assert (install.metadata["start_line"], install.metadata["revision"]) == (7, made.head)
    assert now["Engine › Use"].id != before["Engine › Use"].id
    gone = {one.title: one for one in await told(app, "readme", gone=True)}
    assert gone.keys() == {"Engine", "Engine › Use"}
    assert gone["Engine › Use"].superseded_by == now["Engine › Use"].id
    assert await recall(app, "turn it with force") != [] and "gently" not in str(await told(app, "readme"))


async def test_a_deleted_file_goes_out_of_the_way_and_may_come_back(app: App, made: Made) -> None:
    made.commit("One", {"docs/a.md": "Alpha tells of apples.", "docs/b.md": "Beta tells of beets."})
    await synced(app, made.path)
    made.commit("Two", {"docs/a.md": None})

    await synced(app)
    away = [one.text for one in await told(app, "file", gone=True)]
    made.commit("Three", {"docs/a.md": "Alpha tells of apples."})
    await synced(app)

    assert away == ["Alpha tells of apples."]
    assert sorted(one.text for one in await told(app, "file")) == ["Alpha tells of apples.", "Beta tells of beets."]


async def test_commits_that_no_ref_reaches_any_more_are_superseded(app: App, made: Made) -> None:
    made.commit("Base", {"a": "1\n"})
    made.commit("Wrong", {"a": "2\n"})
    await synced(app, made.path)
    made.git("reset", "-q", "--hard", "HEAD~1")
    made.commit("Right", {"a": "3\n"})

    await synced(app)

    assert [one.title for one in await told(app, "commit")] == ["Base", "Right"]
    (wrong,) = await told(app, "commit", gone=True)
    assert (wrong.title, wrong.superseded_by) == ("Wrong", None)
    assert "Wrong" not in await recall(app, "Wrong")
    made.git("reset", "-q", "--hard", str(wrong.metadata["sha"]))
    await synced(app)
    assert sorted(one.title for one in await told(app, "commit")) == ["Base", "Wrong"]


async def test_a_force_push_is_noticed_even_when_the_old_commits_are_gone_for_good(app: App, made: Made) -> None:
    made.commit("Base", {"a": "1\n"})
    made.commit("Wrong", {"a": "2\n"})
    await synced(app, made.path)
    made.git("reset", "-q", "--hard", "HEAD~1")
    made.git("reflog", "expire", "--expire=now", "--all")
    made.git("gc", "-q", "--prune=now")

    await synced(app)

    assert [one.title for one in await told(app, "commit")] == ["Base"]


async def test_a_tag_that_moves_or_goes(app: App, made: Made) -> None:
    made.commit("One", {"a": "1\n"})
    made.git("tag", "moving")
    made.git("tag", "-a", "going", "-m", "Soon gone")
    await synced(app, made.path)
    made.commit("Two", {"a": "2\n"})
    made.git("tag", "-f", "moving")
    made.git("tag", "-d", "going")

    await synced(app)

    assert [(one.title, one.metadata["sha"]) for one in await told(app, "tag")] == [("moving", made.head)]


async def test_a_rewritten_commit_that_says_the_same_is_not_embedded_again(app: App, made: Made) -> None:
    made.commit("Begin", {"a": "1\n"})
    made.commit("Say something worth a vector", {"a": "2\n"})
    await synced(app, made.path)
    while await worker.step(app, ["embed"]):
        pass
    made.count += 5
    made.git("commit", "-q", "--amend", "--no-edit", "--date", f"{BEGAN + 99999} +0000")

    await synced(app)

    (new,) = [one for one in await told(app, "commit") if one.title.startswith("Say")]
    vectors = await rows(
        app,
        "SELECT v.memory AS memory, e.state AS state FROM vectors v JOIN embedding_models e ON e.model = v.model"
        " WHERE v.org = :org AND v.bank = :bank",
    )
    assert {row["memory"]: row["state"] for row in vectors}[new.id] == "current"


async def test_a_forgotten_commit_or_section_is_not_brought_back(app: App, made: Made) -> None:
    made.commit("Mention the salary of Bob", {"README.md": README, "a": "1\n"})
    made.commit("Other", {"a": "2\n"})
    await synced(app, made.path)
    for one in (*(await told(app, "commit"))[:1], *(await told(app, "readme"))[1:2]):
        await dispatch.call(app.ctx(local_owner()), "memory.forget", {"bank": BANK, "id": str(one.id)})
    made.commit("Third", {"README.md": f"{README}\n## More\n\nWords.\n"})
    made.git("commit", "-q", "--allow-empty", "-m", "Mention the salary of Bob")

    ended = await synced(app)

    assert [one.title for one in await told(app, "commit")] == ["Other", "Third"]
    assert "Engine › Install" not in {one.title for one in await told(app, "readme")}
    assert json.loads(ended.result)["commits"] == 2


async def test_a_bank_that_was_cleared_is_filled_again(app: App, made: Made) -> None:
    made.commit("One", {"README.md": README})
    await synced(app, made.path)
    count = len(await told(app))
    await dispatch.call(app.ctx(local_owner()), "memory.clear", {"bank": BANK})

    await synced(app)

    assert len(await told(app)) == count


async def test_secrets_never_get_in(app: App, made: Made) -> None:
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0aB3dE5"
    made.commit(f"Use {key} for now", {"README.md": f"# Key\n\nIt is {key}.\n", f"docs/{key}.md": "Words.\n"})
    made.git("tag", "-a", "v1", "-m", f"With {key}")
    made.git("remote", "add", "origin", f"https://bob:{key}@github.com/Acme/Engine.git")

    await synced(app, made.path)

    for table in (
        "memories",
        "sources",
        "memory_files",
        "search_docs",
        "entities",
        "repos",
        "repo_files",
        "jobs",
        "banks",
    ):
        stored = str(await rows(app, f"SELECT * FROM {table} WHERE org = :org AND bank = :bank"))
        assert key not in stored and key.lower() not in stored.lower(), table
    assert (await told(app, "commit"))[0].title == "Use [redacted:github-token] for now"


async def test_a_key_that_runs_over_several_sections_leaves_no_part_behind(app: App, made: Made) -> None:
    lines = [f"MIIE{n:03}" + "q9Zx7Lk2" * 7 for n in range(400)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    made.commit("Add a guide", {"docs/guide.md": f"# Guide\n\nBefore.\n\n{key}\n\n## After\n\nWords behind it.\n"})

    await synced(app, made.path)

    for table in ("memories", "search_docs"):
        stored = str(await rows(app, f"SELECT * FROM {table} WHERE org = :org AND bank = :bank")).lower()
        assert not [line for line in lines if line.lower() in stored], table
    # The lines are still those of the file.
    (after,) = [one for one in await told(app, "file") if "Words behind it." in one.text]
    assert after.metadata["end_line"] == key.count("\n") + 9


async def test_a_folder_that_came_from_github_knows_its_name_there(app: App, made: Made) -> None:
    made.commit("One", {"a": "1\n"})
    made.git("remote", "add", "origin", "git@github.com:Acme/Engine.git")

    await synced(app, made.path)

    assert (await repo_of(app)).full_name == "acme/engine"
    assert [row["repo"] for row in await rows(app, "SELECT repo FROM banks WHERE org = :org AND bank = :bank")] == [
        "acme/engine"
    ]


async def test_another_repository_takes_the_place_of_the_first(app: App, made: Made, tmp_path: Path) -> None:
    made.commit("Of the first", {"docs/a.md": "First words."})
    await synced(app, made.path)
    other = Made(tmp_path / "other")
    other.commit("Of the second", {"docs/b.md": "Second words."})

    await synced(app, other.path)

    assert sorted(one.title for one in await told(app, "commit", "file")) == ["Of the second", "docs/b.md"]
    paths = await rows(app, "SELECT path FROM repo_files WHERE org = :org AND bank = :bank")
    assert [row["path"] for row in paths] == ["docs/b.md"]


async def test_every_batch_stands_in_the_audit_log_under_who_asked(app: App, made: Made) -> None:
    made.many(450)
    await synced(app, made.path)
    bank = await bank_id(app)

    entries = await app.store.read(ORG, lambda tx: audit.newest(tx, ORG, audit.Wanted([bank])))
    chains = await app.store.read(ORG, lambda tx: audit.verify(tx, ORG))

    batches = [written.entry for written in entries if written.entry.operation == "bank.sync"]
    assert {entry.principal for entry in batches} == {"local"}
    assert sum(len(entry.targets) for entry in batches) >= 450
    assert all(chain.broken_at is None for chain in chains)


async def test_what_was_read_can_be_asked_for_as_of_an_earlier_time(app: App, made: Made, call: Any) -> None:
    made.commit("One", {"docs/a.md": "The port is 80."})
    await synced(app, made.path)
    then = clock.iso(app.now())
    made.commit("Two", {"docs/a.md": "The port is 443."})
    await synced(app)

    now, before = [
        await dispatch.call(app.ctx(local_owner()), "memory.recall", {"bank": BANK, "query": "which port", **more})
        for more in ({}, {"as_of": then})
    ]

    assert [hit.memory.text for hit in now.hits if hit.memory.category == "file"] == ["The port is 443."]  # type: ignore[attr-defined]
    assert [hit.memory.text for hit in before.hits if hit.memory.category == "file"] == ["The port is 80."]  # type: ignore[attr-defined]


async def test_the_same_text_is_embedded_once(app: App, made: Made) -> None:
    for n in range(40):
        made.commit("Merge the stable branch", {"a": f"{n}\n"})
    await synced(app, made.path)

    with serving() as models:
        asked = using(app, models)
        while await worker.step(asked, ["embed"]):
            pass

    texts = [text for text in models.texts if text.startswith("Merge the stable branch")]
    vectors = await rows(
        app,
        "SELECT e.name AS name, count(*) AS held FROM vectors v JOIN embedding_models e ON e.model = v.model"
        " WHERE v.org = :org AND v.bank = :bank GROUP BY e.name",
    )
    assert len(texts) == 1
    assert [row["held"] for row in vectors] == [41]
