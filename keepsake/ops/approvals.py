"""Who decides on proposals: look at them, approve, reject or take them back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, ids, intake, invocation, proposal
from keepsake.core.errors import Conflict, KeepsakeError, NotFound
from keepsake.core.models import Given, Result
from keepsake.core.operation import REGISTRY, AnyOperation, Effect, operation
from keepsake.core.proposal import OPEN, State
from keepsake.core.text import Clean
from keepsake.ops import deciding, invocations, previews
from keepsake.ops import proposals as proposing
from keepsake.ops.invocations import Request
from keepsake.store import banks, proposals
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
    outcome: str = Field(description="What it failed of, or what was noted by whoever decided on it.")
    bank: str | None = Field(None, description="The bank that would change; null where there is none yet.")
    user: str | None = Field(None, description="The person for whom it was proposed.")
    client: str | None = Field(None, description="The key or the OAuth client that proposed it, by its name.")
    decide_as: str | None = Field(None, description="As whom you may decide on it; null means that you may not.")


@operation("proposal.get", effect=Effect.READ, scope="")
async def get(ctx: Ctx, given: OneProposal) -> ProposalStatus:
    """Tell how a proposal stands and what it would change: your own, or any where you approve."""

    async def body(tx: Tx) -> ProposalStatus:
        row = await _known(tx, ctx, given.id)
        by = await deciding.could(tx, ctx, row)
        if by is not None:
            return await _shown(tx, _reading(ctx), row, by)
        if not deciding.is_own(ctx.principal, row) and not deciding.is_for(ctx, row):
            raise _unknown(given.id)
        return await _shown(tx, ctx, row, None, can_read=await _reads(tx, ctx, row))

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


async def _shown(tx: Tx, ctx: Ctx, row: Proposal, by: str | None, *, can_read: bool = True) -> ProposalStatus:
    state = proposing.state_of(ctx, row)
    bank = await banks.of_id(tx, ctx.org, row.bank) if row.bank else None
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
        bank=bank.name if bank else None,
        user=await deciding.person(tx, ctx, row),
        client=await deciding.client(tx, ctx, row),
        decide_as=by if state == "pending_approval" else None,
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


Stand = Literal["waiting", "approved", "denied", "expired"]
_STATES: Mapping[Stand, tuple[State, ...]] = {
    "approved": ("approved", "claimed", "succeeded", "failed", "unknown"),
    "denied": ("rejected",),
    "expired": ("expired", "revoked", "cancelled"),
}
_RUNS: Mapping[Stand, tuple[invocation.State, ...]] = {
    "approved": ("queued", "running", "succeeded", "failed", "timed_out", "unknown"),
    "denied": ("denied",),
    "expired": ("expired", "cancelled"),
}


class ListApprovals(Given):
    """Which, and how many."""

    state: Stand = Field("waiting", description="waiting for a decision, approved, denied, or past deciding.")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results.")


class Approvals(Result):
    """What waits for a decision."""

    proposals: list[ProposalStatus] = Field(description="Changes that were proposed; what waits oldest first.")
    invocations: list[Request] = Field(description="Commands and calls to be run; what waits oldest first.")


@operation("approval.list", effect=Effect.READ, scope="")
async def list_(ctx: Ctx, given: ListApprovals) -> Approvals:
    """List what waits for a decision which you may make: changes that were proposed, and commands to be run."""

    async def body(tx: Tx) -> Approvals:
        if given.state == "waiting":
            rows = await proposals.pending(tx, ctx.org, ctx.now, given.limit)
        else:
            rows = await proposals.past(tx, ctx.org, _STATES[given.state], given.limit)
        mine = [(row, by) for row in rows if (by := await deciding.could(tx, ctx, row))]
        if given.state == "waiting":
            runs = await invocations.waiting(tx, ctx, given.limit)
        else:
            runs = await invocations.past(tx, ctx, _RUNS[given.state], given.limit)
        return Approvals(
            proposals=[await _shown(tx, _reading(ctx), row, by) for row, by in mine],
            invocations=[await invocations.request(tx, ctx, row) for row in runs],
        )

    return await ctx.read(body)


class CountApprovals(Given):
    """Nothing to say."""


class Waiting(Result):
    """How much waits for a decision."""

    proposals: int = Field(description="Proposals that you may decide on; a thousand at most are counted.")
    invocations: int = Field(description="Commands and calls that you may decide on; counted like them.")


@operation("approval.count", effect=Effect.READ, scope="")
async def count(ctx: Ctx, given: CountApprovals) -> Waiting:
    """Count what waits for a decision which you may make."""

    async def body(tx: Tx) -> Waiting:
        waiting = await proposals.pending(tx, ctx.org, ctx.now, 1_000)
        mine = [row for row in waiting if await deciding.could(tx, ctx, row)]
        return Waiting(proposals=len(mine), invocations=len(await invocations.waiting(tx, ctx, 1_000)))

    return await ctx.read(body)


class Decide(OneProposal):
    """What is decided."""

    approve: bool = Field(description="True to approve it, false to reject it.")
    note: Clean = Field("", max_length=500, description="Why, for whoever proposed it.")


@operation("proposal.decide", effect=Effect.MUTATE, scope="")
async def decide(ctx: Ctx, given: Decide) -> ProposalStatus:
    """Approve or reject what someone else proposed; for people who are approvers."""

    async def body(tx: Tx) -> Changed[ProposalStatus]:
        row = await _known(tx, ctx, given.id)
        by = await deciding.decides(tx, ctx, row)
        if by is None:
            raise await deciding.refusal(tx, ctx, row, _unknown(given.id))
        state: State = "approved" if given.approve else "rejected"
        until = ctx.now + proposal.LASTS["approved"] if given.approve else row.expires_at
        if not await proposals.decide(tx, row, proposals.Decision(state, by, until, given.note), ctx.now):
            raise Conflict(f"The proposal does not wait for a decision any more: it is {proposing.state_of(ctx, row)}.")
        after = await _known(tx, ctx, given.id)
        told = await _shown(tx, _reading(ctx), after, by)
        return Changed(told, row.bank, [row.id], f"{state} {row.arguments_digest} {given.note}")

    return await ctx.change(body)


@operation("proposal.cancel", effect=Effect.MUTATE, scope="")
async def cancel(ctx: Ctx, given: OneProposal) -> ProposalStatus:
    """Take back a proposal of your own that was not applied yet."""

    async def body(tx: Tx) -> Changed[ProposalStatus]:
        row = await _known(tx, ctx, given.id)
        if not deciding.is_own(ctx.principal, row):
            raise _unknown(given.id)
        state = proposing.state_of(ctx, row)
        if state not in OPEN or not await proposals.end(tx, row, End("cancelled", OPEN), ctx.now):
            raise Conflict(f"The proposal cannot be taken back: it is {state}.")
        after = await _known(tx, ctx, given.id)
        return Changed(await _shown(tx, ctx, after, None, can_read=False), row.bank, [row.id])

    return await ctx.change(body)


class OneWaiting(Given):
    """Which one."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of an invocation or a proposal.")


@operation("approval.get", effect=Effect.READ, scope="")
async def request(ctx: Ctx, given: OneWaiting) -> Request:
    """Tell all there is to know of an invocation before someone decides: your own, or any that you may decide on."""

    async def body(tx: Tx) -> Request:
        row = await invocations.known(tx, ctx, given.id)
        may = row is not None and (
            deciding.is_own(ctx.principal, row)
            or ctx.principal.is_manager
            or (row.person is not None and row.person == ctx.principal.person)
            or await deciding.could(tx, ctx, row) is not None
        )
        if row is None or not may:
            raise invocations.unknown(given.id)
        return await invocations.request(tx, ctx, row)

    return await ctx.read(body)


class Say(OneWaiting):
    """What is decided, and why."""

    approve: bool = Field(description="True to agree, false to deny it.")
    reason: Clean = Field("", max_length=2_000, description="Why; whoever asked is told.")


class Said(Result):
    """What was decided."""

    id: str = Field(description="Id of what was decided on.")
    what: str = Field(description="The operation that was proposed, or the tool that shall be run.")
    requested_by: str = Field(description="Who asked for it.")
    state: str = Field(description="How it stands now.")
    expires_at: str = Field(description="Until when it can be applied or run, ISO 8601.")


@operation("approval.decide", effect=Effect.MUTATE, scope="")
async def say(ctx: Ctx, given: Say) -> Said:
    """Approve or deny what someone else asked for, a proposal or an invocation; for people who are approvers."""
    row = await ctx.read(lambda tx: invocations.known(tx, ctx, given.id))
    if row is not None:
        told = await invocations.decide(ctx, given.id, given.approve, given.reason)
        return Said(
            id=told.id, what=told.tool, requested_by=told.requested_by, state=told.status, expires_at=told.expires_at
        )
    made = await decide(ctx, Decide(id=given.id, approve=given.approve, note=given.reason[:500]))
    return Said(
        id=made.id, what=made.operation, requested_by=made.proposed_by, state=made.state, expires_at=made.expires_at
    )
