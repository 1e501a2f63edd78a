"""A part of the knowledge graph that fits on a page: things as nodes, what relates them as edges."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

#: Edges that nobody drew: which entity a memory names, and what a memory took the place of.
MENTIONS, SUPERSEDES = "mentions", "supersedes"
ENTITY = "entity"
#: One node in so many may be an entity: they tell what the others have in common, and are no news by themselves.
ENTITIES = 4
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Node:
    """A thing."""

    id: int
    kind: str
    title: str
    #: When it happened; 0 for what has no moment of its own.
    at: int = 0
    status: str = ""
    #: Steps from the node in the middle.
    distance: int = 0
    #: How many edges it has among all that were found.
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """How one thing is related to another."""

    origin: int
    target: int
    type: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What fits, and how many nodes there are in all."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    total: int


def typed(said: str) -> str:
    """A type of relation as it is compared; ValueError for what is none."""
    word = "_".join(re.split(r"[\s_-]+", said.strip().lower()))
    if not _TYPE.fullmatch(word):
        raise ValueError("must be one to forty letters, digits and underscores, such as depends_on")
    return word


def drawn(nodes: Collection[Node], edges: Iterable[Edge], most: int) -> Drawn:
    """The nearest and best connected nodes, and the edges between them; a few entities among them."""
    known = {node.id for node in nodes}
    inner = list(dict.fromkeys(edge for edge in edges if edge.origin in known and edge.target in known))
    degree = Counter(end for edge in inner for end in (edge.origin, edge.target))
    weighed = [replace(node, weight=degree[node.id]) for node in nodes]
    order = sorted(weighed, key=lambda node: (node.distance, -node.weight, -node.at, -node.id))
    entities = [node for node in order if node.kind == ENTITY]
    others = [node for node in order if node.kind != ENTITY]
    room = min(len(entities), most // ENTITIES)
    first = others[: most - room]
    kept = [*first, *entities[: most - len(first)]]
    shown = {node.id for node in kept}
    left = [edge for edge in inner if edge.origin in shown and edge.target in shown]
    return Drawn([node for node in order if node.id in shown], left, len(nodes))
