"""The audit log: look at it, and check that nothing in it was changed."""

from collections.abc import Mapping

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.errors import NotFound
from keepsake.core.models import BankName, Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.store import audit, banks
from keepsake.store.engine import Tx


class Verify(Given):
    """Nothing to say."""


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


@operation("audit.verify", effect=Effect.READ, scope="admin")
async def verify(ctx: Ctx, given: Verify) -> Verified:
    """Check every chain of the audit log from its first entry to its last."""

    async def body(tx: Tx) -> tuple[list[audit.Chain], dict[int, str]]:
        return await audit.verify(tx, ctx.org), await _names(tx, ctx)

    every, names = await ctx.read(body)
    chains = [chain for chain in every if _sees(ctx, chain.bank, names)]
    broken = [
        BrokenChain(bank=names.get(chain.bank), chain=str(chain.bank), entry=chain.broken_at)
        for chain in chains
        if chain.broken_at is not None
    ]
    entries = sum(chain.entries for chain in chains)
    return Verified(ok=not broken, chains=len(chains), entries=entries, broken=broken)


async def _names(tx: Tx, ctx: Ctx) -> dict[int, str]:
    return {bank.id: bank.name for bank in await banks.listed(tx, ctx.org)}


def _sees(ctx: Ctx, bank: int, names: Mapping[int, str]) -> bool:
    """A credential for some banks sees the chains of those alone."""
    return ctx.principal.banks is None or names.get(bank, "") in ctx.principal.banks


class ListEntries(Given):
    """Which entries."""

    only_bank: BankName | None = Field(None, description="Only the entries of this bank; of every chain when left out.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")


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


@operation("audit.list", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListEntries) -> Entries:
    """List the changes in the audit log, newest first."""
    if given.only_bank is not None:
        policy.check_bank(ctx.principal, given.only_bank)

    async def body(tx: Tx) -> Entries:
        names = await _names(tx, ctx)
        written = await audit.newest(tx, ctx.org, await _chains(tx, ctx, given, names), given.limit)
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
