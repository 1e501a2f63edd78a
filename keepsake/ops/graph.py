"""The knowledge graph: relations that someone draws, and the part of the whole that fits on a page."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, graph
from keepsake.core.errors import BadInput
from keepsake.core.models import InBank, Kind, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.core.words import line
from keepsake.ops import banks as bank_ops
from keepsake.ops import meant, walking
from keepsake.store import banks, relations
from keepsake.store.engine import Tx

#: Characters of a node's title.
TITLE = 120
RelationType = Annotated[Clean, Field(min_length=1, max_length=60), AfterValidator(graph.typed)]


class Relate(InBank):
    """Two things, and how they belong together."""

    origin: Filled = Field(
        max_length=300, description="Id, slug or name of a memory, decision, milestone, artifact or entity."
    )
    target: Filled = Field(max_length=300, description="The same of what it is related to.")
    type: RelationType = Field(
        "relates_to",
        description="How: relates_to, depends_on, implements, supports, contradicts, caused_by, part_of, blocks,"
        " resolves, or another word.",
    )
    note: Clean = Field("", max_length=1_000, description="What there is to say of it.")


class Related(Result):
    """A relation as it is kept."""

    origin: str = Field(description="Id of what it begins at.")
    target: str = Field(description="Id of what it leads to.")
    type: str = Field(description="How they are related.")
    note: str = Field(description="What was said of it.")
    author: str = Field(description="Who drew it.")
    created_at: str = Field(description="When, ISO 8601.")
    is_new: bool = Field(description="Whether it was drawn just now; one that was there stays as it was.")


@operation("graph.relate", effect=Effect.MUTATE, scope="memory:write")
async def relate(ctx: Ctx, given: Relate) -> Related:
    """Relate two things of a bank that exist: memories, decisions, milestones, artifacts or entities."""

    async def body(tx: Tx) -> Changed[Related]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        await banks.step(tx, ctx.org, bank.id)
        origin = await meant.thing(tx, ctx, bank, given.origin)
        target = await meant.thing(tx, ctx, bank, given.target)
        if origin.id == target.id:
            raise BadInput("Nothing is related to itself. Name two different things.")
        wanted = relations.Relation(
            org=ctx.org,
            bank=bank.id,
            origin=origin.id,
            target=target.id,
            type=given.type,
            origin_kind=origin.place,
            target_kind=target.place,
            note=given.note.strip(),
            author=ctx.principal.name,
            created_at=ctx.now,
        )
        is_new = await relations.put(tx, wanted)
        kept = wanted if is_new else await relations.get(tx, wanted) or wanted
        return Changed(_shown(kept, is_new), bank.id, [origin.id, target.id], f"{given.type}\n{given.note}")

    return await ctx.change(body)


def _shown(relation: relations.Relation, is_new: bool) -> Related:
    return Related(
        origin=str(relation.origin),
        target=str(relation.target),
        type=relation.type,
        note=relation.note,
        author=relation.author,
        created_at=clock.iso(relation.created_at),
        is_new=is_new,
    )


class GetGraph(InBank):
    """Which part of the graph."""

    center: Clean | None = Field(
        None, min_length=1, max_length=300, description="Id, slug or name of what to look around; all when left out."
    )
    depth: int = Field(2, ge=1, le=4, description="How many steps from the center.")
    types: list[RelationType] = Field(
        default_factory=list, max_length=50, description="Only edges of these types; `mentions` lead to entities."
    )
    kinds: list[Kind | Literal["entity"]] = Field(
        default_factory=list, max_length=20, description="Only nodes of these kinds."
    )
    include_superseded: bool = Field(False, description="Whether to show what was superseded as well.")
    limit: int = Field(60, ge=1, le=500, description="Maximum number of nodes.")


class Node(Result):
    """A thing."""

    id: str = Field(description="Its id.")
    kind: str = Field(description="decision, constraint, heuristic, rejected, milestone, …, artifact or entity.")
    title: str = Field(description="What it is called, on one line.")
    weight: int = Field(description="How many edges it has.")
    at: str | None = Field(None, description="When it happened, ISO 8601; entities have no time.")
    status: str | None = Field(None, description="How a decision stands.")
    distance: int | None = Field(None, description="Steps from the center, where one was given.")


class Edge(Result):
    """How one thing is related to another."""

    origin: str = Field(description="Id of the node it begins at.")
    target: str = Field(description="Id of the node it leads to.")
    type: str = Field(description="How they are related.")
    note: str = Field("", description="What was said of it.")


class Graph(Result):
    """A part of the graph that can be drawn."""

    bank: str = Field(description="Name of the bank.")
    nodes: list[Node] = Field(description="The nearest and best connected first.")
    edges: list[Edge] = Field(description="Between these nodes only.")
    total: int = Field(description="How many nodes there are before the limit.")


@operation("graph.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetGraph) -> Graph:
    """Show decisions and milestones with their relations, what they mention, and artifacts; whole, or around one."""
    name, _ = bank_ops.wanted(ctx, given.bank)

    async def body(tx: Tx) -> graph.Drawn:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return graph.Drawn([], [], 0)
        view = walking.View(ctx.org, bank.id, frozenset(given.types), given.include_superseded)
        if given.center is None:
            found = await walking.everything(tx, view)
        else:
            found = await walking.around(tx, view, await meant.thing(tx, ctx, bank, given.center), given.depth)
        kept = [node for node in found.nodes if not given.kinds or node.kind in given.kinds]
        drawn = graph.drawn(kept, found.edges, given.limit)
        return replace(drawn, nodes=await walking.told(tx, view, drawn.nodes))

    drawn = await ctx.read(body)
    return Graph.model_construct(
        bank=name,
        nodes=[_node(node, given.center is not None) for node in drawn.nodes],
        edges=[
            Edge.model_construct(origin=str(edge.origin), target=str(edge.target), type=edge.type, note=edge.note)
            for edge in drawn.edges
        ],
        total=drawn.total,
    )


def _node(node: graph.Node, is_around: bool) -> Node:
    # Hundreds of them, and of our own making: nothing is to be checked.
    return Node.model_construct(
        id=str(node.id),
        kind=node.kind,
        title=line(node.title, TITLE),
        weight=node.weight,
        at=clock.iso(node.at) if node.at else None,
        status=node.status or None,
        distance=node.distance if is_around else None,
    )
