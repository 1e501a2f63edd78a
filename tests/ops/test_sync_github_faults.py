"""A sync with GitHub through every fault and stop: nothing is lost, nothing doubled, and what is missing is told."""

import asyncio
import time
from dataclasses import replace

import pytest

from keepsake.context import App
from keepsake.core import clock
from keepsake.core.clock import HOUR
from keepsake.core.errors import Conflict
from keepsake.ops.announced import DELETED
from keepsake.ops.sync_github import Pulled
from keepsake.services import github
from tests.github_server import Closes, Forge, Line
from tests.llm_server import Fails, Raw
from tests.ops import hubbing
from tests.ops.hubbing import Learning, filled, learning, wanted

pytestmark = pytest.mark.anyio
forge = hubbing.forge


@pytest.fixture
async def bank(app: App, forge: Forge) -> Learning:
    return await learning(app, forge)


async def test_issues_that_changed_in_one_moment_are_all_read(bank: Learning, forge: Forge) -> None:
    filled(forge, 12, 0)
    for number in range(2, 12):
        forge.issues[number]["updated_at"] = "2026-02-01T00:00:00Z"
    forge.most_per_page = 3

    await bank.sync()

    assert set(await bank.told()) == wanted(forge)


async def test_what_changes_while_it_is_read_makes_nothing_else_be_missed(bank: Learning, forge: Forge) -> None:
    filled(forge, 9, 0)
    forge.most_per_page = 3
    # While the first page is read, its issues move to the end and all others up, as they would at GitHub.
    forge.meanwhile["/issues/3/comments"] = lambda: [forge.comment(number, "Still.") for number in (1, 2, 3)]

    await bank.sync()

    told = await bank.told()
    assert set(told) == wanted(forge)
    assert all("Still." in told[f"issue/{number}"][1] for number in (1, 2, 3))


@pytest.mark.parametrize("lives_for", [1, 4, 7, 12])
async def test_a_sync_that_is_stopped_anywhere_goes_on_and_nothing_is_lost_or_doubled(
    bank: Learning, forge: Forge, lives_for: int
) -> None:
    filled(forge, 5, 5)
    forge.most_per_page = 2

    with pytest.raises(Conflict):
        await bank.sync(lives_for)
    stored = len(await bank.memories())
    forge.asked.clear()
    await bank.sync()

    told = await bank.told()
    assert set(told) == wanted(forge)
    assert [len(texts) for texts in told.values()] == [2] * 5 + [2] * 5 + [1]
    assert len(await bank.memories("")) == 21
    # What is stored is not asked about again.
    assert len([path for path in forge.paths() if path.count("/") == 3]) <= 3 * (21 - stored)


async def test_a_sync_that_is_stopped_again_and_again_ends_all_the_same(bank: Learning, forge: Forge) -> None:
    filled(forge, 5, 5)
    forge.most_per_page = 2
    stops = 0

    while stops < 50:
        try:
            await bank.sync(3)
            break
        except Conflict:
            stops += 1

    assert 3 < stops < 50
    assert set(await bank.told()) == wanted(forge)
    assert len(await bank.memories("")) == 21


async def test_after_a_stop_new_changes_are_found_too(bank: Learning, forge: Forge) -> None:
    filled(forge, 0, 6)
    forge.most_per_page = 2
    with pytest.raises(Conflict):
        await bank.sync(4)
    forge.pull(200, "Late", "Opened in between.")
    forge.comment(101, "Changed in between.")

    await bank.sync()

    told = await bank.told()
    assert set(told) == wanted(forge)
    assert "Changed in between." in told["pr/101"][1]


@pytest.mark.parametrize("line", [Fails(500), Fails(502), Closes(), Raw("[{")])
async def test_a_fault_in_passing_costs_nothing(bank: Learning, forge: Forge, line: Line) -> None:
    filled(forge)
    for on in ("/pulls", "/issues", "/reviews", "/comments", "/releases"):
        forge.will(line, on=on)

    assert (await bank.sync())[1].notes == []
    assert (set(await bank.told()), forge.faults) == (wanted(forge), [])


async def test_a_fault_that_stays_is_told_and_what_was_read_remains(bank: Learning, forge: Forge) -> None:
    filled(forge)
    forge.will(*[Fails(503)] * 4, on="/issues/2/comments")

    pulled, report = await bank.sync()
    before = set(await bank.told())
    again, _ = await bank.sync()

    assert pulled.error is not None and "503" in report.notes[0]
    assert {"pr/101", "pr/102", "pr/103"} <= before < wanted(forge)
    assert (again, set(await bank.told())) == (Pulled(), wanted(forge))


@pytest.mark.parametrize(
    ("line", "told"),
    [(Fails(401), "does not take the token"), (Fails(403), "right to read"), (Fails(404), "Check the repository")],
)
async def test_a_refusal_is_told_once_and_is_no_reason_to_fail(
    bank: Learning, forge: Forge, line: Line, told: str
) -> None:
    filled(forge)
    forge.will(*[line] * 4)

    pulled, report = await bank.sync()

    assert pulled == Pulled()
    assert len(report.notes) == 1 and told in report.notes[0]
    assert await bank.told() == {}


async def test_what_the_token_may_read_is_read(bank: Learning, forge: Forge) -> None:
    filled(forge)
    forge.will(Fails(403, {"X-Accepted-GitHub-Permissions": "pull_requests=read"}), on="/pulls")

    _, report = await bank.sync()

    assert "pull_requests=read" in report.notes[0]
    assert {key.partition("/")[0] for key in await bank.told()} == {"issue", "release"}


async def test_a_repository_without_issues_has_the_rest(bank: Learning, forge: Forge) -> None:
    filled(forge, 0, 2)
    forge.has_issues = False

    _, report = await bank.sync()

    assert (report.notes, set(await bank.told())) == ([], wanted(forge))


async def test_a_long_limit_leaves_the_rest_for_later(bank: Learning, forge: Forge) -> None:
    filled(forge)
    forge.will(Fails(429, {"Retry-After": "1800"}), on="/pulls/102/reviews")

    pulled, report = await bank.sync()

    assert pulled.again_at is not None and pulled.again_at > clock.now()
    assert report.waiting_until == clock.iso(pulled.again_at)
    assert "takes no more requests before" in report.notes[0]


async def test_sixty_an_hour_are_enough_in_the_end(app: App, forge: Forge) -> None:
    filled(forge, 4, 4)
    forge.token, forge.remaining, forge.reset = "", 6, int(time.time()) + 3_000
    bank = await learning(app, forge, token="", remote=f"{forge.url}/octo/keeper")
    hub = github.configured(bank.app.settings)
    rounds = 0

    while (await bank.sync())[0].again_at is not None:
        rounds += 1
        assert rounds < 20
        # An hour later.
        hub._rests_until, forge.remaining = 0, 6

    assert set(await bank.told()) == wanted(forge)
    assert rounds > 1
    assert all("authorization" not in one.headers for one in forge.asked)


async def test_a_short_limit_is_waited_for_where_everyone_sees_it(bank: Learning, forge: Forge) -> None:
    filled(forge, 1, 0)
    forge.will(Fails(429, {"Retry-After": "1"}), on="/issues")

    syncing = asyncio.create_task(bank.sync())
    while not (shown := await bank.shown()).get("waiting_until"):
        assert not syncing.done()
        await asyncio.sleep(0.02)
    pulled, report = await syncing

    assert clock.parse(str(shown["waiting_until"])) > 0 and shown["doing"] == "reading issues"
    assert (pulled, report.notes, (await bank.shown()).get("waiting_until")) == (Pulled(), [], None)
    assert set(await bank.told()) == wanted(forge)


async def test_what_a_broken_list_leaves_out_is_not_taken_for_deleted(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    await bank.put(cursors={**(await bank.repo()).cursors, DELETED: True})
    forge.asked.clear()
    forge.will(Raw("[]"), on="/releases")
    forge.hidden = {1, 2}

    await bank.sync()

    assert {"/issues/1", "/issues/2"} <= set(forge.paths())
    assert {"issue/1", "issue/2"} <= set(await bank.told())


async def test_marks_that_cannot_be_read_cost_only_time(bank: Learning, forge: Forge) -> None:
    filled(forge)
    await bank.sync()
    before = await bank.memories()
    await bank.put(cursors={"github": {"full_name": "octo/keeper", "pulls": 7}})

    await bank.sync()

    assert await bank.memories() == before


async def test_a_sync_that_takes_long_lets_others_have_their_turn_and_goes_on(bank: Learning, forge: Forge) -> None:
    filled(forge, 5, 5)
    forge.most_per_page = 2
    ticks = iter(range(0, 10_000 * HOUR, HOUR // 8))
    slow = Learning(replace(bank.app, now=lambda: clock.now() + next(ticks)), bank.bank)

    first, report = await slow.sync()
    before = set(await bank.told())
    while (await bank.sync())[0].again_at is not None:
        pass

    assert first.again_at is not None and "goes on by itself" in report.notes[0]
    assert set() < before < wanted(forge) == set(await bank.told())
