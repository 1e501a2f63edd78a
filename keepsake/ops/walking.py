"""What of the knowledge graph is read: all of its decisions and milestones, or so many steps around one thing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keepsake.core import decision
from keepsake.core.graph import ENTITY, MENTIONS, SUPERSEDES, Edge, Node
from keepsake.ops.meant import Thing
from keepsake.store import entities, knowledge, relations
from keepsake.store import graph as outlines
from keepsake.store.engine import Tx
from keepsake.store.graph import Point
from keepsake.store.relations import Place, Relation

#: Memories of each kind, artifacts, relations and mentions that are read of a whole graph.
OF_KIND, ARTIFACTS, RELATIONS, MENTIONED = 500, 100, 2_000, 4_000
#: Edges that one step follows, and nodes after which no more steps are taken.
STEP, ENOUGH = 500, 1_000
#: What the graph begins with.
KINDS = (*decision.KINDS, "milestone")


@dataclass(frozen=True, slots=True)
class View:
    """What counts."""

    org: int
    bank: int
    #: Types of edges; empty means every type.
    types: frozenset[str] = frozenset()
    include_superseded: bool = False

    def shows(self, type: str) -> bool:
        """Whether edges of a type count."""
        return not self.types or type in self.types


@dataclass(slots=True)
class Found:
    """Nodes and edges, before any is left out for want of room."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of things already: their steps from the center, and what memories are."""

    distance: Mapping[int, int] = field(default_factory=dict)
    known: Mapping[int, Point] = field(default_factory=dict)


async def everything(tx: Tx, view: View) -> Found:
    """Decisions, milestones and artifacts, all that someone related, and the entities that several of them mention."""
    asked = [outlines.newest_points(view.org, view.bank, kind, OF_KIND) for kind in KINDS]
    drawn = relations.newest(view.org, view.bank, RELATIONS)
    *rows, related = await tx.gather(*(ask.asked for ask in asked), drawn.asked)
    own = [one for ask, found in zip(asked, rows, strict=True) for one in ask.read(found)]
    own = [one for one in own if view.include_superseded or not one.is_superseded]
    edges = [edge for edge in drawn.read(related) if view.shows(edge.type)]
    made = await outlines.newest_artifacts(view.org, view.bank, ARTIFACTS).of(tx)
    things = _ends(edges) | {one.id: "memory" for one in own} | {one.id: "artifact" for one in made}
    mentions = await _shared_mentions(tx, view, [one.id for one in own], things)
    things |= {entity: "entity" for _, entity in mentions}
    nodes = await _nodes(tx, view, things, Seen(known={one.id: one for one in own}))
    return Found(nodes, [*_edges(edges), *_mentions(mentions), *await _replacements(tx, view, things)])


async def around(tx: Tx, view: View, center: Thing, depth: int) -> Found:
    """What lies within so many steps."""
    things: dict[int, Place] = {center.id: center.place}
    distance, edges, frontier = {center.id: 0}, set[Edge](), [center.id]
    for steps in range(1, depth + 1):
        met = await _step(tx, view, {id: things[id] for id in frontier}, edges)
        frontier = [id for id in met if id not in things]
        things |= {id: met[id] for id in frontier}
        distance |= dict.fromkeys(frontier, steps)
        if not frontier or len(things) > ENOUGH:
            break
    return Found(await _nodes(tx, view, things, Seen(distance)), sorted(edges, key=_place_of))


async def _step(tx: Tx, view: View, here: dict[int, Place], edges: set[Edge]) -> dict[int, Place]:
    """Follow every edge from here by one step; tells what is met."""
    drawn = await relations.touching(tx, view.org, view.bank, list(here), STEP)
    drawn = [edge for edge in drawn if view.shows(edge.type)]
    met = _ends(drawn)
    edges.update(_edges(drawn))
    if view.shows(MENTIONS):
        pairs = await _mentioned(tx, view, here)
        for memory, entity in pairs:
            met |= {memory: "memory", entity: "entity"}
        edges.update(_mentions(pairs))
    replaced = await _replacements(tx, view, here)
    for edge in replaced:
        met |= {edge.origin: "memory", edge.target: "memory"}
    edges.update(replaced)
    return met


async def _mentioned(tx: Tx, view: View, here: dict[int, Place]) -> list[tuple[int, int]]:
    """Which memory here names which entity, and which other memories name an entity here."""
    of, named = _of(here, "memory"), _of(here, "entity")
    pairs = await entities.of_memories(view.org, view.bank, of, STEP).of(tx) if of else []
    return pairs + (await entities.with_entities(view.org, view.bank, named, STEP).of(tx) if named else [])


async def _shared_mentions(tx: Tx, view: View, memories: list[int], things: Collection[int]) -> list[tuple[int, int]]:
    """Who names what, of entities that two of these name or that someone related to something."""
    if not memories or not view.shows(MENTIONS):
        return []
    pairs = await entities.of_memories(view.org, view.bank, memories, MENTIONED).of(tx)
    seen: set[int] = set()
    shared: set[int] = set()
    for _, entity in pairs:
        (shared if entity in seen or entity in things else seen).add(entity)
    return [pair for pair in pairs if pair[1] in shared]


async def _replacements(tx: Tx, view: View, things: dict[int, Place]) -> list[Edge]:
    """What took the place of what, where that is wanted."""
    if not view.include_superseded or not view.shows(SUPERSEDES):
        return []
    replaced = await knowledge.replaced(tx, view.org, view.bank, _of(things, "memory"))
    return [Edge(origin, target, SUPERSEDES) for origin, targets in replaced.items() for target in targets]


async def _nodes(tx: Tx, view: View, things: dict[int, Place], seen: Seen) -> list[Node]:
    """Things as nodes; what is gone, or superseded and not wanted, is left out, but not what all lies around."""
    away, wanted = seen.distance, _of(things, "memory")
    read = await outlines.points(view.org, view.bank, [id for id in wanted if id not in seen.known]).of(tx)
    held = {**{one.id: one for one in read}, **{id: seen.known[id] for id in wanted if id in seen.known}}
    nodes = [
        Node(one.id, one.kind, "", one.at, distance=away.get(one.id, 0))
        for one in held.values()
        if view.include_superseded or not one.is_superseded or away.get(one.id) == 0
    ]
    named = await entities.titled(view.org, view.bank, _of(things, "entity")).of(tx)
    nodes += [Node(id, ENTITY, one.name, distance=away.get(id, 0)) for id, one in named.items()]
    made = await outlines.artifacts(view.org, view.bank, _of(things, "artifact")).of(tx)
    return nodes + [Node(one.id, "artifact", one.title, one.at, distance=away.get(one.id, 0)) for one in made]


async def told(tx: Tx, view: View, nodes: Sequence[Node]) -> list[Node]:
    """The same nodes with what memories say and how decisions stand: asked last, of those that are shown."""
    held = await outlines.outlines(view.org, view.bank, [node.id for node in nodes if not node.title]).of(tx)
    return [_said(node, held[node.id]) if node.id in held else node for node in nodes]


def _said(node: Node, one: outlines.Outline) -> Node:
    is_decision = one.kind in decision.KINDS
    status = decision.status(one.kind, one.parts, one.is_superseded) if is_decision else ""
    return replace(node, title=one.title, status=status)


def _of(things: dict[int, Place], place: Place) -> list[int]:
    return sorted(id for id, known in things.items() if known == place)


def _ends(drawn: Iterable[Relation]) -> dict[int, Place]:
    ends: dict[int, Place] = {}
    for edge in drawn:
        ends |= {edge.origin: edge.origin_kind, edge.target: edge.target_kind}
    return ends


def _edges(drawn: Iterable[Relation]) -> list[Edge]:
    return [Edge(edge.origin, edge.target, edge.type, edge.note) for edge in drawn]


def _mentions(pairs: Iterable[tuple[int, int]]) -> list[Edge]:
    return [Edge(memory, entity, MENTIONS) for memory, entity in pairs]


def _place_of(edge: Edge) -> tuple[int, int, str]:
    return edge.origin, edge.target, edge.type
