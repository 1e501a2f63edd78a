"""What a bank learns from GitHub: all of it once, then only what is new or has changed."""

import json
from dataclasses import replace

import pytest

from keepsake import dispatch, settings
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import local_owner
from keepsake.ops.announced import DELETED
from keepsake.ops.sync_github import Pulled
from tests.github_server import Forge
from tests.llm_server import Fails
from tests.ops import hubbing
from tests.ops.hubbing import BANK, TOKEN, Learning, filled, learning, wanted

pytestmark = pytest.mark.anyio
forge = hubbing.forge
SECRET = "ghp_" + "Zz9" * 12


@pytest.fixture
async def bank(app: App, forge: Forge) -> Learning:
    return await learning(app, forge)


async def test_all_of_it_is_read_and_told_as_it_was_said(bank: Learning, forge: Forge) -> None:
    filled(forge, 1, 1)
    forge.comment(101, "Merged at last.", "ada")

    pulled, report = await bank.sync()

    assert (pulled, report.notes) == (Pulled(), [])
    assert await bank.told() == {
        "issue/1": ["Crash 1\n\nIt crashes at step 1.", "bob: I see it too, in place 1."],
        "pr/101": [
            "Mend 101\n\nThis mends step 101.",
            "bob: Why is step 101 first?\n\nbob: (src/step101.py:7) Say why.\n\nada: Merged at last.",
        ],
        "release/v1.0": ["First\n\nAll steps work."],
    }
    assert {name: report.counts[name] for name in ("pulls", "issues", "releases")} == {
        "pulls": 1,
        "issues": 1,
        "releases": 1,
    }


async def test_who_and_when_stands_beside_it(bank: Learning, forge: Forge) -> None:
    one = forge.pull(5, "Mend it", "Now.", "grace", merged_at="2026-01-02T00:00:00Z", state="closed")
    one["labels"] = [{"name": "bug"}, {"name": "urgent"}]

    await bank.sync()

    (row,) = await bank.memories()
    assert (row["kind"], row["subtype"], row["fact_type"], row["title"]) == ("pull", "pull", "experience", "Mend it")
    assert (row["author"], row["trust"], row["revision"]) == ("sync", "outside", one["updated_at"])
    assert row["happened_from"] == clock.parse(one["created_at"])
    assert json.loads(row["metadata"]) == {
        "type": "pull",
        "date": one["created_at"],
        "number": 5,
        "author": "grace",
        "url": "https://github.com/octo/keeper/pull/5",
        "state": "merged",
        "merged_at": "2026-01-02T00:00:00Z",
        "labels": "bug, urgent",
    }


async def test_what_says_nothing_is_left_out(bank: Learning, forge: Forge) -> None:
    forge.pull(5, "Mend it", "<!-- Describe your change -->\r\nNow.", "grace")
    forge.review(5, "", "ci[bot]")
    forge.review(5, "", "ada", "COMMENTED")
    forge.review(5, "", "ada", "APPROVED")
    forge.comment(5, "Coverage fell by 0.1 %.", "codecov[bot]")
    forge.comment(5, None, None)

    await bank.sync()

    assert await bank.told() == {"pr/5": ["Mend it\n\nNow.", "ada: approved this."]}


async def test_a_second_sync_reads_nothing_again(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    before = await bank.memories()
    forge.asked.clear()

    await bank.sync()
    first = forge.paths()
    forge.asked.clear()
    await bank.sync()

    assert await bank.memories() == before
    assert first == ["/pulls", "/issues", "/releases"]
    assert [one.status for one in forge.asked] == [304, 304, 304]


async def test_only_what_has_changed_is_read_and_supersedes_what_it_said(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    before = {row["id"]: row for row in await bank.memories()}
    forge.asked.clear()
    forge.issues[2]["body"] = "It crashes at step 2, but only on Mondays."
    forge.comment(2, "Mended in 102.", "grace")
    forge.issue(9, "Slow", "It takes an hour.")

    await bank.sync()

    told = await bank.told()
    assert told["issue/2"] == [
        "bob: I see it too, in place 2.\n\ngrace: Mended in 102.",
        "Crash 2\n\nIt crashes at step 2, but only on Mondays.",
    ] or told["issue/2"] == [
        "Crash 2\n\nIt crashes at step 2, but only on Mondays.",
        "bob: I see it too, in place 2.\n\ngrace: Mended in 102.",
    ]
    assert told["issue/9"] == ["Slow\n\nIt takes an hour."]
    assert sorted(forge.paths()) == ["/issues", "/issues/2/comments", "/pulls", "/releases"]
    kept = {row["id"] for row in await bank.memories()} & set(before)
    assert len(before) - len(kept) == 2


async def test_a_section_that_stays_keeps_its_memory(bank: Learning, forge: Forge) -> None:
    forge.issue(1, "Crash", "It crashes.")
    await bank.sync()
    (first,) = await bank.memories()
    forge.comment(1, "Here too.")

    await bank.sync()

    opened, answer = await bank.memories()
    assert (opened["id"], opened["text"]) == (first["id"], first["text"])
    assert answer["text"] == "bob: Here too."


async def test_a_changed_release_supersedes_and_a_deleted_one_is_gone(bank: Learning, forge: Forge) -> None:
    forge.release("v1.0", "First", "All steps work.")
    forge.release("v1.1", "Second", "More steps.")
    forge.release("v1.2", None, "Not yet.", draft=True)
    await bank.sync()
    forge.releases[2]["body"] = "All steps but one work."
    forge.releases.pop(1)

    await bank.sync()

    assert await bank.told() == {"release/v1.0": ["First\n\nAll steps but one work."]}


async def test_many_pages_are_read_to_their_end(bank: Learning, forge: Forge) -> None:
    filled(forge, 12, 8)
    forge.most_per_page = 5

    await bank.sync()

    assert set(await bank.told()) == wanted(forge)


async def test_a_folder_is_no_permission_to_ask_anyone(app: App, forge: Forge) -> None:
    filled(forge)
    forge.token = ""
    bank = await learning(app, forge, token="")

    assert (await bank.sync())[0] == Pulled()
    assert (forge.asked, await bank.told()) == ([], {})


async def test_secrets_are_not_kept_even_where_a_section_ends_within_one(bank: Learning, forge: Forge) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq9\n" * 120 + "-----END RSA PRIVATE KEY-----"
    forge.issue(1, f"Token {SECRET} leaked", f"The log says Authorization: Bearer {SECRET}")
    forge.comment(1, f"{'words ' * 200}\n{key}")
    forge.release("v1", f"With {SECRET}", f"token={SECRET}")

    await bank.sync()

    kept = json.dumps([dict(row) for row in await bank.memories("")])
    assert SECRET not in kept and "MIIEpAIBAAKCAQEA7bq9" not in kept
    assert "[redacted:github-token]" in kept and "[redacted:private-key]" in kept


async def test_what_was_deleted_or_moved_is_superseded_when_it_is_looked_for(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    forge.delete(1)
    forge.delete(2, moved_to="/repositories/7/issues/20")
    await bank.sync()
    assert set(await bank.told()) == wanted(forge) | {"issue/1", "issue/2"}

    await bank.put(cursors={**(await bank.repo()).cursors, DELETED: True})
    await bank.sync()

    assert set(await bank.told()) == wanted(forge)
    assert len(await bank.memories("AND m.superseded_at IS NOT NULL AND m.superseded_by IS NULL")) == 4
    assert (await bank.repo()).cursors[DELETED] is False


async def test_it_is_looked_for_deletions_once_a_week(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    forge.delete(1)
    later = replace(bank.app, now=lambda: clock.now() + 8 * clock.DAY)

    await Learning(later, bank.bank).sync()

    assert set(await bank.told()) == wanted(forge)


@pytest.mark.parametrize("cursors", [{}, {"github": {"full_name": "octo/other", "pulls": {"until": "2030-01-01"}}}])
async def test_another_repository_is_read_from_its_beginning_and_the_former_one_superseded(
    bank: Learning, forge: Forge, cursors: dict[str, object]
) -> None:
    filled(forge, 3, 0)
    await bank.sync()
    await bank.put(cursors=cursors)
    forge.issues.clear()
    forge.comments.clear()
    forge.pull(1, "New", "Here.")

    await bank.sync()

    assert await bank.told() == {"pr/1": ["New\n\nHere."], "release/v1.0": ["First\n\nAll steps work."]}


async def test_what_a_repository_told_that_is_no_longer_at_github_is_superseded(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    await bank.put(cursors={}, full_name="", remote="https://git.example/other")
    forge.asked.clear()

    await bank.sync()

    assert (await bank.told(), forge.asked) == ({}, [])


async def test_without_its_token_it_keeps_what_it_knows(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    before = await bank.told()
    forge.asked.clear()
    bare = replace(bank.app, settings=settings.load({}, data_dir=bank.app.settings.data_dir))

    await Learning(bare, bank.bank).sync()

    assert (await bank.told(), forge.asked) == (before, [])


async def test_a_bank_that_was_cleared_is_filled_again(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    await dispatch.call(bank.app.ctx(local_owner(), BANK), "memory.clear", {})
    assert await bank.told() == {}

    await bank.sync()

    assert set(await bank.told()) == wanted(forge)


async def test_an_empty_repository_costs_three_unchanged_pages(bank: Learning, forge: Forge) -> None:
    await bank.sync()
    forge.asked.clear()

    await bank.sync()

    assert [one.status for one in forge.asked] == [304, 304, 304]


async def test_the_token_is_neither_stored_nor_told(bank: Learning, forge: Forge) -> None:
    filled(forge)
    forge.will(Fails(401, message=f"Bad credentials {TOKEN}"), on="/releases")

    _, report = await bank.sync()

    assert TOKEN not in json.dumps([dict(row) for row in await bank.memories("")])
    assert TOKEN not in str(report) and TOKEN not in str(await bank.repo())
