"""Pieces get into the store once, without secrets, and without what was forgotten."""

from pathlib import Path

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.ops import ingest
from keepsake.ops.ingest import Piece, Report, Tally
from keepsake.store import jobs
from tests.gitting import Made
from tests.ops.syncing import BANK, ask, repo_of, rows, told

pytestmark = pytest.mark.anyio
KEY = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8cF0aB3dE5"


@pytest.fixture
async def job(app: App, tmp_path: Path) -> jobs.Job:
    """A sync that runs, of which a test plays the part that reads."""
    await ask(app, Made(tmp_path / "engine").path)
    held = await app.store.engine.claim(lambda tx: jobs.claim(tx, ["sync"], app.now()))
    assert held is not None
    return held


def pull(*texts: str, revision: str = "1") -> list[Piece]:
    """A pull request and what was said to it."""
    return [
        Piece("pull", "pr/1", revision, "pull", f"Part {n}", text, authors=("Ada",)) for n, text in enumerate(texts)
    ]


async def stored(app: App, job: jobs.Job, pieces: list[Piece], report: Report | None = None) -> Tally:
    return await ingest.stored(app, job, await repo_of(app), pieces, report)


async def test_an_item_is_stored_once_and_a_new_revision_supersedes_what_changed(app: App, job: jobs.Job) -> None:
    first = await stored(app, job, pull("We need steam.", "Ada: yes.", "Bob: no."))
    again = await stored(app, job, pull("We need steam.", "Ada: yes.", "Bob: no."))
    changed = await stored(app, job, pull("We need steam.", "Ada: yes indeed.", "Bob: no.", revision="2"))

    assert (first, again) == (Tally(stored=3), Tally(known=1))
    assert changed == Tally(stored=1, superseded=1)
    assert [one.text for one in await told(app)] == ["We need steam.", "Bob: no.", "Ada: yes indeed."]
    back = await stored(app, job, pull("We need steam.", "Ada: yes.", "Bob: no."))
    assert back == Tally(stored=1, superseded=1)
    assert {one.source for one in await told(app)} == {(await told(app))[0].source}


async def test_what_is_no_longer_there_may_come_back(app: App, job: jobs.Job) -> None:
    await stored(app, job, pull("We need steam."))
    report = Report()

    await ingest.gone(app, job, await repo_of(app), "pull", ["pr/1", "pr/unknown"], report)
    held = await told(app)
    back = await stored(app, job, pull("We need steam."))

    assert (held, report.tally, back) == ([], Tally(superseded=1), Tally(stored=1))


async def test_secrets_are_taken_out_of_every_part(app: App, job: jobs.Job) -> None:
    piece = Piece(
        "commit",
        "a" * 40,
        "",
        "commit",
        f"Use {KEY}",
        f"The key is {KEY}.",
        metadata={"type": "commit", "author": f"Ada {KEY}", "nested": [{"token": "hunter22hunter22"}]},
        parts={"files_modified": [f"src/{KEY}.py"], "changes": [f"src/{KEY}.py +1 -1"]},
        authors=(f"Ada {KEY}",),
        files=(f"src/{KEY}.py",),
        uri=f"https://x.example/?t={KEY}",
    )

    await stored(app, job, [piece])

    for table in ("memories", "sources", "memory_files", "search_docs", "entities"):
        held = str(await rows(app, f"SELECT * FROM {table} WHERE org = :org AND bank = :bank")).lower()
        assert KEY.lower() not in held and "hunter22" not in held, table


async def test_a_statement_that_was_forgotten_is_cut_out_of_what_says_more(app: App, job: jobs.Job) -> None:
    ctx = app.ctx(local_owner())
    kept = await dispatch.call(ctx, "memory.retain", {"bank": BANK, "content": "The salary of Bob is high."})
    await dispatch.call(ctx, "memory.forget", {"bank": BANK, "id": kept.id})  # type: ignore[attr-defined]

    tally = await stored(app, job, pull("We need steam. The salary of Bob is high.", "The salary of Bob is high."))

    assert tally == Tally(stored=1, forgotten=1)
    assert [one.text for one in await told(app)] == ["We need steam."]
    assert "salary" not in str(await rows(app, "SELECT * FROM search_docs WHERE org = :org AND bank = :bank"))


async def test_what_is_forgotten_while_a_batch_is_made_is_not_stored_by_it(
    app: App, job: jobs.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = app.ctx(local_owner())
    kept = await dispatch.call(ctx, "memory.retain", {"bank": BANK, "content": "The salary of Bob is high."})
    read, calls = ingest.Writer._read_twins, 0

    async def meanwhile(self: ingest.Writer) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await dispatch.call(ctx, "memory.forget", {"bank": BANK, "id": kept.id})  # type: ignore[attr-defined]
        await read(self)

    monkeypatch.setattr(ingest.Writer, "_read_twins", meanwhile)

    tally = await stored(app, job, pull("We need steam.", "The salary of Bob is high."))

    assert (tally, calls) == (Tally(stored=1, forgotten=1), 2)
    assert [one.text for one in await told(app)] == ["We need steam."]


async def test_progress_is_told_with_every_batch(app: App, job: jobs.Job) -> None:
    report = Report()
    report.begin("reading pull requests", 4, 0.5, 0.9)
    report.notes.append("Something was left out.")

    await stored(app, job, pull("One."), report)

    (row,) = await rows(app, "SELECT progress, result FROM jobs WHERE org = :org AND bank = :bank AND kind = 'sync'")
    assert row["progress"] == pytest.approx(0.6)
    assert row["result"] == (
        '{"doing": "reading pull requests", "pulls": 1, "read": 1, "of": 4, "stored": 1, "known": 0, "superseded": 0,'
        ' "notes": ["Something was left out."]}'
    )
