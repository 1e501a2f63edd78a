"""What pages of the console ask for besides: sessions, versions of models, single decisions, places of nodes."""

import pytest

from keepsake.context import App
from keepsake.core import layout
from keepsake.core.clock import DAY, HOUR
from keepsake.core.errors import NotFound
from tests.console import knowing
from tests.ops.working_space import Do, doing

pytestmark = pytest.mark.anyio


@pytest.fixture
def do(app: App) -> Do:
    return doing(app, "default")


async def test_sessions_are_listed_and_read_in_the_order_of_time(app: App, do: Do) -> None:
    assert await do("session.list") == {"sessions": []}
    await do("memory.retain", content="Tea is at four.")
    old = await knowing.session(app, "old", 3 * DAY, ["Looked at tea.txt", "Tea is green."], "cursor")
    new = await knowing.session(app, "new", 2 * HOUR, ["Opened a.py", "Ran make", "Ran it again", "Make is slow."])

    listed = (await do("session.list"))["sessions"]
    told = await do("session.get", id="new", limit=2)
    rest = await do("session.get", id=str(new), after=told["records"][-1]["id"])
    activity = await do("session.activity", weeks=2)

    assert [(one["id"], one["observations"], one["kept"]) for one in listed] == [(str(new), 3, 1), (str(old), 1, 1)]
    assert listed[0]["title"] == "Session in new"
    assert [one["key"] for one in (await do("session.list", client="cursor"))["sessions"]] == ["old"]
    assert [one["key"] for one in (await do("session.list", keys=["old", "none"]))["sessions"]] == ["old"]
    assert [one["key"] for one in (await do("session.list", before=str(new)))["sessions"]] == ["old"]
    assert [one["text"] for one in told["records"]] == ["Opened a.py", "Ran make"] and told["has_more"]
    assert [one["text"] for one in rest["records"]] == ["Ran it again", "Make is slow."] and not rest["has_more"]
    assert sum(activity["days"]) == 2 and activity["clients"] == ["claude-code", "cursor"]
    assert 8 <= len(activity["days"]) <= 14
    for wrong in ("12345", "nobody"):
        with pytest.raises(NotFound):
            await do("session.get", id=wrong)
    seen = await do("memory.timeline", at="2100-01-01T00:00:00Z", before=50, kinds=["fact"])
    assert [one["record"]["text"] for one in seen["entries"]] == ["Tea is green.", "Make is slow."]


async def test_a_model_is_read_as_it_was_and_a_decision_with_what_it_replaced(app: App, do: Do) -> None:
    first = await do("decision.record", title="Tea is at four", rationale="Habit.")
    second = await do("decision.record", title="Tea is at five", supersedes=first["decision"]["id"])
    id = await knowing.model(app, "Tea", ["It is green.", "It is black."], [second["decision"]["id"]])

    versions = (await do("model.versions", id=id))["versions"]
    one = await do("decision.get", id="tea-is-at-five")
    old = await do("decision.get", id=first["decision"]["id"])

    assert [(each["version"], each["made_by"]) for each in versions] == [(2, "rules"), (1, "rules")]
    assert (await do("model.get", id=id))["content"] == "- It is black."
    assert (await do("model.version", id=id, version=1))["content"] == "- It is green."
    assert one["supersedes"] == [old["id"]] and old["superseded_by"] == one["id"] and old["status"] == "superseded"
    with pytest.raises(NotFound):
        await do("model.version", id=id, version=9)
    note = await do("memory.retain", content="Cups are blue.")
    for wrong in ("nothing", note["id"]):
        with pytest.raises(NotFound):
            await do("decision.get", id=wrong)


async def test_a_layout_is_kept_until_the_graph_changes(app: App, do: Do, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    usual = layout.laid

    def counted(*given: object) -> layout.Layout:
        drawn.append(len(given))
        return usual(*given)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(layout, "laid", counted)
    assert (await do("graph.picture"))["places"] == []
    tea = await knowing.decided(app, "Tea is at four")
    milk = await knowing.decided(app, "Milk comes first")
    await do("graph.relate", origin=tea, target=milk, type="depends_on")

    first = await do("graph.picture")
    again = await do("graph.picture")
    around = await do("graph.picture", center=milk)
    await knowing.decided(app, "Sugar is asked for")
    more = await do("graph.picture")

    assert again == first and len(drawn) == 3
    assert [node["id"] for node in first["graph"]["nodes"]] == [place["id"] for place in first["places"]]
    assert (around["places"][0]["x"], around["places"][0]["y"]) == (400, 260)
    assert {place["id"] for place in more["places"]} > {tea, milk}


async def test_documents_are_listed_a_page_at_a_time(do: Do) -> None:
    for name in ("a", "b", "c"):
        await do("memory.retain", content=f"Document {name} is short.", document=name)

    first = await do("document.list", limit=2)
    second = await do("document.list", limit=2, offset=2)

    assert [one["id"] for page in (first, second) for one in page["documents"]] == ["c", "b", "a"]
