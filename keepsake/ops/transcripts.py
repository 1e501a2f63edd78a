"""Transcripts: sessions that nobody captured while they ran become events, which the background makes memories of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import Changed, Ctx
from keepsake.core import clock, envelope
from keepsake.core.clock import SECOND
from keepsake.core.envelope import Envelope, Moment
from keepsake.core.errors import Forbidden
from keepsake.core.models import BankName, Given, InBank
from keepsake.core.models import Moment as Time
from keepsake.core.operation import Effect, operation
from keepsake.core.project import Project
from keepsake.core.text import Clean, CleanJson, Filled
from keepsake.ops.importing import Imported
from keepsake.store import banks, events, imports, projects, sessions
from keepsake.store.engine import Tx

#: Events that one call takes: a batch, and the rest of the line that it ends with.
MOST = 400
#: A hook and a transcript tell the same moment, some time apart.
NEAR = 5 * SECOND
#: What else an event may tell; hooks note more, for themselves.
_EXTRA = ("agent",)
#: What has no id of its own in some versions of a client.
_SPOKEN = ("prompt", "turn-end", "compact")


class Tool(Given):
    """A tool that the agent used."""

    name: Filled = Field(max_length=300, description="Its name.")
    input: dict[Clean, CleanJson] = Field(default_factory=dict, description="What it was given.")
    response: Clean = Field("", max_length=100_000, description="What it gave back.")
    is_ok: bool = Field(True, description="Whether it worked.")


class Place(Given):
    """The project that an event belongs to."""

    identity: Filled = Field(max_length=4_200, description="What no other project shares: git:… or dir:…")
    name: BankName = Field(description="What its bank is called, if no other project came first.")
    root: Clean = Field("", max_length=4_200, description="Top folder of the working tree.")
    branch: Clean = Field("", max_length=500, description="Branch that is checked out.")


class Event(Given):
    """One event of a session, in the words of `core/envelope.py`."""

    event: Moment = Field(description="What happened.")
    at: Time = Field(description="When, ISO 8601.")
    cwd: Filled = Field(max_length=4_200, description="The folder that the client worked in.")
    key: Filled = Field(max_length=300, description="What tells it from all others of its session.")
    text: Clean = Field("", max_length=100_000, description="What was asked, answered or summed up.")
    tool: Tool | None = Field(None, description="The tool that was used.")
    files: list[Clean] = Field(default_factory=list, max_length=100, description="The files it is about.")
    branch: Clean = Field("", max_length=500, description="The branch that was checked out.")
    reason: Clean = Field("", max_length=200, description="Why a session began or ended.")
    extra: dict[Clean, Clean] = Field(default_factory=dict, max_length=50, description="What else is known.")
    project: Place = Field(description="The project of the folder.")
    end: int = Field(ge=0, description="Bytes of the transcript up to the line that tells it.")


class Transcript(InBank):
    """A stretch of one transcript."""

    client: Filled = Field(max_length=100, description="The client that wrote it.")
    session: Filled = Field(max_length=300, description="The client's id of the session.")
    file: Filled = Field(max_length=300, description="Name of the transcript.")
    events: list[Event] = Field(min_length=1, max_length=MOST, description="In the order of the transcript.")


@dataclass(frozen=True, slots=True)
class Sorted:
    """What of a stretch is new, and how far the session was read before."""

    new: Sequence[Event]
    before: imports.Session | None
    live_until: int


@operation("session.preview_import", effect=Effect.READ, scope="memory:read")
async def preview(ctx: Ctx, given: Transcript) -> Imported:
    """Tell what importing this stretch of a transcript would do; changes nothing."""
    wanted = _project(ctx, given, given.events[0])

    async def body(tx: Tx) -> Imported:
        for each in _projects(ctx, given):
            await _seen(tx, ctx, each)
        bank = await banks.named(tx, ctx.org, wanted.identity)
        sorted_ = await _sorted(tx, ctx, given, bank.id if bank else 0)
        return _told(ctx, given, bank.name if bank else wanted.name, len(sorted_.new))

    return await ctx.read(body)


@operation("session.import", effect=Effect.MUTATE, scope="memory:write")
async def import_(ctx: Ctx, given: Transcript) -> Imported:
    """Take over a stretch of a client's transcript; events that were captured or taken over before are skipped."""
    looked_at = await preview(ctx, given)
    return looked_at if not looked_at.stored else await ctx.change(lambda tx: _stored(tx, ctx, given))


async def _stored(tx: Tx, ctx: Ctx, given: Transcript) -> Changed[Imported]:
    for each in _projects(ctx, given):
        await _seen(tx, ctx, each)
    bank = await projects.bank_for(tx, ctx.store, ctx.org, _project(ctx, given, given.events[0]), ctx.now)
    await banks.step(tx, ctx.org, bank.id)
    sorted_ = await _sorted(tx, ctx, given, bank.id)
    begun = sorted_.before or imports.Session(ctx.store.new_id(), sorted_.live_until)
    if sorted_.before is None:
        await imports.begin(tx, ctx.org, bank.id, _key(given), begun, ctx.now)
    new = [events.Event(_envelope(ctx, given, event), _project(ctx, given, event)) for event in sorted_.new]
    stored = await events.put(tx, ctx.org, new, ctx.now)
    end = max(event.end for event in given.events)
    await imports.reach(tx, ctx.org, bank.id, replace(begun, files={**begun.files, given.file: end}))
    return Changed(_told(ctx, given, bank.name, stored), bank.id, [begun.source])


async def _seen(tx: Tx, ctx: Ctx, project: Project) -> None:
    """Refuse a project whose bank this principal may not see, or would have to make without the right to."""
    bank = await banks.named(tx, ctx.org, project.identity)
    if bank is None and "bank:admin" not in ctx.principal.scopes:
        told = f"the project {project.name!r} has no bank, and this credential may make none (bank:admin)."
        raise Forbidden(f"{told} Make it first, or use a key with that scope.")
    policy.check_bank(ctx.principal, bank.name if bank else project.name)


async def _sorted(tx: Tx, ctx: Ctx, given: Transcript, bank: int) -> Sorted:
    before = await imports.session(tx, ctx.org, bank, _key(given))
    told = await imports.told(tx, ctx.org, given.session)
    live_until = before.live_until if before else await _live_until(tx, ctx, given, bank, told)
    keys = {one.key for one in told}
    spoken = [(one.event, one.at) for one in told if one.event in _SPOKEN] if live_until else []
    read = before.files.get(given.file, 0) if before else 0
    new = [
        event
        for event in given.events
        if event.end > read and event.key not in keys and not _was_live(event, live_until, spoken, ctx.now)
    ]
    return Sorted(new, before, live_until)


async def _live_until(tx: Tx, ctx: Ctx, given: Transcript, bank: int, told: Sequence[imports.Told]) -> int:
    """Until when hooks told of this session; asked before the first of its transcripts is read."""
    session = await sessions.named(tx, ctx.org, bank, given.session)
    # Another tool's session is one that an import made.
    last = session.last_at if session and session.client == given.client else 0
    return max([last, *(one.at for one in told)])


def _was_live(event: Event, until: int, spoken: Sequence[tuple[str, int]], now: int) -> bool:
    """Whether a hook told it: its key is forgotten by now, or it has none that both could know."""
    at = clock.parse(event.at)
    if at <= until and at < now - events.KEPT_FOR:
        return True
    return any(kind == event.event and abs(at - other) <= NEAR for kind, other in spoken)


def _key(given: Transcript) -> str:
    return f"{given.client}:{given.session}"


def _projects(ctx: Ctx, given: Transcript) -> list[Project]:
    made = [_project(ctx, given, event) for event in given.events]
    return list({project.identity: project for project in made}.values())


def _project(ctx: Ctx, given: Transcript, event: Event) -> Project:
    """The project of an event; a bank that was named takes its place."""
    told = event.project
    if (name := given.bank or ctx.bank) is not None:
        return Project(name, name, told.root, told.branch)
    return Project(told.identity, told.name, told.root, told.branch)


def _envelope(ctx: Ctx, given: Transcript, event: Event) -> Envelope:
    used = event.tool
    tool = envelope.Tool(used.name, dict(used.input), used.response, used.is_ok) if used else None
    return Envelope(
        client=given.client,
        session=given.session,
        event=event.event,
        at=clock.parse(event.at),
        cwd=event.cwd,
        key=event.key,
        text=event.text,
        tool=tool,
        files=tuple(event.files),
        branch=event.branch,
        reason=event.reason,
        extra={name: event.extra[name] for name in _EXTRA if name in event.extra} | _trust(ctx),
    )


def _trust(ctx: Ctx) -> dict[str, str]:
    """Only the owner's own files speak for the person; a key's holder may be a program."""
    return {} if ctx.principal.key is None else {"trust": "agent"}


def _told(ctx: Ctx, given: Transcript, bank: str, stored: int) -> Imported:
    known = len(given.events) - stored
    held = {bank: stored} if stored else {}
    return Imported(stored=stored, known=known, forgotten=0, banks=held, redacted=list(ctx.redacted))
