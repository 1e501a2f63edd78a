"""One summary per session, made anew as it goes on: by rules, or by a language model that is held to the events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ValidationError

from keepsake.context import App, Changed, Ctx
from keepsake.core import cite, log, summary, words
from keepsake.core.envelope import Envelope
from keepsake.core.errors import Conflict
from keepsake.core.pack import SUMMARY
from keepsake.core.summary import Seen
from keepsake.ops import background, budget, prompts, storing
from keepsake.services.llm import Ask, Json, LlmFailed, Quoted, Reply, parsed
from keepsake.store import banks, jobs, memories, sessions, suppressions
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory
from keepsake.store.sessions import Session

#: The newest memories of a session that are looked at.
LOOKED_AT = 400
ANSWER_TOKENS = 1_200
SCHEMA: Json = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in SUMMARY},
    "required": list(SUMMARY),
    "additionalProperties": False,
}
_SUMMARISED = "session.summarise"


@dataclass(frozen=True, slots=True)
class Told:
    """What was said in a session since it was last summed up."""

    said: str = ""
    compacted: str = ""
    #: Whether it has come to an end, or to the client's own summary: only then a model is asked.
    is_over: bool = False


def told(envelopes: Sequence[Envelope]) -> Told:
    """What events say beside what they show."""
    said = [one.text for one in envelopes if one.event == "turn-end" and one.text]
    compacted = [one.text for one in envelopes if one.event == "compact" and one.text]
    is_over = any(one.event in ("session-end", "compact") for one in envelopes)
    return Told(said[-1] if said else "", compacted[-1] if compacted else "", is_over)


class Fields(BaseModel):
    """A summary as the model gives it."""

    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A summary before it is stored."""

    parts: dict[str, str]
    maker: str


@dataclass(frozen=True, slots=True)
class Basis:
    """What a summary is made from, as it was read."""

    session: Session
    seen: Sequence[Memory]
    old: Memory | None


async def refresh(app: App, job: jobs.Job, bank: banks.Bank, id: int, said: Told) -> None:
    """Sum a session up; what was summed up before stays findable as of its time."""
    basis = await app.store.read(job.org, lambda tx: _basis(tx, job.org, bank.id, id))
    if basis is None:
        return
    made = Made(summary.by_rules(_session(basis, said)), cite.RULES)
    if said.is_over:
        made = await _by_model(app, bank, basis, said, made)
    if not made.parts or (basis.old is not None and basis.old.text == summary.told(made.parts)):
        return
    ctx = background.ctx(app, job.org, bank.name, _SUMMARISED)
    await ctx.change(lambda tx: _store(tx, ctx, job, bank.id, id, made))


async def _basis(tx: Tx, org: int, bank: int, id: int) -> Basis | None:
    session = await sessions.by_id(tx, org, bank, id)
    if session is None:
        return None
    rows = await memories.fetched(tx, org, bank, await sessions.memories_of(tx, org, bank, id, LOOKED_AT))
    seen = sorted((row for row in rows.values() if row.kind != "summary"), key=lambda row: (row.said_at, row.id))
    old = await memories.fetched(tx, org, bank, [session.summary]) if session.summary else {}
    return Basis(session, seen, next(iter(old.values()), None))


def _session(basis: Basis, said: Told) -> summary.Session:
    seen = [
        Seen(row.subtype, row.title, row.text, tuple(memories.lines(row.parts, "files_read"))) for row in basis.seen
    ]
    before = {name: str(part) for name, part in basis.old.parts.items() if name in SUMMARY} if basis.old else None
    place = basis.session.client + (f" on {basis.session.branch}" if basis.session.branch else "")
    return summary.Session(seen, said.said, said.compacted, before, place)


async def _by_model(app: App, bank: banks.Bank, basis: Basis, said: Told, ruled: Made) -> Made:
    asked = budget.model(app)
    if asked is None or not ruled.parts:
        return ruled
    facts = [Quoted(n, str(row.id), row.text[:500], row.trust) for n, row in enumerate(basis.seen[-100:], 1)]
    spoken = [text for text in (said.said, said.compacted) if text]
    facts += [Quoted(len(facts) + n, "session", text[:4_000], "agent") for n, text in enumerate(spoken, 1)]
    evidence = "\n".join([*(fact.text for fact in facts), *ruled.parts.values()])
    payer = budget.Payer(app, bank.org, bank.id, _SUMMARISED, budget.BACKGROUND)
    ask = Ask(prompts.summarising(facts), ANSWER_TOKENS, SCHEMA)
    try:
        parts = await budget.checked(payer, asked, ask, lambda reply: _fields(reply, evidence))
    except (LlmFailed, budget.Spent, budget.Unusable) as error:
        log.warning("summed up by rules", bank=bank.id, code=error.code)
        return ruled
    return Made({**ruled.parts, **parts}, asked.model)


def _fields(reply: Reply, evidence: str) -> dict[str, str]:
    """The fields of an answer, without the lines that the events do not bear out."""
    try:
        given = Fields.model_validate(parsed(reply.text)).model_dump()
    except ValidationError:
        raise ValueError(f"it is not an object of the texts {', '.join(SUMMARY)}.") from None
    kept = {}
    for name, part in given.items():
        lines = [line for line in str(part).splitlines() if line.strip() and cite.supported(line, evidence)]
        if lines:
            kept[name] = "\n".join(words.line(line, summary.LINE) for line in lines[: summary.LINES])
    if not kept:
        raise ValueError("none of it is borne out by the events.")
    return kept


async def _store(tx: Tx, ctx: Ctx, job: jobs.Job, bank: int, id: int, made: Made) -> Changed[None]:
    seq = await banks.step(tx, ctx.org, bank)
    if not await jobs.keep(tx, job, ctx.now):
        raise Conflict("Someone else sums this session up now.")
    session = await sessions.by_id(tx, ctx.org, bank, id)
    told = summary.told(made.parts)
    hash = words.digest(told)
    if session is None or await suppressions.has(tx, ctx.org, bank, ctx.store.digest(hash)):
        return Changed(None, bank, [])
    memory = _memory(ctx, bank, session, made, seq)
    await storing.store(tx, ctx.app, memory, ctx.app.embedding.known["static"])
    if session.summary is not None:
        await memories.supersede(tx, ctx.org, bank, [session.summary], memory.id, ctx.now)
    await sessions.update(tx, ctx.org, bank, replace(session, summary=memory.id))
    await jobs.wanted(tx, ctx.store, ctx.org, bank, "embed", ctx.now)
    return Changed(None, bank, [memory.id], told)


def _memory(ctx: Ctx, bank: int, session: Session, made: Made, seq: int) -> Memory:
    told = summary.told(made.parts)
    return Memory(
        org=ctx.org,
        bank=bank,
        id=ctx.store.new_id(),
        kind="summary",
        fact_type="experience",
        title=words.line(made.parts.get("request", "Session"), 80),
        text=told,
        learned_at=ctx.now,
        author=made.maker,
        text_hash=words.digest(told),
        tokens=words.cost(told),
        seq=seq,
        category="summary",
        parts=dict(made.parts),
        happened_from=session.last_at,
        event_at=session.last_at,
        source=session.id,
    )
