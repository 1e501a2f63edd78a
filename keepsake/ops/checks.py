"""Checks: add, list and remove what is watched, and tell how it stands."""

import hashlib
import ipaddress
import secrets
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from keepsake.context import Changed, Ctx
from keepsake.core import clock, target
from keepsake.core.clock import HOUR, SECOND
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.hysteresis import State
from keepsake.core.models import InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, cleaned
from keepsake.ops import background, incidents, vitals
from keepsake.ops import banks as bank_ops
from keepsake.services import addresses
from keepsake.store import anomalies, banks, check_results, checks
from keepsake.store import incidents as incident_rows
from keepsake.store.checks import Check, Expect, Kind
from keepsake.store.engine import Tx

#: Checks that one bank may have.
MOST = 5_000
#: What needs no address.
TARGETLESS = ("heartbeat", "self")


def _printable(name: str) -> str:
    if not cleaned(name).isprintable() or name != name.strip():
        raise ValueError("must be one line without blanks around it")
    return name


def _statuses(text: str) -> str:
    low, _, high = text.partition("-")
    numbers = [int(part) for part in (low, high or low) if part.isascii() and part.isdecimal() and len(part) == 3]
    if len(numbers) != 2 or not 100 <= numbers[0] <= numbers[1] <= 599:
        raise ValueError("must be a status such as 200, or a range such as 200-299")
    return text


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("must be an IP address") from None


Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]
StatusRange = Annotated[str, Field(max_length=7), AfterValidator(_statuses)]
Address = Annotated[str, Field(max_length=45), AfterValidator(_address)]


class AddCheck(InBank):
    """What to watch."""

    name: Name = Field(description="A name that no other check of the bank has.")
    kind: Kind = Field(
        description="http, tcp, dns, postgres, redis, heartbeat (you call us) or self (Keepsake's health)."
    )
    target: Clean = Field(
        "",
        max_length=target.LONGEST,
        description="A web address for http, HOST:PORT for tcp, postgres and redis, a name for dns; never a password.",
    )
    status: StatusRange | None = Field(
        None, description="http: the status, or range of them, to expect; 200-399 otherwise."
    )
    contains: Clean = Field("", max_length=500, description="http: a text that the page must hold.")
    tls_days: int = Field(0, ge=0, le=3_650, description="http: days that the certificate must still be valid.")
    addresses: list[Address] = Field(
        default_factory=list, max_length=20, description="dns: addresses of which the name must have one."
    )
    every_s: int = Field(60, ge=10, le=31 * 86_400, description="Seconds from one run, or heartbeat, to the next.")
    timeout_s: int = Field(10, ge=1, le=60, description="Seconds that one try may take.")
    grace_s: int = Field(30, ge=0, le=86_400, description="heartbeat: seconds that it may be late.")
    retries: int = Field(1, ge=0, le=5, description="Tries more, seconds apart, before a failure counts.")
    open_after: int | None = Field(
        None, ge=1, le=20, description="Failures in a row that open an incident; 2, or 1 for a heartbeat."
    )
    resolve_after: int | None = Field(
        None, ge=1, le=20, description="Successes in a row that resolve it; 2, or 1 for a heartbeat."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.kind in TARGETLESS) is bool(self.target):
            raise ValueError(f"`target` is {'not for' if self.target else 'needed by'} a check of kind {self.kind}")
        if self.target:
            try:
                target.parsed(self.kind, self.target)
            except ValueError as error:
                raise ValueError(f"`target` {error}") from None
        if self.kind != "http" and (self.status or self.contains or self.tls_days):
            raise ValueError("`status`, `contains` and `tls_days` are for checks of kind http")
        if self.tls_days and not self.target.startswith("https://"):
            raise ValueError("`tls_days` is for addresses that begin with https://")
        if self.kind != "dns" and self.addresses:
            raise ValueError("`addresses` is for checks of kind dns")
        return self


class CheckView(Result):
    """A check as it was added, and when it runs next."""

    name: str = Field(description="Its name.")
    kind: Kind = Field(description="What kind of check it is.")
    target: str = Field(description="What it watches.")
    status: str | None = Field(None, description="http: the statuses it expects.")
    contains: str | None = Field(None, description="http: the text it expects.")
    tls_days: int | None = Field(None, description="http: days that the certificate must be valid.")
    addresses: list[str] | None = Field(None, description="dns: the addresses it expects.")
    every_s: float = Field(description="Seconds from one run to the next.")
    timeout_s: float = Field(description="Seconds that one try may take.")
    grace_s: float | None = Field(None, description="heartbeat: seconds that it may be late.")
    retries: int = Field(description="Tries more before a failure counts.")
    open_after: int = Field(description="Failures in a row that open an incident.")
    resolve_after: int = Field(description="Successes in a row that resolve it.")
    state: State = Field(description="new before its first result, then up or down.")
    next_at: str = Field(description="When it runs next, ISO 8601; a heartbeat is late after that.")
    author: str = Field(description="Who added it.")
    created_at: str = Field(description="When it was added, ISO 8601.")


class AddedCheck(CheckView):
    """A new check."""

    token: str | None = Field(
        None, description="heartbeat: its secret, shown only this once; POST to /v1/heartbeats/TOKEN."
    )


class Checks(Result):
    """The checks of a bank."""

    checks: list[CheckView] = Field(description="By name, those that are down first.")
    total: int = Field(description="How many there are in all.")


def _described(check: Check) -> dict[str, object]:
    is_http, expect = check.kind == "http", check.expect
    low, high = expect.status
    return {
        "name": check.name,
        "kind": check.kind,
        "target": check.target,
        "status": (f"{low}" if low == high else f"{low}-{high}") if is_http else None,
        "contains": expect.contains or None,
        "tls_days": expect.tls_days or None,
        "addresses": list(expect.addresses) or None,
        "every_s": check.every / SECOND,
        "timeout_s": check.timeout / SECOND,
        "grace_s": check.grace / SECOND if check.kind == "heartbeat" else None,
        "retries": check.retries,
        "open_after": check.open_after,
        "resolve_after": check.resolve_after,
        "state": check.state,
        "next_at": clock.iso(check.due_at),
        "author": check.author,
        "created_at": clock.iso(check.created_at),
    }


def view(check: Check) -> CheckView:
    """A check as everyone sees it."""
    return CheckView.model_validate(_described(check))


def is_local_owner(ctx: Ctx) -> bool:
    """Whether the person at this machine asks, who may watch whatever this machine reaches."""
    asker = ctx.principal
    return asker.key is None and asker.person is None and asker.name == background.LOCAL


@operation("check.add", effect=Effect.MUTATE, scope="watch:write")
async def add(ctx: Ctx, given: AddCheck) -> AddedCheck:
    """Watch something: a page, a port, a name, a database, a heartbeat, or Keepsake itself; it runs at once."""
    if ctx.redacted:
        raise BadInput("check.add: what was given holds a secret. A check is stored and shown, so it must hold none.")
    _check_reach(ctx, given)
    token = secrets.token_urlsafe(32) if given.kind == "heartbeat" else None

    async def body(tx: Tx) -> Changed[AddedCheck]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        if sum((await checks.counts(tx, ctx.org, bank.id)).values()) >= MOST:
            raise Conflict(f"This bank has {MOST:,} checks already. Remove one, or add it to another bank.")
        made = _made(ctx, bank, given, token)
        if not await checks.insert(tx, made):
            raise Conflict(
                f"There is a check {given.name!r} in this bank already. Remove it first, or name it otherwise."
            )
        told = AddedCheck.model_validate(_described(made) | {"token": token})
        return Changed(told, bank.id, [made.id], given.model_dump_json())

    return await ctx.change(body)


def _check_reach(ctx: Ctx, given: AddCheck) -> None:
    """Refuse at once what every run would refuse; a name is looked up at every run."""
    if not given.target or is_local_owner(ctx):
        return
    host = target.parsed(given.kind, given.target).host
    if host == "localhost" or not all(
        addresses.is_public(ipaddress.ip_address(found)) for found in addresses.literal(host)
    ):
        raise BadInput("check.add: `target` is a private address; only the owner of this machine may watch those.")


def _made(ctx: Ctx, bank: banks.Bank, given: AddCheck, token: str | None) -> Check:
    low, _, high = (given.status or "200-399").partition("-")
    now, usual = ctx.now, 1 if given.kind == "heartbeat" else 2
    every, grace = given.every_s * SECOND, given.grace_s * SECOND
    due_at = now + every + grace if token else now
    return Check(
        org=ctx.org,
        bank=bank.id,
        id=ctx.store.new_id(),
        name=given.name,
        kind=given.kind,
        target=given.target,
        expect=Expect((int(low), int(high or low)), given.contains, given.tls_days, tuple(given.addresses)),
        anywhere=is_local_owner(ctx),
        every=every,
        timeout=given.timeout_s * SECOND,
        grace=grace if token else 0,
        retries=0 if token else given.retries,
        open_after=given.open_after or usual,
        resolve_after=given.resolve_after or usual,
        token=hashed(token) if token else "",
        author=ctx.principal.name,
        created_at=now,
        due_at=due_at,
        wake_at=due_at,
        since=now,
        rolled_to=now // HOUR * HOUR,
    )


def hashed(token: str) -> str:
    """A heartbeat's token as it is stored; it has 256 bits, so a plain hash keeps it secret."""
    return hashlib.sha256(token.encode()).hexdigest()


class ListChecks(InBank):
    """Which checks."""

    state: State | None = Field(None, description="Only checks in this state.")
    limit: int = Field(50, ge=1, le=1_000, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=100_000, description="How many to skip.")


@operation("check.list", effect=Effect.READ, scope="watch:read")
async def list_(ctx: Ctx, given: ListChecks) -> Checks:
    """List what is watched, as it was added, and when each check runs next."""

    async def body(tx: Tx) -> Checks:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Checks(checks=[], total=0)
        rows = await checks.listed(tx, ctx.org, bank.id, given.state, given.limit, given.offset)
        held = await checks.counts(tx, ctx.org, bank.id)
        total = held.get(given.state, 0) if given.state else sum(held.values())
        return Checks(checks=[view(row) for row in rows], total=total)

    return await ctx.read(body)


class OneCheck(InBank):
    """Which check."""

    name: Clean = Field(min_length=1, max_length=100, description="Name of the check.")


class RemovedCheck(Result):
    """A check that runs no more."""

    name: str = Field(description="Its name, which another check may have now.")
    removed_at: str = Field(description="When, ISO 8601.")


@operation("check.remove", effect=Effect.MUTATE, scope="watch:write")
async def remove(ctx: Ctx, given: OneCheck) -> RemovedCheck:
    """Stop watching something; what was found is kept as long as it would have been, and its incident is resolved."""
    model = await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[RemovedCheck]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is not None:
            await banks.step(tx, ctx.org, bank.id)
        row = await checks.named(tx, ctx.org, bank.id, given.name) if bank else None
        if bank is None or row is None or not await checks.remove(tx, row, ctx.now):
            raise NotFound(f"No check {given.name!r} in this bank. Use check.list to see the names.")
        await incidents.close(tx, ctx, row, model)
        going_on = await anomalies.going_on(tx, ctx.org, bank.id, [row.id])
        await anomalies.end(tx, ctx.org, bank.id, [one.id for one in going_on], ctx.now)
        return Changed(RemovedCheck(name=row.name, removed_at=clock.iso(ctx.now)), bank.id, [row.id])

    return await ctx.change(body)


class CheckStatus(Result):
    """How a check stands."""

    name: str = Field(description="Name of the check.")
    kind: Kind = Field(description="What kind of check it is.")
    state: State = Field(description="new before its first result, then up or down.")
    since: str = Field(description="Since when it is so, ISO 8601.")
    reason: str | None = Field(None, description="Why its last run failed; absent when it did not.")
    last_at: str | None = Field(None, description="When it last ran, ISO 8601.")
    next_at: str = Field(description="When it runs next, ISO 8601.")
    latency_ms: float | None = Field(None, description="How long its last run took.")
    uptime_24h: float | None = Field(None, description="Share of runs that succeeded in the last 24 hours, 0 to 1.")
    incident: str | None = Field(None, description="Id of its open incident.")
    anomalies: list[str] = Field(default_factory=list, description="What is unusual about it now: latency, errors.")


class Statuses(Result):
    """How everything that is watched stands."""

    ok: bool = Field(description="Whether no check is down and Keepsake itself is well.")
    up: int = Field(description="Checks that are up.")
    down: int = Field(description="Checks that are down.")
    new: int = Field(description="Checks without a result yet.")
    checks: list[CheckStatus] = Field(description="Those that are down first, then by name.")
    keepsake: list[vitals.Vital] = Field(description="Keepsake's own health.")


@operation("check.status", effect=Effect.READ, scope="watch:read")
async def status(ctx: Ctx, given: ListChecks) -> Statuses:
    """Tell how everything that is watched stands, what is down and why, and how Keepsake itself is."""

    async def body(tx: Tx) -> tuple[dict[State, int], list[CheckStatus]]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return {}, []
        held = await checks.counts(tx, ctx.org, bank.id)
        rows = await checks.listed(tx, ctx.org, bank.id, given.state, given.limit, given.offset)
        return held, await standing(tx, ctx, bank, rows)

    held, shown = await ctx.read(body)
    signs = await vitals.signs(ctx.app, ctx.org)
    down = held.get("down", 0)
    return Statuses(
        ok=not down and all(sign.ok for sign in signs),
        up=held.get("up", 0),
        down=down,
        new=held.get("new", 0),
        checks=shown,
        keepsake=signs,
    )


async def standing(tx: Tx, ctx: Ctx, bank: banks.Bank, rows: list[Check]) -> list[CheckStatus]:
    """How checks of a bank stand now."""
    ids = [row.id for row in rows]
    opened = await incident_rows.open_of(tx, ctx.org, bank.id, ids)
    unusual = await anomalies.going_on(tx, ctx.org, bank.id, ids)
    shares = await check_results.shares(tx, ctx.org, bank.id, ids, ctx.now)
    return [
        CheckStatus(
            name=row.name,
            kind=row.kind,
            state=row.state,
            since=clock.iso(row.since),
            reason=row.reason or None,
            last_at=None if row.last_at is None else clock.iso(row.last_at),
            next_at=clock.iso(row.due_at),
            latency_ms=round(row.latency / 1_000, 1) if row.last_at and row.kind not in TARGETLESS else None,
            uptime_24h=share(shares.get(row.id)),
            incident=str(opened[row.id]) if row.id in opened else None,
            anomalies=sorted(one.metric for one in unusual if one.check_id == row.id),
        )
        for row in rows
    ]


def share(counted: tuple[int, int] | None) -> float | None:
    """What part of runs succeeded, from how many there were and how many failed."""
    return None if not counted or not counted[0] else round(1 - counted[1] / counted[0], 5)
