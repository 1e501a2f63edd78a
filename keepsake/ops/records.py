"""Whole records: what a memory is made of besides its text, by id and from every bank within reach."""

from dataclasses import replace

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import Ctx
from keepsake.core import clock, ids, models
from keepsake.core.models import Result, Somewhere
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out, views
from keepsake.store import banks, files, memories, records
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

#: Records of one answer.
MOST = 50


class Origin(Result):
    """Where a memory came from, and what it took the place of."""

    kind: str | None = Field(None, description="document, commit, pull, issue, file, session, …; absent if just told.")
    key: str | None = Field(None, description="Name of the source: a document's id, a commit, a path, a session.")
    uri: str | None = Field(None, description="Address of the source.")
    revision: str | None = Field(None, description="Which state of the source, where that is a commit.")
    span: str | None = Field(None, description="From which character to which of the source's text.")
    supersedes: list[str] = Field(default_factory=list, description="Ids of the memories that it replaced.")
    derived_from: list[str] = Field(default_factory=list, description="Ids of the memories that it was made from.")


class Record(models.Memory):
    """A memory with all that is kept of it."""

    subtype: str = Field(description="What kind of observation or commit it is; empty where the kind says it all.")
    at: str = Field(description="When it happened, else when it was learned, ISO 8601.")
    parts: dict[str, object] = Field(
        description="Subtitle, facts, concepts, files_read, files_modified; or the six parts of a summary."
    )
    tokens: int = Field(description="What it cost to find out, in tokens.")
    is_stale: bool = Field(description="Whether a file that it read or changed has been changed since.")
    session: str = Field(description="The session it belongs to, where that is known.")
    origin: Origin | None = Field(None, description="Where it came from; told where records are asked for by id.")


async def described(tx: Tx, bank: banks.Bank, rows: list[Memory]) -> list[Record]:
    """Memories of a bank with all that is kept of them."""
    if not rows:
        return []
    stale = await files.stale(tx, bank.org, bank.id, [row.id for row in rows])
    sources = sorted({row.source for row in rows if row.source is not None})
    sessions = await records.sessions(tx, bank.org, bank.id, sources) if sources else {}
    return [
        Record.model_construct(
            **dict(shown),
            subtype=row.subtype,
            at=clock.iso(row.said_at),
            parts=row.parts,
            tokens=row.tokens,
            is_stale=row.id in stale,
            session=sessions.get(row.source or 0, ""),
        )
        for row, shown in zip(rows, await views.described(tx, bank, rows), strict=True)
    ]


async def reach(tx: Tx, ctx: Ctx, named: str | None = None) -> list[banks.Bank]:
    """The one bank that is named, by argument or request, or every bank that the principal may see."""
    name = bank_ops.wanted(ctx, named)[0] if named is not None else ctx.bank
    if name is None:
        return [bank for bank in await banks.listed(tx, ctx.org) if ctx.principal.sees(bank.name)]
    if bank_ops.is_hidden(ctx, name):
        return []
    policy.check_bank(ctx.principal, name)
    bank = await banks.named(tx, ctx.org, name)
    return [bank] if bank else []


async def by_id(tx: Tx, ctx: Ctx, wanted: list[int]) -> list[Record]:
    """Records in the order asked for; what is unknown or out of reach is left out alike."""
    places = await records.places(tx, ctx.org, wanted)
    found: dict[int, Record] = {}
    for bank in await _visible(tx, ctx, set(places.values())):
        rows = await memories.fetched(tx, ctx.org, bank.id, [id for id in wanted if places.get(id) == bank.id])
        found |= {int(record.id): record for record in await described(tx, bank, list(rows.values()))}
    return [found[id] for id in dict.fromkeys(wanted) if id in found]


async def _visible(tx: Tx, ctx: Ctx, held: set[int]) -> list[banks.Bank]:
    """Those of these banks that the request may look into."""
    if ctx.bank is not None:
        return [bank for bank in await reach(tx, ctx) if bank.id in held]
    found = [await banks.of_id(tx, ctx.org, id) for id in sorted(held)]
    return [bank for bank in found if bank is not None and ctx.principal.sees(bank.name)]


class GetRecords(Somewhere):
    """Which records."""

    ids: list[Clean] = Field(min_length=1, max_length=MOST, description="Ids of memories, at most 50.")


class Records(Result):
    """Whole memories."""

    records: list[Record] = Field(description="In the order asked for; unknown ids are left out.")


@operation("memory.records", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetRecords) -> Records:
    """Retrieve memories by their ids with all that is kept of them; unknown ids are left out."""
    wanted = [id for text in given.ids if (id := ids.parse(text)) is not None]
    looking = ctx if given.bank is None else replace(ctx, bank=bank_ops.wanted(ctx, given.bank)[0])

    async def body(tx: Tx) -> list[Record]:
        return await _traced(tx, ctx, await by_id(tx, looking, wanted))

    found = await ctx.read(body)
    handed_out.told(ctx, found)
    return Records.model_construct(records=found)


async def _traced(tx: Tx, ctx: Ctx, found: list[Record]) -> list[Record]:
    """Records with where they came from."""
    origins = await records.origins(tx, ctx.org, [int(record.id) for record in found])
    return [record.model_copy(update={"origin": _origin(origins[int(record.id)])}) for record in found]


def _origin(told: records.Origin) -> Origin:
    return Origin(
        kind=told.kind or None,
        key=told.key or None,
        uri=told.uri or None,
        revision=told.revision or None,
        span=told.span or None,
        supersedes=[str(id) for id in told.supersedes],
        derived_from=[str(id) for id in told.derived_from],
    )
