"""Propose and apply: a change is described, agreed to and made, exactly as it was described."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_serializer

from keepsake.auth import policy
from keepsake.context import Changed, Consent, Ctx
from keepsake.core import clock, intake, proposal
from keepsake.core.errors import BadInput, Conflict, Forbidden, KeepsakeError, NotFound, Unavailable
from keepsake.core.models import Given, Result
from keepsake.core.operation import REGISTRY, AnyOperation, Effect, operation
from keepsake.core.principal import Principal
from keepsake.core.proposal import READY, State
from keepsake.core.text import Clean, CleanJson
from keepsake.ops import banks, previews
from keepsake.ops.deciding import credential, is_own
from keepsake.settings import Settings
from keepsake.store import proposals
from keepsake.store.engine import Tx
from keepsake.store.proposals import End, Proposal

#: How many proposals of one credential may stand open at once.
MOST = 100


class Spent(Conflict):
    """The token is good no more."""


class Stale(Conflict):
    """What was to be changed is not what it was."""


def offers(principal: Principal) -> dict[str, str]:
    """Every operation that a principal may propose, with the arguments it takes."""
    return {id: _signature(one) for id, one in REGISTRY.items() if policy.may_propose(principal, one)}


@lru_cache(maxsize=256)
def _signature(declared: AnyOperation) -> str:
    fields = declared.given.model_fields.items()
    return ", ".join(name if field.is_required() else f"{name}?" for name, field in fields)


def admit(ctx: Ctx, declared: AnyOperation, arguments: intake.Arguments) -> None:
    """Ask of what a proposal carries what a call of it would be asked."""
    if declared.effect is not Effect.GATE:
        return
    target, given = carried(arguments) or (None, {})
    if target is None or not _is_known(ctx.principal, target):
        if not any(policy.may_propose(ctx.principal, one) for one in REGISTRY.values()):
            told = "this credential may change nothing, so it has nothing to propose or apply."
            raise Forbidden(f"{told} Ask its owner for a key that may write.")
        return
    policy.check_proposing(ctx.principal, target)
    _check_bank(ctx, target, given)


def carried(arguments: intake.Arguments) -> tuple[AnyOperation, intake.Arguments] | None:
    """What a proposal would run, and with what; None where there is no such operation."""
    named, given = arguments.get("operation"), arguments.get("arguments")
    target = REGISTRY.get(named) if isinstance(named, str) else None
    return None if target is None else (target, given if isinstance(given, dict) else {})


def _is_known(principal: Principal, target: AnyOperation) -> bool:
    return proposal.is_proposable(target) and policy.in_tier(principal, target)


def _check_bank(ctx: Ctx, target: AnyOperation, carried: Mapping[str, object]) -> None:
    if "bank" not in target.given.model_fields:
        return
    ctx = ctx.acting(proposal.scopes(target))
    named = carried.get("bank")
    name, _ = banks.wanted(ctx, named if isinstance(named, str) else None)
    if not banks.is_hidden(ctx, name):
        policy.check_bank(ctx.principal, name)


class Propose(Given):
    """The change that is wanted."""

    operation: Clean = Field(min_length=1, max_length=100, description="The operation that makes the change.")
    arguments: dict[Clean, CleanJson] = Field(
        default_factory=dict, max_length=200, description="The operation's arguments, exactly as they shall be used."
    )
    reason: Clean = Field("", max_length=2_000, description="Why, for whoever decides on it.")


class Proposed(Result):
    """A proposal, with the token that applies it."""

    id: str = Field(description="Id of the proposal; proposal_status tells how it stands.")
    token: str = Field(description="Good for one `apply` by you. Shown once: keep it until then.")
    operation: str = Field(description="The operation that would make the change.")
    effect: str = Field(description="mutate or destructive.")
    state: State = Field(description="auto_ok: apply it; pending_approval: another person has to approve it first.")
    diff: str = Field(description="What would change: `-` goes, `+` comes.")
    expires_at: str = Field(description="Until when it can be applied or approved, ISO 8601.")
    next: str = Field(description="What to do now.")
    page: str | None = Field(None, description="Where an approver decides on it, where one has to.")


_NEXT: Mapping[str, str] = {
    "auto_ok": "Call `apply` with the token to make this change.",
    "pending_approval": "An approver has to agree first: `keepsake approvals approve {id}`. Look with"
    " `proposal_status`, then call `apply` with the token.",
}


@operation("proposal.create", effect=Effect.GATE, scope="")
async def create(ctx: Ctx, given: Propose) -> Proposed:
    """Propose a change: it is checked and described, and nothing is changed before its token is applied."""
    target = _proposable(ctx, given.operation)
    checked = intake.validated(target.given, given.arguments, target.id)
    carried, found = intake.cleaned(checked, target.id)
    ctx = ctx.without(tuple(dict.fromkeys((*ctx.redacted, *found))))
    token, acting = proposal.new_token(), ctx.acting(proposal.scopes(target)).running(target.id)

    async def body(tx: Tx) -> Changed[Proposed]:
        past = await proposals.expire(tx, ctx.org, ctx.now)
        if await proposals.count_open(tx, ctx.org, credential(ctx.principal), ctx.now) >= MOST:
            raise Conflict(f"{MOST} proposals of yours stand open. Apply or cancel some, or wait until they expire.")
        seen = await previews.of(tx, acting, target, carried)
        row = _row(ctx, target, carried, seen, token, given.reason)
        await proposals.insert(tx, row)
        diff = previews.diff(target, carried, seen, previews.may_read(ctx, seen.bank))
        return Changed(_proposed(ctx.app.settings, row, token, diff), row.bank, [row.id, *past], row.arguments)

    return await ctx.change(body)


def _proposable(ctx: Ctx, name: str) -> AnyOperation:
    target: AnyOperation | None = REGISTRY.get(name)
    if target is None or not _is_known(ctx.principal, target):
        told, known = intake.echoed(name, 100), ", ".join(offers(ctx.principal))
        raise BadInput(f"`operation`: {told} cannot be proposed. You may propose: {known}.")
    return target


def _row(ctx: Ctx, target: AnyOperation, carried: Given, seen: previews.Target, token: str, reason: str) -> Proposal:
    arguments = proposal.canonical(carried.model_dump(mode="json", exclude_unset=True))
    state = proposal.begun(target.effect)
    return Proposal(
        org=ctx.org,
        bank=seen.chain,
        id=ctx.store.new_id(),
        token_hash=proposal.hashed(token),
        principal=ctx.principal.name,
        credential=credential(ctx.principal),
        person=ctx.principal.person,
        operation=target.id,
        version=proposal.version(target),
        effect=target.effect,
        place=ctx.bank,
        arguments=arguments,
        redacted=" ".join(ctx.redacted),
        arguments_digest=ctx.store.digest(arguments),
        target_digest=seen.digest(ctx),
        reason=reason,
        state=state,
        created_at=ctx.now,
        expires_at=ctx.now + proposal.LASTS[state],
    )


def _proposed(settings: Settings, row: Proposal, token: str, diff: str) -> Proposed:
    return Proposed(
        id=str(row.id),
        token=token,
        operation=row.operation,
        effect=row.effect,
        state=row.state,
        diff=diff,
        expires_at=clock.iso(row.expires_at),
        next=_NEXT[row.state].format(id=row.id),
        page=page(settings, row.id) if row.state == "pending_approval" else None,
    )


def page(settings: Settings, id: int) -> str:
    """Where a person decides on what waits for approval."""
    return f"{address(settings)}/console/approve/{id}"


def address(settings: Settings) -> str:
    """Where people reach this server, as far as its settings tell."""
    name = settings.host if settings.host not in ("", "0.0.0.0", "::") else "127.0.0.1"
    host = f"[{name}]" if ":" in name else name
    return settings.public_url or f"http://{host}:{settings.port}"


class Apply(Given):
    """Which proposal: its token says it all."""

    token: SecretStr = Field(min_length=1, max_length=200, description="The token that `propose` gave.")

    @field_serializer("token")
    def _sent(self, token: SecretStr) -> str:
        """As it goes to another server; nothing of ours writes it down."""
        return token.get_secret_value()


class Outcome(Result):
    """The operation's own result."""

    model_config = ConfigDict(extra="allow")


@operation("proposal.apply", effect=Effect.GATE, scope="")
async def apply(ctx: Ctx, given: Apply) -> Outcome:
    """Make the change that was proposed, exactly as it was, once; gives the operation's own result."""
    row = await ctx.read(lambda tx: _of_token(tx, ctx, given.token.get_secret_value()))
    await _check_ready(ctx, row)
    target = await _unchanged(ctx, row)
    policy.check_proposing(ctx.principal, target)
    carried = intake.validated(target.given, _stored(row), target.id)
    _check_bank(replace(ctx, bank=row.place), target, _stored(row))
    result = await Application(ctx, row, target, carried).made()
    return Outcome(**result.model_dump(mode="json"))


async def check_token(ctx: Ctx, arguments: intake.Arguments) -> None:
    """Refuse a token whose change its holder may not make any more; whatever else is wrong, `apply` tells."""
    token = arguments.get("token")
    row = await ctx.read(lambda tx: proposals.of_token(tx, ctx.org, proposal.hashed(str(token))))
    target = REGISTRY.get(row.operation) if row is not None else None
    if row is not None and target is not None and is_own(ctx.principal, row) and row.state in READY:
        policy.check_proposing(ctx.principal, target)
        _check_bank(replace(ctx, bank=row.place), target, _stored(row))


async def _of_token(tx: Tx, ctx: Ctx, token: str) -> Proposal:
    """The proposal of a token; another's is as unknown as none."""
    row = await proposals.of_token(tx, ctx.org, proposal.hashed(token))
    if row is None or not is_own(ctx.principal, row):
        raise NotFound("No proposal has this token, or it is not yours. Call `propose` to get one.")
    return row


_WHY_NOT: Mapping[State, str] = {
    "pending_approval": "The proposal waits for an approver. Look with `proposal_status`, and apply it then.",
    "rejected": "An approver has rejected the proposal. Look at why with `proposal_status`, before you propose again.",
    "expired": "The proposal is past its time. Call `propose` again.",
    "revoked": "The proposal was revoked, because what it would change has changed. Call `propose` again.",
    "cancelled": "The proposal was cancelled. Call `propose` again.",
    "claimed": "The proposal is being applied at this moment. Look with `proposal_status`.",
    "succeeded": "The proposal was applied already; a token is good once. Call `propose` for another change.",
    "failed": "The proposal was tried and failed; a token is good once. Call `propose` again.",
    "unknown": "The server broke off while applying this proposal. Look at what was changed before you propose again.",
}


def state_of(ctx: Ctx, row: Proposal) -> State:
    """How a proposal stands at this moment."""
    return proposal.now_is(row.state, row.expires_at, row.claimed_at, ctx.now)


async def _check_ready(ctx: Ctx, row: Proposal) -> None:
    """Refuse what cannot be applied, and write down what has become of it by the passing of time."""
    state = state_of(ctx, row)
    if state != row.state:
        await ended(ctx, row, End(state, (row.state,)))
    if state not in READY:
        raise Spent(_WHY_NOT[state])


async def ended(ctx: Ctx, row: Proposal, end: End) -> bool:
    """Write the end of a proposal with its audit entry; False when it stands otherwise by now."""

    async def body(tx: Tx) -> Changed[bool]:
        is_changed = await proposals.end(tx, row, end, ctx.now)
        return Changed(is_changed, row.bank, [row.id] if is_changed else [])

    return await ctx.running(f"proposal.{end.state}").change(body)


def _stored(row: Proposal) -> intake.Arguments:
    return proposal.parsed(row.arguments)


async def _unchanged(ctx: Ctx, row: Proposal) -> AnyOperation:
    """The operation, as long as it and what it was to be given are what was proposed."""
    target: AnyOperation | None = REGISTRY.get(row.operation)
    is_same = (
        target is not None
        and _is_known(ctx.principal, target)
        and proposal.version(target) == row.version
        and ctx.store.digest(row.arguments) == row.arguments_digest
        and (target.effect is not Effect.DESTRUCTIVE or row.decided_by is not None)
    )
    if target is None or not is_same:
        await ended(ctx, row, End("revoked", READY, "The operation or its arguments are not what was proposed."))
        raise Stale("The operation is not what it was when this was proposed. Call `propose` again.")
    return target


@dataclass(frozen=True, slots=True)
class Application:
    """One try to make a proposed change, as whoever proposed it."""

    ctx: Ctx
    row: Proposal
    target: AnyOperation
    carried: Given

    async def made(self) -> BaseModel:
        """Run the operation; its first transaction uses the proposal up, or it changes nothing."""
        consent = Consent(self.row.id, self._use)
        try:
            result: BaseModel = await self.target(replace(self._running(), consent=consent), self.carried)
            if not consent.is_used:
                await self._nothing_changed()
            elif self.target.in_parts:
                await ended(self.ctx, self.row, End("succeeded", ("claimed",)))
        except (Spent, Unavailable):
            raise
        except Stale as error:
            await ended(self.ctx, self.row, End("revoked", READY, str(error)))
            raise
        except KeepsakeError as error:
            after: tuple[State, ...] = ("claimed",) if consent.is_used else READY
            await ended(self.ctx, self.row, End("failed", after, str(error)))
            raise
        return result

    def _running(self) -> Ctx:
        """The request as the operation sees it; an approval lends the right to delete, for this change alone."""
        acting = self.ctx.acting(proposal.scopes(self.target)).principal
        if self.target.effect is Effect.DESTRUCTIVE:
            acting = replace(acting, scopes=acting.scopes | self.target.scopes, may_destroy=True, rights=None)
        ctx = replace(self.ctx, principal=acting, bank=self.row.place, redacted=tuple(self.row.redacted.split()))
        ctx = ctx.running(self.target.id)
        return ctx if self.row.place == self.ctx.bank else replace(ctx, project=None)

    async def _use(self, tx: Tx) -> None:
        """Of all who hold the token one gets through, and only to the target that was described."""
        await self._claim(tx, "claimed" if self.target.in_parts else "succeeded")
        try:
            seen = await previews.of(tx, self._running(), self.target, self.carried)
        except NotFound as error:
            raise Stale("What was to be changed is not there any more. Call `propose` again.") from error
        if seen.digest(self.ctx) != self.row.target_digest:
            raise Stale("What was to be changed has changed since it was proposed. Call `propose` again.")

    async def _claim(self, tx: Tx, state: State) -> None:
        if not await proposals.claim(tx, self.row, state, self.ctx.now):
            raise Spent(_WHY_NOT["succeeded"])

    async def _nothing_changed(self) -> None:
        """An operation that found its work done has used the token up all the same."""

        async def body(tx: Tx) -> Changed[None]:
            await self._claim(tx, "succeeded")
            return Changed(None, self.row.bank, [self.row.id])

        await self.ctx.change(body)
