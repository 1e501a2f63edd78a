"""A project's profile: its chapters by rules and by a model, when it is due, and what becomes of it; on both stores."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from keepsake import worker
from keepsake.context import App
from keepsake.core import text
from keepsake.core.errors import NotFound
from keepsake.ops import jobs as job_ops
from keepsake.store import jobs, mental_models
from tests.llm_server import MODEL, Fails, Hangs, Script
from tests.ops import profiling
from tests.ops.profiling import BANK, ORG, chapter, commit, ended, issue, known, note, repo, synced, told, worked

pytestmark = pytest.mark.anyio
IDS = ["architecture", "conventions", "hot-spots", "open-questions", "owners", "purpose"]
PIECES = [note("README.md", profiling.README, subtype="readme"), *(commit(n) for n in range(1, 6))]


async def profiled(app: App, *pieces: Any) -> None:
    await known(app)
    await told(app, pieces or PIECES)
    await worked(app)


async def test_the_first_sync_makes_six_chapters_with_evidence_that_exists(app: App, call: Any) -> None:
    await known(app)

    await told(app, PIECES)
    before = await repo(app)
    await worked(app)
    after = await repo(app)

    listed = (await call("list_mental_models", bank_id=BANK, tags=["profile"]))["mental_models"]
    assert [one["mental_model_id"] for one in listed] == [f"project-{id}" for id in IDS]
    assert (before.synthesis, before.synthesis_progress, before.synthesis_of) == ("pending", 0, 0)
    assert (after.synthesis, after.synthesis_progress, after.synthesis_of) == ("completed", 100, len(PIECES))
    for id in IDS:
        shown = await chapter(call, id)
        assert text.cost(shown["content"]) <= shown["max_tokens"]
        for one in shown.get("based_on", []):
            assert [await call("get_memory", memory_id=memory, bank_id=BANK) for memory in one["memory_ids"]]


async def test_a_synced_repository_tells_what_it_is_how_it_is_built_and_by_whom(
    app: App, call: Any, tmp_path: Path
) -> None:
    project = profiling.project(tmp_path / "shop")

    await synced(app, project.path)
    told = {id: (await chapter(call, id))["content"] for id in IDS}

    assert told["purpose"].startswith("- Shop sells tea to people who know what they like.")
    assert "- It has 6 files, 1 kB in all, most of them .md (3), .py (3)." in told["architecture"]
    assert "## docs/design.md\n- Orders go through a queue into the packing service." in told["architecture"]
    assert "5 of the newest 5 commit messages begin with a type such as feat:, fix:, docs:" in told["conventions"]
    assert "## CONTRIBUTING.md\n- Every change must come with a test." in told["conventions"]
    assert "src/shop/orders.py was changed by 3 commits, last on 2026-05-12: feat: pack orders" in told["hot-spots"]
    assert "src/shop: Anna Berg made 2 of 4 commits (last on 2026-05-12), Ben Oak 2" in told["owners"]
    assert "- Refunds are not yet implemented." in told["open-questions"]
    assert "@" not in "".join(told.values())


async def test_a_repository_that_tells_something_else_is_profiled_anew(app: App, call: Any, tmp_path: Path) -> None:
    project = profiling.project(tmp_path / "shop")
    await synced(app, project.path)

    profiling.on("2026-05-13", project, "fix: weigh tea", profiling.BEN, src__shop__tea_py="2\n")
    await synced(app, project.path)
    unchanged = await chapter(call, "hot-spots")
    profiling.on(
        "2026-05-14", project, "docs: coffee", profiling.BEN, README_md="# Shop\n\nShop sells coffee to everyone.\n"
    )
    await synced(app, project.path)

    purpose, spots = await chapter(call, "purpose"), await chapter(call, "hot-spots")
    assert (purpose["content"], purpose["versions"]) == ("- Shop sells coffee to everyone.", 2)
    assert (unchanged["versions"], spots["versions"]) == (1, 2)
    assert "README.md was changed by 2 commits, last on 2026-05-14: docs: coffee" in spots["content"]


async def test_the_purpose_is_what_the_readme_begins_with(app: App, call: Any) -> None:
    await profiled(app)

    shown = await chapter(call, "purpose")

    first = "Shop sells tea to people who know what they like. It takes orders, packs them and tells the customer."
    assert shown["content"] == f"- {first}"
    assert (shown["made_by"], shown["versions"]) == ("rules", 1)


async def test_conventions_are_what_documents_prescribe_and_messages_share(app: App, call: Any) -> None:
    agents = note(".keepsake/tea.md", "Never boil green tea. It is green.\n\nTODO: buy a kettle for it.")
    await profiled(app, *PIECES, agents, note("CONTRIBUTING.md", profiling.CONTRIBUTING, subtype="file"))

    shown = await chapter(call, "conventions")

    assert shown["content"] == (
        "## Commit messages\n- 5 of the newest 5 commit messages begin with a type such as fix:\n\n"
        "## .keepsake/tea.md\n- Never boil green tea. It is green.\n\n"
        "## CONTRIBUTING.md\n- Every change must come with a test.\n- Use four spaces and never tabs."
    )
    assert (await chapter(call, "open-questions"))["content"] == "## .keepsake/tea.md\n- TODO: buy a kettle for it."


async def test_hot_spots_and_owners_are_counted_from_commits(app: App, call: Any) -> None:
    early = [commit(n, "docs/a.md", "Anna Berg", "2024-01-01") for n in range(1, 4)]
    late = [commit(9, "src/shop/orders.py", "ben@shop.example"), commit(10), commit(11, "docs/a.md")]
    await profiled(app, *early, *late)

    spots, owners = await chapter(call, "hot-spots"), await chapter(call, "owners")

    title = "fix: change number 11 of the shop"
    assert spots["content"].splitlines()[:4] == [
        "## In the 90 days up to 2026-05-02",
        "- src/shop/orders.py was changed by 2 commits, last on 2026-05-02: fix: change number 10 of the shop",
        f"- docs/a.md was changed by 1 commit, last on 2026-05-02: {title}",
        "- src/shop was changed by 2 commits, last on 2026-05-02: fix: change number 10 of the shop",
    ]
    assert f"## Overall\n- docs/a.md was changed by 4 commits, last on 2026-05-02: {title}" in spots["content"]
    assert (
        "## By folder\n- docs: Anna Berg made 3 of 4 commits (last on 2024-01-01), Ben Oak 1 (last on 2026-05-02)."
        in owners["content"]
    )
    assert not re.search(r"\S@\S", spots["content"] + owners["content"])
    assert "ben made 1" in owners["content"] or "ben 1 (" in owners["content"]


async def test_open_questions_are_open_issues_and_what_is_unsettled(app: App, call: Any) -> None:
    issues = [
        issue(1, "Where do refunds go?"),
        issue(2, "Old one", "closed"),
        issue(3, "Tea is cold", day="2026-05-03"),
    ]
    await profiled(app, *issues, note("docs/design.md", "Refunds are not yet implemented.", subtype="file"))

    shown = await chapter(call, "open-questions")

    assert shown["content"] == (
        "## Issues\n- Issue #3 is open since 2026-05-03: Tea is cold\n"
        "- Issue #1 is open since 2026-05-02: Where do refunds go?\n\n"
        "## docs/design.md\n- Refunds are not yet implemented."
    )


async def test_a_profile_is_made_anew_when_enough_has_changed(app: App, call: Any) -> None:
    await profiled(app)

    few = await told_and_due(app, *(commit(n) for n in range(100, 119)))
    await call("refresh_mental_model", mental_model_id="project-owners", bank_id=BANK)
    await worked(app)
    enough = await told_and_due(app, commit(119))
    await worked(app)
    nothing = await ended(app)

    assert (few, enough, nothing) == (False, True, False)
    assert (await repo(app)).synthesis_of == len(PIECES) + 20


async def told_and_due(app: App, *pieces: Any) -> bool:
    await told(app, pieces)
    return (await repo(app)).synthesis != "completed"


async def test_another_readme_is_enough_and_the_earlier_text_stays_a_version(app: App, call: Any) -> None:
    await profiled(app)

    is_due = await told_and_due(app, note("README.md", "# Shop\n\nShop sells coffee to everyone now.", "2", "readme"))
    await worked(app)

    shown = await chapter(call, "purpose")
    assert (is_due, shown["content"], shown["versions"]) == (True, "- Shop sells coffee to everyone now.", 2)
    assert (await chapter(call, "hot-spots"))["versions"] == 1


async def test_a_new_note_for_agents_is_enough(app: App) -> None:
    await profiled(app)

    assert not await told_and_due(app, note("docs/tea.md", "Tea is a drink.", subtype="file"))
    assert await told_and_due(app, note(".keystone/tea.md", "Never boil green tea."))


async def test_a_readme_that_is_gone_is_enough(app: App, call: Any, tmp_path: Path) -> None:
    project = profiling.project(tmp_path / "shop")
    await synced(app, project.path)

    profiling.on("2026-05-14", project, "docs: say nothing", profiling.BEN, README_md=None)
    await synced(app, project.path)

    assert "sells tea" not in (await chapter(call, "purpose"))["content"]


async def test_nothing_is_due_before_a_sync_came_to_its_end(app: App) -> None:
    await known(app)
    found = await repo(app)

    assert found.completed == 0
    assert (found.synthesis, await worker.step(app)) == ("pending", False)


async def test_the_language_model_writes_what_its_evidence_says_and_counts_nothing(
    thinking: App, think: Any, script: Script
) -> None:
    await known(thinking)
    await told(thinking, PIECES)
    script.will(*[lambda request: document("The shop sells tea.", numbered(request, "sells"))] * 4)

    await worked(thinking)

    shown, spots = await chapter(think, "purpose"), await chapter(think, "hot-spots")
    assert (shown["content"], shown["made_by"]) == ("## Tea\n- The shop sells tea.", MODEL)
    assert (spots["made_by"], len(script.asked)) == ("rules", 4)
    assert '"trust": "outside"' in script.prompt(0)
    assert (await repo(thinking)).synthesis == "completed"


def document(sentence: str, number: int) -> str:
    return json.dumps({"sections": [{"title": "Tea", "sentences": [{"text": sentence, "evidence": [number]}]}]})


def numbered(request: dict[str, Any], word: str) -> int:
    """The number under which a memory with a word was given."""
    lines = [line for line in request["messages"][1]["content"].splitlines() if line.startswith("{")]
    return next(int(told["n"]) for told in map(json.loads, lines) if word in told["text"])


async def test_a_model_that_is_away_leaves_its_texts_and_the_rest_is_made(
    thinking: App, think: Any, script: Script
) -> None:
    await known(thinking)
    await told(thinking, PIECES)
    script.will(*[lambda request: document("The shop sells tea.", numbered(request, "sells"))] * 4)
    await worked(thinking)

    script.will(*[Fails(400)] * 20)
    await told(
        thinking, [note("README.md", "Shop sells coffee to all.", "2", "readme"), *(commit(n) for n in range(50, 53))]
    )
    await worked(thinking)

    stands = await repo(thinking)
    assert (await chapter(think, "purpose"))["made_by"] == MODEL
    assert "commits" in (await chapter(think, "hot-spots"))["content"]
    assert (await chapter(think, "hot-spots"))["versions"] == 2
    assert stands.synthesis == "pending"


async def test_forgetting_takes_its_sentences_out_and_the_chapter_is_made_in_its_own_way(app: App, call: Any) -> None:
    await profiled(app)
    before = await chapter(call, "hot-spots")
    newest = before["based_on"][0]["memory_ids"][0]

    await call("delete_memory", memory_id=newest, bank_id=BANK)
    meanwhile = await chapter(call, "hot-spots")
    await worked(app)
    after = await chapter(call, "hot-spots")

    assert "number 5" in before["content"] and meanwhile["content"] == ""
    assert "src/shop/orders.py was changed by 4 commits" in after["content"]
    assert "number 5" not in json.dumps(after)


async def test_a_deleted_chapter_comes_back_with_the_next_profile_and_an_edited_one_stays_edited(
    app: App, call: Any
) -> None:
    await profiled(app)
    await call("delete_mental_model", mental_model_id="project-owners", bank_id=BANK)
    await call("update_mental_model", mental_model_id="project-purpose", bank_id=BANK, name="Why", max_tokens=64)

    await told(app, [commit(60)])
    await worked(app)
    with pytest.raises(NotFound):
        await chapter(call, "owners")
    await told(app, [commit(n) for n in range(61, 85)])
    await worked(app)

    assert "Ben Oak made" in (await chapter(call, "owners"))["content"]
    kept = await chapter(call, "purpose")
    assert (kept["name"], kept["max_tokens"]) == ("Why", 64)


async def test_another_question_makes_a_chapter_an_ordinary_model(app: App, call: Any) -> None:
    await profiled(app)
    asks = {"mental_model_id": "project-hot-spots", "bank_id": BANK}
    await call("update_mental_model", **asks, source_query="What does the shop sell?")

    await call("refresh_mental_model", **asks)
    await worked(app)

    assert "sells **tea**" in (await chapter(call, "hot-spots"))["content"]


async def test_a_cancelled_profile_waits_for_the_next_sync(app: App, call: Any) -> None:
    await known(app)
    await told(app, PIECES)
    (waiting,) = [one for one in (await call("list_operations", bank_id=BANK))["operations"] if one["type"] != "told"]

    await call("cancel_operation", operation_id=waiting["operation_id"], bank_id=BANK)
    await worked(app)
    cancelled = await repo(app)
    is_due = await ended(app)
    await worked(app)

    assert (waiting["type"], cancelled.synthesis, is_due) == ("synthesise", "pending", True)
    assert (await repo(app)).synthesis == "completed"


async def test_a_profile_that_is_cancelled_while_it_runs_is_told_to_wait(
    thinking: App, think: Any, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WATCH_S", 0.01)
    await known(thinking)
    await told(thinking, PIECES)
    script.will(Hangs())
    running = asyncio.create_task(worker.step(thinking))
    while not script.asked:
        await asyncio.sleep(0.01)
    begun = await repo(thinking)

    (operation,) = (await think("list_operations", bank_id=BANK, status="running"))["operations"]
    await think("cancel_operation", operation_id=operation["operation_id"], bank_id=BANK)
    await running

    assert (begun.synthesis, (await repo(thinking)).synthesis) == ("running", "pending")


async def test_after_its_last_try_a_profile_has_failed(thinking: App, script: Script) -> None:
    await known(thinking)
    await told(thinking, PIECES)
    script.will(*[lambda request: document("The shop sells tea.", numbered(request, "sells"))] * 4)
    await worked(thinking)
    await told(thinking, [note("README.md", "Shop sells coffee to all.", "2", "readme")])
    used = "UPDATE jobs SET attempt = :used WHERE kind = 'synthesise'"
    await thinking.store.write(ORG, lambda tx: tx.run(used, used=jobs.MOST_ATTEMPTS - 1))

    script.will(*[Fails(400)] * 20)
    await worked(thinking)

    assert (await repo(thinking)).synthesis == "failed"
    assert await ended(thinking)


async def test_whoever_takes_over_from_a_dead_worker_goes_on(app: App, call: Any) -> None:
    await known(app)
    await told(app, PIECES)
    first = await job_ops.claim(app, ["synthesise"])
    assert first is not None
    await app.store.write(ORG, lambda tx: tx.run("UPDATE jobs SET lease_until = 0 WHERE id = :id", id=first.id))

    await worked(app)

    assert (await repo(app)).synthesis == "completed"
    assert (await chapter(call, "purpose"))["versions"] == 1


async def test_a_bank_without_a_repository_has_no_profile(app: App, call: Any) -> None:
    await call("create_bank", bank_id=BANK)
    id = await profiling.bank_id(app)
    await app.store.write(ORG, lambda tx: jobs.wanted(tx, app.store, ORG, id, "synthesise", app.now()))

    await worked(app)

    assert await app.store.read(ORG, lambda tx: mental_models.listed(tx, ORG, id)) == []
