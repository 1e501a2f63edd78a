"""The timeline and whole records: order, positions, staleness, and what is out of reach."""

import pytest

from keepsake.context import App
from keepsake.core.clock import MINUTE
from keepsake.core.errors import BadInput, NotFound
from keepsake.core.principal import local_owner
from keepsake.store import banks, sessions
from keepsake.store.sessions import Session
from tests.ops.observing import NOON, Kiro, Seen, app, asking, kiro, observed

__all__ = ["app", "kiro"]
pytestmark = pytest.mark.anyio


async def test_positions_follow_the_time_it_happened_and_not_the_ids(app: App, kiro: Kiro) -> None:
    late, anchor, early, same = await observed(
        app,
        Seen("late", at=NOON + 5 * MINUTE),
        Seen("anchor", title="Modified auth.ts", parts={"subtitle": "edit src/auth.ts"}),
        Seen("early", at=NOON - 5 * MINUTE),
        Seen("same moment, stored later"),
    )

    told = (await kiro("timeline", anchor_id=anchor))["timeline"]

    assert [(one["id"], one["position"]) for one in told] == [(early, -1), (anchor, 0), (same, 1), (late, 2)]
    assert told[1] == {
        "id": anchor,
        "type": "file-write",
        "title": "Modified auth.ts",
        "subtitle": "edit src/auth.ts",
        "narrative": "anchor",
        "project": "my-api",
        "created_at": "2026-03-01T12:00:00.000Z",
        "created_at_epoch": NOON // 1000,
        "position": 0,
    }
    assert told[0]["subtitle"] is None


async def test_depths_are_five_each_and_may_be_chosen(app: App, kiro: Kiro) -> None:
    ids = await observed(app, *(Seen(f"step {n}", at=NOON + n * MINUTE) for n in range(20)))

    usual = (await kiro("timeline", anchor_id=ids[10]))["timeline"]
    chosen = (await kiro("timeline", anchor_id=ids[10], depth_before=0, depth_after=50))["timeline"]

    assert [one["position"] for one in usual] == list(range(-5, 6))
    assert [one["id"] for one in usual] == ids[5:16]
    assert [one["id"] for one in chosen] == ids[10:]


@pytest.mark.parametrize("depth", [-1, 51])
async def test_a_depth_beyond_its_bounds_is_refused(kiro: Kiro, depth: int) -> None:
    with pytest.raises(BadInput, match="depth_before"):
        await kiro("timeline", anchor_id=1, depth_before=depth)


async def test_summaries_and_other_projects_are_not_in_the_timeline(app: App, kiro: Kiro) -> None:
    anchor, _ = await observed(app, Seen("here"), Seen("a summary", kind="summary"))
    await observed(app, Seen("elsewhere"), bank="other")

    assert [one["id"] for one in (await kiro("timeline", anchor_id=anchor))["timeline"]] == [anchor]


async def test_an_anchor_out_of_reach_is_as_unknown_as_none(app: App, kiro: Kiro) -> None:
    (anchor,) = await observed(app, Seen("here"))
    narrow = asking(app, local_owner().narrowed(banks=frozenset({"other"})))
    bound = asking(app, bank="other")

    told = []
    for ask, id in ((kiro, 12345), (narrow, anchor), (bound, anchor)):
        with pytest.raises(NotFound) as refused:
            await ask("timeline", anchor_id=id)
        told.append(str(refused.value).replace(str(id), "ID"))

    assert len(set(told)) == 1


async def test_records_come_in_the_order_asked_and_unknown_ones_are_left_out(app: App, kiro: Kiro) -> None:
    first, second = await observed(app, Seen("one", title="first"), Seen("two", title="second"))
    (third,) = await observed(app, Seen("three", title="third"), bank="other")
    narrow = asking(app, local_owner().narrowed(banks=frozenset({"other"})))

    found = (await kiro("get_observations", ids=[third, 99, second, first, second]))["observations"]

    assert [(one["id"], one["title"]) for one in found] == [(third, "third"), (second, "second"), (first, "first")]
    assert [one["id"] for one in (await narrow("get_observations", ids=[first, third]))["observations"]] == [third]


@pytest.mark.parametrize("ids", [[], list(range(1, 52)), [0], [-1], ["1"], [1.5], [2**53], [None]])
async def test_a_bad_list_of_ids_is_refused(kiro: Kiro, ids: list[object]) -> None:
    with pytest.raises(BadInput, match="ids"):
        await kiro("get_observations", ids=ids)


async def test_a_later_change_of_a_file_makes_what_was_known_of_it_stale(app: App, kiro: Kiro) -> None:
    read, wrote, other, last = await observed(
        app,
        Seen("read a", read=["a.py"]),
        Seen("wrote a", wrote=["a.py"], at=NOON + MINUTE),
        Seen("read b", read=["b.py"]),
        Seen("read a again", read=["a.py"], at=NOON + 2 * MINUTE),
    )
    await observed(app, Seen("another project's a", wrote=["a.py"], at=NOON + 3 * MINUTE), bank="other")

    found = (await kiro("get_observations", ids=[read, wrote, other, last]))["observations"]

    assert [one["is_stale"] for one in found] == [1, 0, 0, 0]


async def test_a_file_that_was_seen_changed_on_disk_is_stale_too(app: App, kiro: Kiro) -> None:
    (id,) = await observed(app, Seen("read a", read=["a.py"]))
    await app.store.write(
        1, lambda tx: tx.run("UPDATE memory_files SET changed_at = :at WHERE org = 1 AND memory = :id", at=NOON, id=id)
    )

    assert (await kiro("get_observations", ids=[id]))["observations"][0]["is_stale"] == 1


async def test_a_summary_tells_its_session(app: App, kiro: Kiro) -> None:
    await observed(app, Seen("all went well", kind="summary", source=7))
    (bank,) = await app.store.read(1, lambda tx: banks.listed(tx, 1))
    session = Session(7, "session-abc", "claude", "", "", NOON, NOON)
    await app.store.write(1, lambda tx: sessions.insert(tx, 1, bank.id, session))

    (summary,) = (await kiro("search", query="went AND well"))["summaries"]

    assert (summary["session_id"], summary["notes"]) == ("session-abc", "all went well")
