"""The knowledge graph: relations between what exists, drawn whole or around one thing; on both stores."""

from typing import Any

import pytest

from keepsake.context import App
from keepsake.core.errors import BadInput, KeepsakeError, NotFound
from keepsake.core.graph import Edge, Node, drawn
from keepsake.store.engine import Tx
from tests.ops.working_space import Do, decided, doing, reached

pytestmark = pytest.mark.anyio


@pytest.fixture
def do(app: App) -> Do:
    return doing(app)


def edges(graph: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(edge["origin"], edge["target"], edge["type"]) for edge in graph["edges"]}


def titles(graph: dict[str, Any]) -> set[str]:
    return {node["title"] for node in graph["nodes"]}


async def test_a_relation_is_drawn_once_between_things_named_by_id_slug_or_name(do: Do) -> None:
    flags = await decided(do, "Use feature flags for Checkout")
    note = (await do("memory.retain", content="The kill switch saved Friday.", whole=True))["id"]
    plan = await do("artifact.create", identifier="plan", title="Rollout plan", content="First 5 %.")
    given = {"origin": "use-feature-flags-for-checkout", "target": note, "type": "Supported by", "note": "In May."}

    first = await do("graph.relate", **given)
    again = await do("graph.relate", **given | {"note": "Another word."})
    made = await do("graph.relate", origin="plan", target=flags, type="implements")
    named = await do("graph.relate", origin=flags, target="checkout", type="part_of")
    graph = await do("graph.get")

    assert {name: first[name] for name in ("origin", "target", "type", "note", "author", "is_new")} == {
        "origin": flags,
        "target": note,
        "type": "supported_by",
        "note": "In May.",
        "author": "local",
        "is_new": True,
    }
    assert again == first | {"is_new": False}
    assert edges(graph) == {
        (flags, note, "supported_by"),
        (plan["artifact_id"], flags, "implements"),
        (flags, named["target"], "part_of"),
        (flags, named["target"], "mentions"),
    }
    assert (made["origin"], graph["total"]) == (plan["artifact_id"], 4)
    assert {(node["kind"], node["title"], node["weight"]) for node in graph["nodes"]} == {
        ("decision", "Use feature flags for Checkout", 4),
        ("note", "The kill switch saved Friday.", 1),
        ("artifact", "Rollout plan", 1),
        ("entity", "Checkout", 2),
    }


async def test_the_graph_is_walked_in_steps_and_narrowed_by_type_kind_and_limit(do: Do) -> None:
    a, b, c, d = [await decided(do, title) for title in ("alpha one", "beta two", "gamma three", "delta four")]
    done = await reached(do, "epsilon five", related_decisions=[c])
    for origin, target, type in ((a, b, "depends_on"), (b, c, "supports"), (c, d, "depends_on")):
        await do("graph.relate", origin=origin, target=target, type=type)

    near = await do("graph.get", center=a, depth=1)
    two = await do("graph.get", center=a)
    back = await do("graph.get", center=done, depth=3)
    typed = await do("graph.get", types=["depends_on"])
    reached_only = await do("graph.get", kinds=["milestone"])
    few = await do("graph.get", limit=2)

    assert (titles(near), edges(near)) == ({"alpha one", "beta two"}, {(a, b, "depends_on")})
    assert {(node["title"], node["distance"]) for node in two["nodes"]} == {
        ("alpha one", 0),
        ("beta two", 1),
        ("gamma three", 2),
    }
    assert titles(back) == {"epsilon five", "gamma three", "beta two", "delta four", "alpha one"}
    assert edges(typed) == {(a, b, "depends_on"), (c, d, "depends_on")}
    assert (titles(reached_only), reached_only["edges"]) == ({"epsilon five"}, [])
    assert (len(few["nodes"]), few["total"], few["nodes"][0]["title"]) == (2, 5, "gamma three")


async def test_what_was_superseded_is_shown_only_when_asked_for(do: Do) -> None:
    old = await decided(do, "Deploy at the end of a week")
    new = await decided(do, "Deploy at the start of a week", supersedes=old)

    now = await do("graph.get")
    history = await do("graph.get", include_superseded=True)
    around = await do("graph.get", center=new, include_superseded=True)

    assert titles(now) == {"Deploy at the start of a week"}
    assert edges(history) == edges(around) == {(new, old, "supersedes")}
    assert {(node["id"], node["status"]) for node in history["nodes"]} == {(new, "accepted"), (old, "superseded")}


async def test_memories_that_mention_the_same_entity_are_two_steps_apart(do: Do) -> None:
    one = await decided(do, "Keep invoices in PostgreSQL")
    two = await decided(do, "Sessions stay out of PostgreSQL")

    graph = await do("graph.get", center=one)
    bare = await do("graph.get", center=one, types=["depends_on"])

    [entity] = [node["id"] for node in graph["nodes"] if node["kind"] == "entity"]
    assert {(one, entity, "mentions"), (two, entity, "mentions")} == edges(graph)
    assert titles(bare) == {"Keep invoices in PostgreSQL"}


async def test_a_relation_needs_two_things_of_this_bank(do: Do, app: App) -> None:
    here = await decided(do, "Use Go")
    theirs = await decided(doing(app, "other"), "Use Rust in Berlin")
    bad: list[tuple[dict[str, str], type[KeepsakeError]]] = [
        ({"origin": here, "target": theirs}, NotFound),
        ({"origin": theirs, "target": here}, NotFound),
        ({"origin": here, "target": "use-rust-in-berlin"}, NotFound),
        ({"origin": here, "target": "Berlin"}, NotFound),
        ({"origin": here, "target": "4242"}, NotFound),
        ({"origin": here, "target": here}, BadInput),
        ({"origin": here, "target": "use-go"}, BadInput),
        ({"origin": here, "target": "  "}, BadInput),
        ({"origin": here, "target": theirs, "type": "is; DROP"}, BadInput),
    ]

    for given, error in bad:
        with pytest.raises(error):
            await do("graph.relate", **given)
    with pytest.raises(NotFound):
        await do("graph.get", center=theirs)

    assert (await do("graph.get"))["edges"] == []
    assert await doing(app, "empty")("graph.get") == {"bank": "empty", "nodes": [], "edges": [], "total": 0}


async def held(app: App) -> int:
    async def body(tx: Tx) -> int:
        row = await tx.one("SELECT count(*) AS held FROM relations")
        return int(row["held"]) if row else -1

    return await app.store.read(1, body)


async def test_relations_go_with_what_they_begin_or_end_at(do: Do, app: App) -> None:
    async def drawn_again() -> tuple[str, str]:
        one = await decided(do, f"We choose Kafka for run {app.now()}")
        two = await reached(do, f"Milestone {app.now()}")
        await do("graph.relate", origin=one, target=two)
        await do("graph.relate", origin=two, target="Kafka")
        return one, two

    one, _ = await drawn_again()
    await do("memory.forget", id=one)
    after_forgetting = await held(app)
    await drawn_again()
    plan = (await do("artifact.create", identifier="plan", title="Plan", content="Go."))["artifact_id"]
    await do("graph.relate", origin=plan, target="Kafka")
    before = await held(app)
    await do("artifact.delete", id=plan)
    after_deleting = await held(app)
    await do("memory.clear")
    after_clearing = await held(app)
    await drawn_again()
    await do("bank.delete", bank="shop")

    assert (after_forgetting, before, after_deleting, after_clearing, await held(app)) == (0, 3, 2, 0, 0)


async def test_redaction_takes_secrets_from_notes_and_leaves_the_relations(do: Do, app: App) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    one = await decided(do, "Rotate the keys of Kafka")
    await do("graph.relate", origin=one, target="Kafka", note="old")

    async def older_version(tx: Tx) -> None:
        await tx.run("UPDATE relations SET note = :note", note=f"it is {key}")
        await tx.run("UPDATE memories SET text = :text, text_hash = 'x'", text=f"Rotate the keys of Kafka: {key}")

    await app.store.write(1, older_version)
    scanned = await do("memory.scan")
    await do("memory.redact")
    graph = await do("graph.get")

    assert sorted(found["kind"] for found in scanned["findings"]) == ["memory", "relation"]
    assert {edge["type"] for edge in graph["edges"]} == {"relates_to", "mentions"}
    assert "it is" in str(graph) and key not in str(graph)


def test_a_drawing_keeps_the_best_connected_and_room_for_a_few_entities() -> None:
    nodes = [Node(n, "decision", f"d{n}", at=n) for n in range(1, 9)]
    nodes += [Node(n, "entity", f"e{n}") for n in range(11, 19)]
    drawn_edges = [Edge(1, 11, "mentions"), Edge(2, 11, "mentions"), Edge(1, 2, "supports"), Edge(1, 99, "supports")]

    small = drawn(nodes, drawn_edges, 4)

    assert [node.id for node in small.nodes] == [2, 1, 11, 8]
    assert [node.weight for node in small.nodes] == [2, 2, 2, 0]
    assert (list(small.edges), small.total) == (drawn_edges[:3], 16)
