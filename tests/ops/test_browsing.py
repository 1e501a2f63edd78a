"""What people do with memories: look through them, ask where they came from, mark, settle, forget; on both stores."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import clock, ids
from keepsake.core.clock import DAY, SECOND
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.principal import LOCAL_ORG, Principal, local_owner
from keepsake.ops import chosen
from keepsake.store import banks, browsing, memories
from keepsake.store.browsing import Stretch
from keepsake.store.engine import Tx
from keepsake.store.filters import Filter
from keepsake.store.memories import Memory

pytestmark = pytest.mark.anyio


async def operation(app: App, name: str, /, **arguments: Any) -> dict[str, Any]:
    result = await dispatch.call(app.ctx(local_owner()), name, arguments)
    return result.model_dump(mode="json")


async def test_memories_are_browsed_page_by_page_and_narrowed_by_what_they_are(app: App) -> None:
    before = clock.iso(clock.now())
    told = [
        await operation(
            app, "memory.retain", content=f"The {n}. tram leaves at {n}.", tags=["even"] if n % 2 == 0 else []
        )
        for n in range(1, 6)
    ]
    document = await operation(app, "memory.retain", content="Trams have bells.", document="trams.md")
    ids = [one["id"] for one in told]

    async def browsed(**given: Any) -> list[str]:
        return [one["id"] for one in (await operation(app, "memory.browse", **given))["memories"]]

    first = await operation(app, "memory.browse", limit=4)
    second = await operation(app, "memory.browse", limit=4, before=first["earlier"])
    fixed = await operation(app, "memory.correct", id=ids[0], content="The 1. tram leaves at two.", if_current=True)

    assert [one["id"] for page in (first, second) for one in page["memories"]] == [document["id"], *ids[::-1]]
    assert second["earlier"] is None
    assert await browsed(tags=["even"]) == [ids[3], ids[1]]
    assert await browsed(sources=["document"]) == [document["id"]]
    assert await browsed(sources=["told"], limit=1) == [fixed["id"]]
    assert await browsed(sources=["session", "commit"]) == []
    assert await browsed(trust=["outside"]) == []
    assert len(await browsed(trust=["agent"], types=["world"])) == 6
    assert await browsed(kinds=["fact"]) == [fixed["id"]]
    assert ids[0] in await browsed(superseded=True)
    assert ids[0] not in await browsed()
    assert await browsed(as_of=before) == []
    assert await browsed(until=before) == []
    assert len(await browsed(since=before)) == 6
    recalled = await operation(
        app, "memory.recall", query="When do trams leave?", sources=["document"], trust=["agent"]
    )
    assert [hit["memory"]["id"] for hit in recalled["hits"]] == [document["id"]]
    with pytest.raises(BadInput):
        await browsed(before="x")


async def test_every_filter_finds_the_same_however_little_is_looked_at_for_a_page(app: App) -> None:
    await operation(app, "bank.create", name="default")
    now = app.now()
    old = ids.first((now - 9 * DAY) // SECOND)
    known = {old + n if n < 20 else app.store.new_id(): n for n in range(60)}

    async def told(tx: Tx) -> int:
        bank = await banks.named(tx, LOCAL_ORG, "default")
        assert bank is not None
        for id, n in known.items():
            memory = Memory(
                org=LOCAL_ORG,
                bank=bank.id,
                id=id,
                kind="fact" if n % 7 else "decision",
                fact_type="world" if n % 5 else "opinion",
                text=f"Tram {n}.",
                learned_at=now - 9 * DAY if n < 20 else now,
                author="local",
                text_hash=f"h{n}",
                tokens=3,
                seq=1,
                tags=() if n % 2 else ("even",),
                trust="agent" if n % 3 else "outside",
                superseded_at=None if n % 11 else now,
            )
            await memories.insert(tx, memory)
        return bank.id

    bank = await app.store.write(LOCAL_ORG, told)
    cases: list[tuple[dict[str, Any], Callable[[int], bool]]] = [
        ({}, lambda n: True),
        ({"kinds": ("decision",)}, lambda n: n % 7 == 0),
        ({"kinds": ("fact",)}, lambda n: n % 7 != 0),
        ({"types": ("opinion",), "tags": ("even",)}, lambda n: n % 10 == 0),
        ({"tags": ("even", "odd"), "trust": ("agent",)}, lambda n: n % 2 == 0 and n % 3 != 0),
        ({"trust": ("outside",), "kinds": ("fact", "decision")}, lambda n: n % 3 == 0),
        ({"sources": ("told",), "types": ("world",)}, lambda n: n % 5 != 0),
        ({"sources": ("document", "session")}, lambda n: False),
        ({"said": (now - 2 * DAY, now + DAY), "kinds": ("decision",)}, lambda n: n >= 20 and n % 7 == 0),
    ]

    for narrowing, is_wanted in cases:
        for is_past in (False, True):
            want = [id for id, n in known.items() if is_wanted(n) and (is_past or n % 11)][::-1]
            for few, walked in ((0, 7), (0, 1_000), (20, 7), (1_000, 1_000)):
                given = Filter(LOCAL_ORG, bank, now, **narrowing, with_past=is_past, is_now=True)
                stretch = Stretch(ids.LARGEST, 6, few, walked)
                assert await walk(app, given, stretch) == want, (narrowing, is_past, few, walked)
    past = Filter(LOCAL_ORG, bank, now - DAY)
    assert await walk(app, past, Stretch(ids.LARGEST, 6)) == [id for id, n in known.items() if n < 20][::-1]


async def walk(app: App, given: Filter, stretch: Stretch) -> list[int]:
    """Every page from the first to the last."""
    found: list[int] = []
    for _ in range(30):
        page = await app.store.read(LOCAL_ORG, partial(browsing.page, given=given, stretch=stretch))
        told = [memory.id for memory in page.memories]
        found += told
        if len(told) == stretch.limit:
            stretch = replace(stretch, before=told[-1])
        elif page.reached is not None:
            stretch = replace(stretch, before=page.reached)
        else:
            return found
    raise AssertionError("A walk without an end.")


async def test_provenance_goes_back_to_the_words_of_the_source_and_tells_who_recalled_it(
    app: App, sharpened: Any
) -> None:
    text = (
        "Intro line.\nThe harbour closes at nine.\nAda Lovelace keeps the key of the harbour gate.\n"
        "Boats are painted every spring by volunteers."
    )
    await operation(app, "memory.retain", content=text, document="harbour.md")
    await sharpened()
    agent = Principal(org=1, name="key:cursor", scopes=frozenset({"memory:read"}))
    found = await dispatch.call(app.ctx(agent), "memory.recall", {"query": "Who keeps the key of the harbour?"})
    id = next(hit["memory"]["id"] for hit in found.model_dump()["hits"] if "key" in hit["memory"]["text"])

    told = await operation(app, "memory.provenance", id=id)

    assert (told["source"]["kind"], told["source"]["key"], told["source"]["is_current"]) == (
        "document",
        "harbour.md",
        True,
    )
    quote = told["source"]["quote"]
    assert quote["before"] + quote["marked"] + quote["after"] == text
    assert quote["marked"] == told["record"]["text"]
    assert (quote["first_line"], quote["last_line"]) == (3, 3)
    assert "Ada Lovelace" in [one["name"] for one in told["entities"]]
    assert [(one["principal"], one["times"]) for one in told["recalled"]] == [("key:cursor", 1)]
    assert told["recalled"][0]["score"] > 0
    with pytest.raises(NotFound):
        await operation(app, "memory.provenance", id="12345")


async def test_history_shows_what_a_memory_replaced_and_a_stale_correction_is_refused(app: App) -> None:
    first = await operation(app, "memory.retain", content="Tea is at three.")
    second = await operation(app, "memory.correct", id=first["id"], content="Tea is at four.", if_current=True)

    with pytest.raises(Conflict):
        await operation(app, "memory.correct", id=first["id"], content="Tea is at five.", if_current=True)
    third = await operation(app, "memory.correct", id=second["id"], content="Tea is at six.", if_current=True)
    old = await operation(app, "memory.provenance", id=first["id"])
    new = await operation(app, "memory.provenance", id=third["id"])

    assert [one["id"] for one in old["later"]] == [third["id"], second["id"]]
    assert [one["id"] for one in new["earlier"]] == [second["id"], first["id"]]


async def test_what_is_pinned_is_told_first_and_stays_pinned_when_corrected(app: App) -> None:
    pinned = await operation(app, "memory.retain", content="Never deploy on a Friday.")
    for n in range(3):
        await operation(app, "memory.retain", content=f"The weather on day {n} was fine.")

    marked = await operation(app, "memory.pin", ids=[pinned["id"]])
    new = await operation(app, "memory.correct", id=pinned["id"], content="Never deploy on a Friday or Monday.")
    pack = await operation(app, "memory.context", token_budget=10)
    start = (await operation(app, "memory.injection"))["start"]

    assert [(one["id"], one["pinned"]) for one in marked["memories"]] == [(pinned["id"], True)]
    assert [(item["id"], item["pinned"]) for item in pack["items"]] == [(new["id"], True)]
    assert start["text"].splitlines()[2:4] == ["Pinned by people here:", start["text"].splitlines()[3]]
    assert start["ids"][0] == new["id"]
    await operation(app, "memory.pin", ids=[new["id"]], pinned=False)
    assert "Pinned by people" not in (await operation(app, "memory.injection"))["start"]["text"]


async def test_tags_are_added_and_taken_away_and_found_by(app: App) -> None:
    one, two = [
        await operation(app, "memory.retain", content=text, tags=["old"]) for text in ("Ada rows.", "Bob swims.")
    ]

    await operation(app, "memory.tag", ids=[one["id"], two["id"]], add=["sport", "new"], remove=["old"])
    await operation(app, "memory.tag", ids=[two["id"]], remove=["new"])

    held = {id: (await operation(app, "memory.get", id=id))["tags"] for id in (one["id"], two["id"])}
    listed = await operation(app, "tag.list")
    assert held == {one["id"]: ["sport", "new"], two["id"]: ["sport"]}
    assert [(tag["tag"], tag["memories"]) for tag in listed["tags"]] == [("sport", 2), ("new", 1)]
    with pytest.raises(NotFound):
        await operation(app, "memory.tag", ids=[one["id"], "999"], add=["lost"])
    assert (await operation(app, "memory.get", id=one["id"]))["tags"] == ["sport", "new"]


async def test_what_goes_with_memories_is_known_before_they_are_forgotten_together(app: App, sharpened: Any) -> None:
    note = await operation(app, "memory.retain", content="The safe is blue. The safe opens with seven turns.")
    other = await operation(app, "memory.retain", content="Ada rows on Sundays.")
    await sharpened()

    told = await operation(app, "memory.losses", ids=[note["id"], other["id"]])
    receipt = await operation(app, "memory.purge", ids=[note["id"], other["id"]])

    assert [one["id"] for one in told["chosen"]] == [note["id"], other["id"]]
    assert {one["text"] for one in told["others"]} == {"The safe is blue.", "The safe opens with seven turns."}
    assert told["memories"] == receipt["memories"] == 4
    assert (await operation(app, "memory.browse", superseded=True))["memories"] == []
    assert await operation(app, "receipt.get", id=receipt["id"]) == receipt
    with pytest.raises(NotFound):
        await operation(app, "memory.losses", ids=[note["id"]])
    with pytest.raises(NotFound):
        await operation(app, "receipt.get", id=note["id"])
    assert chosen.MOST >= 50


@pytest.mark.parametrize("keep", ["older", "newer", "both"])
async def test_a_conflict_is_settled_once(app: App, sharpened: Any, keep: str) -> None:
    for text in ("Alice prefers tea.", "Alice prefers coffee."):
        await operation(app, "memory.retain", content=text)
        await sharpened()
    found = (await operation(app, "memory.conflicts"))["conflicts"]
    assert len(found) == 1, found
    pair = {"older": found[0]["older"]["id"], "newer": found[0]["newer"]["id"]}

    settled = await operation(app, "memory.settle", id=found[0]["id"], keep=keep)

    held = [one["id"] for one in (await operation(app, "memory.browse"))["memories"]]
    assert held == (sorted(pair.values(), reverse=True) if keep == "both" else [pair[keep]])
    assert settled["superseded"] == {"older": pair["newer"], "newer": pair["older"], "both": None}[keep]
    assert (await operation(app, "memory.conflicts"))["conflicts"] == []
    with pytest.raises(Conflict):
        await operation(app, "memory.settle", id=found[0]["id"], keep=keep)
