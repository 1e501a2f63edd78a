"""Layouts: where the nodes of a picture of the graph stand, with the counters."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from keepsake.core.clock import DAY
from keepsake.store.engine import Tx

#: How long a layout that nothing changed is kept.
KEPT_FOR = 90 * DAY


@dataclass(frozen=True, slots=True)
class Kept:
    """A layout as it was drawn."""

    #: Whose it is: a keyed digest of the org, the bank and what was asked for.
    view: str
    digest: str
    #: Shares of the width and of the height.
    places: Mapping[int, tuple[float, float]]
    laid_at: int


async def get(tx: Tx, view: str) -> Kept | None:
    """The layout of what someone looks at."""
    row = await tx.one("SELECT view, digest, places, laid_at FROM layouts WHERE view = :view", view=view)
    if row is None:
        return None
    places = {int(id): (float(x), float(y)) for id, (x, y) in json.loads(row["places"]).items()}
    return Kept(row["view"], row["digest"], places, row["laid_at"])


async def put(tx: Tx, kept: Kept) -> None:
    """Keep a layout in place of the one there was."""
    await tx.run(
        "INSERT INTO layouts (view, digest, places, laid_at) VALUES (:view, :digest, :places, :laid_at)"
        " ON CONFLICT (view) DO UPDATE SET digest = excluded.digest, places = excluded.places,"
        " laid_at = excluded.laid_at",
        view=kept.view,
        digest=kept.digest,
        places=json.dumps({str(id): place for id, place in kept.places.items()}),
        laid_at=kept.laid_at,
    )


async def expire(tx: Tx, now: int) -> int:
    """Drop layouts that were drawn too long ago; tells how many."""
    return await tx.run("DELETE FROM layouts WHERE laid_at <= :before", before=now - KEPT_FOR)
