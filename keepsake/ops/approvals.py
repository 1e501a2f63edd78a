"""Who decides on proposals: look at them, approve, reject or take them back."""

from dataclasses import replace

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, ids, intake, proposal
from keepsake.core.errors import Conflict, Forbidden, KeepsakeError, NotFound
from keepsake.core.models import Given, Result
from keepsake.core.operation import REGISTRY, AnyOperation, Effect, operation
from keepsake.core.proposal import OPEN, State
from keepsake.core.text import Clean
from keepsake.ops import previews
from keepsake.ops import proposals as proposing
from keepsake.store import banks, proposals, users
from keepsake.store.engine import Tx
from keepsake.store.proposals import End, Proposal


class OneProposal(Given):
    """Which proposal."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of the proposal.")


class ProposalStatus(Result):
    """How a proposal stands."""

    id: str = Field(description="Id of the proposal.")
    operation: str = Field(description="The operation that would make the change.")
    effect: str = Field(description="mutate or destructive.")
    state: State = Field(description="auto_ok and approved can be applied; pending_approval waits; the others ended.")
    diff: str = Field(description="What would change now: `-` goes, `+` comes. Empty once the proposal has ended.")
    reason: str = Field(description="Why it was proposed.")
    proposed_by: str = Field(description="Who proposed it.")
    created_at: str = Field(description="When, ISO 8601.")
    expires_at: str = Field(description="Until when it can be applied or approved, ISO 8601.")
    decided_by: str | None = Field(description="Who approved or rejected it; `self` where the org has one person.")
    decided_at: str | None = Field(description="When, ISO 8601.")
    outcome: str = Field(description="What it failed of, where it did.")


@operation("proposal.get", effect=Effect.READ, scope="")
async def get(ctx: Ctx, given: OneProposal) -> ProposalStatus:
    """Tell how a proposal stands and what it would change: your own, or any where you approve."""

    async def body(tx: Tx) -> ProposalStatus:
        row = await _known(tx, ctx, given.id)
        if proposing.is_own(ctx.principal, row):
            return await _shown(tx, ctx, row, can_read=await _reads(tx, ctx, row))
        if not await _decides(tx, ctx, row):
            raise _unknown(given.id)
        return await _shown(tx, _reading(ctx), row, can_read=True)

    return await ctx.read(body)


async def _known(tx: Tx, ctx: Ctx, id: str) -> Proposal:
    number = ids.parse(id)
    row = await proposals.of_id(tx, ctx.org, number) if number else None
    if row is None:
        raise _unknown(id)
    return row


def _unknown(id: str) -> NotFound:
    return NotFound(f"No proposal {intake.echoed(id, 64)!r} of yours. `propose` tells the id of each that it makes.")


async def _reads(tx: Tx, ctx: Ctx, row: Proposal) -> bool:
    return previews.may_read(ctx, await banks.of_id(tx, ctx.org, row.bank) if row.bank else None)


def _reading(ctx: Ctx) -> Ctx:
    """Whoever decides on a change sees what it changes."""
    return replace(ctx, principal=replace(ctx.principal, banks=None, rights=None), project=None)


async def _shown(tx: Tx, ctx: Ctx, row: Proposal, *, can_read: bool) -> ProposalStatus:
    state = proposing.state_of(ctx, row)
    return ProposalStatus(
        id=str(row.id),
        operation=row.operation,
        effect=row.effect,
        state=state,
        diff=await _diff(tx, ctx, row, can_read=can_read) if state in OPEN else "",
        reason=row.reason,
        proposed_by=row.principal,
        created_at=clock.iso(row.created_at),
        expires_at=clock.iso(row.expires_at),
        decided_by=row.decided_by,
        decided_at=None if row.decided_at is None else clock.iso(row.decided_at),
        outcome=row.outcome,
    )


async def _diff(tx: Tx, ctx: Ctx, row: Proposal, *, can_read: bool) -> str:
    """What would change, read anew: a proposal keeps no copy of what someone may forget meanwhile."""
    target: AnyOperation | None = REGISTRY.get(row.operation)
    try:
        if target is None or proposal.version(target) != row.version:
            raise Conflict("The operation has changed since this was proposed.")
        carried = intake.validated(target.given, proposal.parsed(row.arguments), target.id)
        seen = await previews.of(tx, replace(ctx, bank=row.place), target, carried)
    except KeepsakeError as error:
        return f"This can no longer be applied: {error}"
    told = previews.diff(target, carried, seen, can_read)
    if seen.digest(ctx) == row.target_digest:
        return told
    return f"This can no longer be applied: what it would change has changed since.\n{told}"


async def _decides(tx: Tx, ctx: Ctx, row: Proposal) -> str | None:
    """Under what name this principal may decide on a proposal; None when it may not."""
    who = ctx.principal
    # A client that acts for an approver is an agent, not the approver.
    if who.client is not None:
        return None
    if who.person is not None:
        is_other = row.person != who.person and not proposing.is_own(who, row)
        return who.name if is_other and await _is_approver(tx, ctx, row) else None
    if not _is_at_the_machine(ctx):
        return None
    active = [one for one in await users.listed(tx, ctx.org) if one.disabled_at is None]
    if len(active) <= 1:
        return "self"
    return None if proposing.is_own(who, row) else who.name


def _is_at_the_machine(ctx: Ctx) -> bool:
    """The local owner who types a command is a person; the one behind an agent's connection is that agent."""
    who = ctx.principal
    return who.person is None and who.key is None and ctx.surface == "cli"


async def _is_approver(tx: Tx, ctx: Ctx, row: Proposal) -> bool:
    """Whether the person has the role in the whole org, or at the bank that would change, and reaches it."""
    person, reach = ctx.principal.person, ctx.principal.banks
    held = await users.roles(tx, ctx.org, person) if person is not None else {}
    bank = await banks.of_id(tx, ctx.org, row.bank) if row.bank else None
    if reach is not None and (bank is None or bank.name not in reach):
        return False
    return any("approver" in held.get(place, ()) for place in (None, *([bank.name] if bank else [])))


class ListApprovals(Given):
    """How many."""

    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")


class Approvals(Result):
    """What waits for a decision."""

    proposals: list[ProposalStatus] = Field(description="Oldest first.")


@operation("approval.list", effect=Effect.READ, scope="")
async def list_(ctx: Ctx, given: ListApprovals) -> Approvals:
    """List the proposals that wait for a decision which you may make."""

    async def body(tx: Tx) -> Approvals:
        waiting = await proposals.pending(tx, ctx.org, ctx.now, given.limit)
        mine = [row for row in waiting if await _decides(tx, ctx, row)]
        return Approvals(proposals=[await _shown(tx, _reading(ctx), row, can_read=True) for row in mine])

    return await ctx.read(body)


class Decide(OneProposal):
    """What is decided."""

    approve: bool = Field(description="True to approve it, false to reject it.")


@operation("proposal.decide", effect=Effect.MUTATE, scope="")
async def decide(ctx: Ctx, given: Decide) -> ProposalStatus:
    """Approve or reject what someone else proposed; for people who are approvers."""

    async def body(tx: Tx) -> Changed[ProposalStatus]:
        row = await _known(tx, ctx, given.id)
        by = await _decides(tx, ctx, row)
        if by is None:
            raise await _refusal(tx, ctx, row)
        state: State = "approved" if given.approve else "rejected"
        until = ctx.now + proposal.LASTS["approved"] if given.approve else row.expires_at
        if not await proposals.decide(tx, row, proposals.Decision(state, by, until), ctx.now):
            raise Conflict(f"The proposal does not wait for a decision any more: it is {proposing.state_of(ctx, row)}.")
        after = await _known(tx, ctx, given.id)
        told = await _shown(tx, _reading(ctx), after, can_read=True)
        return Changed(told, row.bank, [row.id], f"{state} {row.arguments_digest}")

    return await ctx.change(body)


async def _refusal(tx: Tx, ctx: Ctx, row: Proposal) -> KeepsakeError:
    """Why someone may not decide; to whom a proposal is none of their business it is unknown."""
    is_own = proposing.is_own(ctx.principal, row) or (row.person is not None and row.person == ctx.principal.person)
    if is_own:
        return Forbidden("nobody decides on what their own credentials proposed. Another approver has to.")
    is_approver = ctx.principal.person is not None and await _is_approver(tx, ctx, row)
    if ctx.principal.client is not None or (not is_approver and ctx.principal.person is None):
        return Forbidden("only a person with the role approver decides on proposals, or the owner at this machine.")
    return _unknown(str(row.id))


@operation("proposal.cancel", effect=Effect.MUTATE, scope="")
async def cancel(ctx: Ctx, given: OneProposal) -> ProposalStatus:
    """Take back a proposal of your own that was not applied yet."""

    async def body(tx: Tx) -> Changed[ProposalStatus]:
        row = await _known(tx, ctx, given.id)
        if not proposing.is_own(ctx.principal, row):
            raise _unknown(given.id)
        state = proposing.state_of(ctx, row)
        if state not in OPEN or not await proposals.end(tx, row, End("cancelled", OPEN), ctx.now):
            raise Conflict(f"The proposal cannot be taken back: it is {state}.")
        after = await _known(tx, ctx, given.id)
        return Changed(await _shown(tx, ctx, after, can_read=False), row.bank, [row.id])

    return await ctx.change(body)
