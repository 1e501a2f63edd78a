"""The audit log: look at it, and check that nothing in it was changed."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.errors import NotFound
from keepsake.core.models import BankName, Given, Result
from keepsake.core.operation import AUDIT, Effect, operation
from keepsake.core.text import Clean
from keepsake.ops import audit_heads
from keepsake.ops.audit_heads import SignedHeads
from keepsake.store import audit, banks
from keepsake.store.engine import Tx


class Verify(Given):
    """What to check it against."""

    export: SignedHeads | None = Field(None, description="Heads that were exported: no chain may be shorter or other.")


class BrokenChain(Result):
    """A chain that was changed after it was written."""

    bank: str | None = Field(description="Name of its bank; null for the chain of the org and of a deleted bank.")
    chain: str = Field(description="Id of the chain: the bank's, or 0 for the org.")
    entry: int = Field(description="Number of the first entry that does not fit.")


class Verified(Result):
    """Whether every change still stands in the log as it was written."""

    ok: bool = Field(description="Whether every chain holds.")
    chains: int = Field(description="How many chains were checked.")
    entries: int = Field(description="How many entries they have.")
    broken: list[BrokenChain] = Field(description="The chains that do not hold.")
    compared: int = Field(0, description="How many heads of an export they were compared with.")


@operation("audit.verify", effect=Effect.READ, scope=AUDIT)
async def verify(ctx: Ctx, given: Verify) -> Verified:
    """Check every chain of the audit log from its first entry to its last, and against heads that were exported."""
    if given.export is not None:
        await audit_heads.check(ctx, given.export)

    async def body(tx: Tx) -> tuple[list[audit.Chain], dict[int, str]]:
        found = {chain.bank: chain for chain in await audit.verify(tx, ctx.org)}
        for other in await audit_heads.broken(tx, ctx, given.export) if given.export else []:
            known = found.get(other.bank, other)
            found[other.bank] = known if known.broken_at is not None else replace(known, broken_at=other.broken_at)
        return list(found.values()), await _names(tx, ctx)

    every, names = await ctx.read(body)
    chains = [chain for chain in every if _sees(ctx, chain.bank, names)]
    broken = [
        BrokenChain(bank=names.get(chain.bank), chain=str(chain.bank), entry=chain.broken_at)
        for chain in chains
        if chain.broken_at is not None
    ]
    entries = sum(chain.entries for chain in chains)
    compared = len(given.export.heads) if given.export else 0
    return Verified(ok=not broken, chains=len(chains), entries=entries, broken=broken, compared=compared)


class ExportHeads(Given):
    """Nothing to say."""


@operation("audit.export", effect=Effect.READ, scope=AUDIT)
async def export(ctx: Ctx, given: ExportHeads) -> SignedHeads:
    """Give the heads of all audit chains, signed: kept elsewhere, they prove what the log said until now."""

    async def body(tx: Tx) -> list[audit.Head]:
        names = await _names(tx, ctx)
        return [head for head in await audit.heads(tx, ctx.org) if _sees(ctx, head.bank, names)]

    return await audit_heads.signed(ctx, await ctx.read(body))


async def _names(tx: Tx, ctx: Ctx) -> dict[int, str]:
    return {bank.id: bank.name for bank in await banks.listed(tx, ctx.org)}


def _sees(ctx: Ctx, bank: int, names: Mapping[int, str]) -> bool:
    """A credential for some banks sees the chains of those alone."""
    return ctx.principal.banks is None or names.get(bank, "") in ctx.principal.banks


class ListEntries(Given):
    """Which entries."""

    only_bank: BankName | None = Field(None, description="Only the entries of this bank; of every chain when left out.")
    principal: Clean | None = Field(None, max_length=200, description="Only what this principal did, by its name.")
    operation: Clean | None = Field(None, max_length=100, description="Only what this operation did, by its id.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=1_000_000, description="How many of the newest to leave out.")


class Entry(Result):
    """A change: who, when, what; ids and digests, never text."""

    bank: str | None = Field(description="Name of the bank; null for the org itself and for a deleted bank.")
    chain: str = Field(description="Id of the chain: the bank's, or 0 for the org.")
    n: int = Field(description="Its number in the chain.")
    at: str = Field(description="When, ISO 8601.")
    principal: str = Field(description="Who.")
    operation: str = Field(description="What was done.")
    targets: list[str] = Field(description="Ids of what was changed.")
    digest: str = Field(description="Keyed digest of what was written.")
    hash: str = Field(description="Hash over this entry and all before it.")


class Entries(Result):
    """Entries, newest first."""

    entries: list[Entry] = Field(description="Newest first.")


@operation("audit.list", effect=Effect.READ, scope=AUDIT)
async def list_(ctx: Ctx, given: ListEntries) -> Entries:
    """List the changes in the audit log, newest first."""
    if given.only_bank is not None:
        policy.check_bank(ctx.principal, given.only_bank)

    async def body(tx: Tx) -> Entries:
        names = await _names(tx, ctx)
        chains = await _chains(tx, ctx, given, names)
        wanted = audit.Wanted(chains, given.principal, given.operation, given.limit, given.offset)
        written = await audit.newest(tx, ctx.org, wanted)
        return Entries(entries=[_shown(one, names) for one in written])

    return await ctx.read(body)


async def _chains(tx: Tx, ctx: Ctx, given: ListEntries, names: Mapping[int, str]) -> list[int] | None:
    """The chains to look at; None for all of them."""
    if given.only_bank is not None:
        bank = await banks.named(tx, ctx.org, given.only_bank)
        if bank is None:
            raise NotFound(f"No bank {given.only_bank!r}. Use `keepsake bank list` to see the banks.")
        return [bank.id]
    return None if ctx.principal.banks is None else [bank for bank in names if _sees(ctx, bank, names)]


def _shown(written: audit.Written, names: Mapping[int, str]) -> Entry:
    entry = written.entry
    return Entry(
        bank=names.get(entry.bank),
        chain=str(entry.bank),
        n=written.n,
        at=clock.iso(entry.at),
        principal=entry.principal,
        operation=entry.operation,
        targets=[str(target) for target in entry.targets],
        digest=entry.digest,
        hash=written.hash,
    )
