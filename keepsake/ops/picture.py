"""The graph as a picture: its nodes with their places, laid out once and kept."""

import asyncio
import json

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock, layout
from keepsake.core.models import Result
from keepsake.core.operation import Effect, operation
from keepsake.ops import graph
from keepsake.ops.graph import Graph
from keepsake.store import layouts
from keepsake.store.layouts import Kept


class Pictured(graph.GetGraph):
    """Which part of the graph."""

    limit: int = Field(layout.MOST, ge=1, le=layout.MOST, description="Maximum number of nodes.")


class Place(Result):
    """Where a node stands."""

    id: str = Field(description="Id of the node.")
    x: float = Field(description="From the left, in units of the picture.")
    y: float = Field(description="From the top.")


class Picture(Result):
    """A part of the graph, ready to be drawn."""

    graph: Graph = Field(description="Its nodes and edges.")
    width: int = Field(description="How wide the picture is.")
    height: int = Field(description="How high it is.")
    places: list[Place] = Field(description="Where each node stands, in the order of the nodes.")
    laid_at: str | None = Field(None, description="When it was laid out, ISO 8601; absent where nothing is to see.")


@operation("graph.picture", effect=Effect.READ, scope="memory:read")
async def picture(ctx: Ctx, given: Pictured) -> Picture:
    """Show a part of the graph with a place for each node; what was there keeps its place when something is added."""
    found = await graph.get(ctx, given)
    if not found.nodes:
        return Picture(graph=found, width=layout.WIDTH, height=layout.HEIGHT, places=[])
    nodes = [int(node.id) for node in found.nodes]
    edges = [(int(edge.origin), int(edge.target)) for edge in found.edges]
    middle = next((int(node.id) for node in found.nodes if node.distance == 0), None)
    view, digest = _view(ctx, found.bank, given), layout.digest(nodes, edges)
    kept = await ctx.store.engine.volatile(lambda tx: layouts.get(tx, view))
    if kept is None or kept.digest != digest:
        before = kept.places if kept else {}
        drawn = await asyncio.to_thread(layout.laid, nodes, edges, before, middle)
        shares = {id: (x / drawn.width, y / drawn.height) for id, (x, y) in drawn.places.items()}
        kept = Kept(view, digest, shares, ctx.now)
        made = kept
        await ctx.store.engine.volatile(lambda tx: layouts.put(tx, made))
    width, height = layout.size(len(nodes))
    places = [(id, *kept.places[id]) for id in nodes]
    return Picture(
        graph=found,
        width=width,
        height=height,
        places=[Place(id=str(id), x=round(x * width, 1), y=round(y * height, 1)) for id, x, y in places],
        laid_at=clock.iso(kept.laid_at),
    )


def _view(ctx: Ctx, bank: str, given: Pictured) -> str:
    """What was asked for and where, as it is kept: the name of what is in the middle may be somebody's."""
    asked = given.model_dump(mode="json", exclude={"bank"})
    return ctx.store.digest(json.dumps(["layout", ctx.org, bank, asked], sort_keys=True))
