"""Facts from notes by the language model: told line by line, and kept only where the note's own words support them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, ValidationError

from keepsake.context import App
from keepsake.core import clock, facts, log, meter, support, text
from keepsake.core.facts import FactType, Span
from keepsake.core.support import Claim, Ground
from keepsake.core.when import Window
from keepsake.ops import budget, jobs, prompts
from keepsake.services.llm import Ask, Json, Llm, LlmFailed, Quoted, Reply, parsed
from keepsake.store.jobs import Job
from keepsake.store.memories import Memory

#: Characters of notes that one question holds, and of one line.
ROOM, LONGEST = 6_000, 2_000
#: What the JSON of an answer costs beside the text it tells again, and what an endpoint can be asked for.
FRAME, LEAST_ANSWER, LONGEST_ANSWER = 4, 500, 6_000
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "first": {"type": "integer"},
                    "last": {"type": "integer"},
                    "text": {"type": "string"},
                    "type": {"enum": ["world", "experience", "opinion"]},
                    "entities": {"type": "array", "items": {"type": "string"}},
                    "time": {"type": ["string", "null"]},
                },
                "required": ["first", "last", "text", "type", "entities", "time"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}


class Told(BaseModel):
    """A fact as the model gives it."""

    first: int
    last: int
    text: str
    type: FactType
    entities: list[str]
    time: str | None = None


class Answer(BaseModel):
    """What the model gives."""

    facts: list[Told]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of a note: `note.text[start:end]`, and what a model knows of it beyond the rules."""

    start: int
    end: int
    text: str
    type: FactType | None = None
    entities: tuple[str, ...] = ()
    window: Window | None = None
    #: The model, where the text is its sentence and not the note's.
    maker: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a note as the model is given it."""

    note: Memory
    span: Span

    @property
    def text(self) -> str:
        """What it says."""
        return self.note.text[self.span.start : self.span.end]


@dataclass(frozen=True, slots=True)
class Reading:
    """Notes to be understood, and what stands before each of them, by its id."""

    notes: Sequence[Memory]
    before: Mapping[int, str]

    def lent(self, note: Memory) -> str:
        """What stands before a note."""
        return self.before.get(note.before or 0, "")


@dataclass(frozen=True, slots=True)
class Group:
    """Lines of one question, and what was said before them."""

    lines: Sequence[Line]
    before: str

    def quoted(self) -> list[Quoted]:
        """The lines as a model is given them; each knows the day that its words count from."""
        return [
            Quoted(n, str(one.note.id), one.text[:LONGEST], one.note.trust, clock.iso(one.note.said_at))
            for n, one in enumerate(self.lines, 1)
        ]

    def earlier(self) -> list[Quoted]:
        """What was said before them, where there is any."""
        first = self.lines[0].note
        return [Quoted(0, str(first.before), self.before[-LONGEST:], first.trust)] if self.before else []


@dataclass(slots=True)
class Tally:
    """What one job came to."""

    notes: int = 0
    facts: int = 0
    told: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    #: Why rules had to do it.
    reason: str = ""
    #: The model does not answer, or may not be asked any more: not in this job.
    is_over: bool = False

    def shown(self, notes: int, facts: int) -> dict[str, object]:
        """What the operation says of itself, with notes and facts that are being stored."""
        made: dict[str, object] = {"notes": self.notes + notes, "facts": self.facts + facts}
        if self.told:
            made |= {"told_by_model": self.told, "dropped": dict(sorted(self.dropped.items()))}
        is_all_dropped = self.told and self.dropped.total() == self.told
        reason = self.reason or ("unsupported: the notes say nothing of what the model told." if is_all_dropped else "")
        return made | ({"by_rules_because": reason} if reason else {})


def units(note: Memory) -> list[Span]:
    """What a note says, by rules."""
    spans = [] if note.parts.get("whole") else facts.split(note.text)
    return spans or [Span(0, len(note.text))]


def by_rules(note: Memory) -> list[Fact]:
    """The facts of a note, each in its own words."""
    return [Fact(span.start, span.end, note.text[span.start : span.end]) for span in units(note)]


async def facts_of(app: App, job: Job, reading: Reading, tally: Tally) -> dict[int, list[Fact]]:
    """The facts of each note; a model is asked where there is one, and where a note has more than one sentence."""
    found = {note.id: by_rules(note) for note in reading.notes}
    asked = budget.model(app)
    if asked is None:
        return found
    payer = budget.Payer(app, job.org, job.bank, "memory.extract", budget.BACKGROUND)
    claims: dict[int, list[Claim]] = {}
    for group in _groups(reading):
        if tally.is_over:
            break
        for id, told in (await _claimed(payer, asked, group, tally)).items():
            claims.setdefault(id, []).extend(told)
    for note in reading.notes:
        ground = Ground(note.text, reading.lent(note), note.said_at)
        if kept := _supported(claims.get(note.id, []), ground, tally):
            found[note.id] = list(_informed(note, kept, ground, asked.model))
    return found


def _groups(reading: Reading) -> Iterator[Group]:
    """Lines to ask about together; what is one sentence, rules understand as well and for nothing."""
    lines: list[Line] = []
    room = ROOM
    for note in reading.notes:
        more = [Line(note, one) for unit in units(note) for one in facts.sentences(note.text, unit)]
        if len(more) < 2 or note.parts.get("whole"):
            continue
        for line in more:
            size = min(line.span.end - line.span.start, LONGEST)
            if lines and size > room:
                yield Group(lines, reading.lent(lines[0].note))
                lines, room = [], ROOM
            lines.append(line)
            room -= size
    if lines:
        yield Group(lines, reading.lent(lines[0].note))


async def _claimed(payer: budget.Payer, asked: Llm, group: Group, tally: Tally) -> dict[int, list[Claim]]:
    """What the model tells of each note; nothing where it fails, with the reason in the tally."""
    lines = group.quoted()
    cost = sum(text.cost(line.text) for line in lines)
    ask = Ask(prompts.extracting(lines, group.earlier()), min(LONGEST_ANSWER, LEAST_ANSWER + FRAME * cost), SCHEMA)
    try:
        return await budget.checked(payer, asked, ask, lambda reply: _read(reply, group.lines))
    except (LlmFailed, budget.Spent, budget.Unusable) as error:
        tally.is_over = not isinstance(error, budget.Unusable)
        tally.reason = jobs.told(error)
        log.warning("facts made by rules", bank=payer.bank, code=error.code)
        return {}


def _read(reply: Reply, group: Sequence[Line]) -> dict[int, list[Claim]]:
    """The claims of an answer by note; a number that was not given is an error."""
    try:
        told = Answer.model_validate(parsed(reply.text)).facts
    except ValidationError:
        raise ValueError("it is not of the form {facts: [{first, last, text, type, entities, time}]}.") from None
    claims: dict[int, list[Claim]] = {}
    for one in told:
        if not 1 <= one.first <= one.last <= len(group):
            raise ValueError("a fact names a line that was not given.")
        first, last = group[one.first - 1], group[one.last - 1]
        if first.note.id != last.note.id:
            raise ValueError("the lines of a fact are not of one text.")
        claim = Claim(first.span.start, last.span.end, one.text, one.type, tuple(one.entities), one.time or "")
        claims.setdefault(first.note.id, []).append(claim)
    return claims


def _supported(claims: Sequence[Claim], ground: Ground, tally: Tally) -> list[Claim]:
    """The claims that their spans support; the others are counted."""
    kept = []
    for claim in claims:
        fault = support.fault(claim, ground)
        meter.counted("facts", f"dropped_{fault}" if fault else "kept")
        tally.told += 1
        if fault:
            tally.dropped[fault] += 1
        else:
            kept.append(claim)
    return kept


def _informed(note: Memory, claims: Sequence[Claim], ground: Ground, maker: str) -> Iterator[Fact]:
    """What the rules find, better understood: every word of the note stays in a fact, and none is the model's own."""
    for unit in units(note):
        within = [claim for claim in claims if claim.start < unit.end and unit.start < claim.end]
        yield from _apart(unit, within, ground, maker) or [_whole(unit, within, ground)]


def _whole(unit: Span, claims: Sequence[Claim], ground: Ground) -> Fact:
    entities = dict.fromkeys(name for claim in claims for name in claim.entities)
    windows = [window for claim in claims if (window := support.window(claim, ground))]
    return Fact(
        unit.start,
        unit.end,
        ground.note[unit.start : unit.end],
        claims[0].type if claims else None,
        tuple(entities),
        windows[0] if windows else None,
    )


def _apart(unit: Span, claims: Sequence[Claim], ground: Ground, maker: str) -> list[Fact]:
    """A fact for each sentence, where each can stand alone because the model put a name for he or she; else nothing."""
    made = []
    lines = facts.sentences(ground.note, unit)
    if unit.speaker or len(lines) < 2:
        return []
    for line in lines:
        own = [claim for claim in claims if (claim.start, claim.end) == (line.start, line.end)]
        fact = _whole(line, own, ground)
        told = next((told for claim in own if (told := support.renamed(claim, ground))), None)
        if told is None and facts.leans(ground.note, line):
            return []
        made.append(replace(fact, text=told, maker=maker) if told else fact)
    return made if any(fact.maker for fact in made) else []
