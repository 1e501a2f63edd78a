"""What is found for a question about projects: hybrid retrieval, lookups, and lines of the files themselves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core import evidence
from keepsake.core.clock import parse
from keepsake.core.evidence import DEEDS, Evidence, Findings, Person
from keepsake.core.inquiry import Inquiry
from keepsake.core.when import Window
from keepsake.ops import excerpts, lookups, pickaxe, retrieve
from keepsake.ops.live import Project
from keepsake.ops.lookups import Looked

if TYPE_CHECKING:
    from keepsake.ops.embedding import Known

#: Pieces of evidence in all, of retrieval for each project, and in a list of changes.
MOST, HITS, CHANGES = 24, 12, 12
#: People who are named, and what shows it for each.
PEOPLE, PROOFS = 3, 2
#: Hits weaker than this share of the best one are noise in an answer, or do not tell who knows about a thing.
FLOOR, NEAR = 0.35, 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """What one project has to say."""

    looked: Looked
    hits: tuple[Evidence, ...]
    lines: tuple[Evidence, ...]
    #: With what the asked thing came or went, what that names, and whether contents show it.
    turn: Evidence | None = None
    mentioned: tuple[Evidence, ...] = ()
    is_shown: bool = False


async def found(ctx: Ctx, projects: Sequence[Project], inquiry: Inquiry) -> Findings:
    """Look through every project, and put together what answers."""
    vectors: Known = {}
    each = []
    for n, project in enumerate(projects):
        await ctx.report(n, len(projects) + 1, f"Looking through {project.bank.name}")
        each.append(await _in_project(ctx, project, inquiry, vectors))
    return _together(inquiry, each, ctx.now)


async def _in_project(ctx: Ctx, project: Project, inquiry: Inquiry, vectors: "Known") -> Found:
    question = retrieve.Question(inquiry.question, ctx.now, "mid", most=HITS, vectors=vectors)
    met = await retrieve.search_bank(ctx, project.bank.name, question)
    scores = {hit.memory.id: hit.score for hit in met}
    told = await ctx.read(lambda tx: lookups.described(tx, ctx, project, [int(id) for id in scores]))
    hits = tuple(replace(one, score=scores[one.memory]) for one in told)
    looked = await ctx.read(lambda tx: lookups.up(tx, ctx, project, inquiry))
    shown = await pickaxe.shown(ctx, project, inquiry, looked)
    turn = next(iter(shown or looked.turns), None)
    if shown and inquiry.kind in ("who", "changed"):
        looked = replace(looked, done=tuple(shown))
    mentioned = await ctx.read(lambda tx: lookups.mentioned(tx, ctx, project, turn)) if turn else []
    lines = await excerpts.read(ctx, project, inquiry, [*([turn] if turn else []), *looked.named, *hits], looked.paths)
    return Found(looked, hits, tuple(lines), turn, tuple(mentioned), bool(shown))


def _together(inquiry: Inquiry, each: Sequence[Found], now: int) -> Findings:
    hits = _fair([one.hits for one in each])
    window = next((one.looked.window for one in each if one.looked.window), None)
    last = next((one.looked.last for one in each if one.looked.last), None)
    # What is only like a file's name says nothing of who worked on that file.
    near = {} if inquiry.paths else {n: _deeds(one.hits, window) for n, one in enumerate(each)}
    done = _unique(deed for n, one in enumerate(each) for deed in one.looked.done or near.get(n, ()))
    is_cut = any(len(one.looked.done) >= lookups.READ for one in each)
    done = [one for one in done if not one.is_merge] or done
    known = tuple(evidence.people(done, now)) if inquiry.kind in ("who", "changed") else ()
    changes = _latest(done) if inquiry.kind == "changed" else []
    turn, is_shown = _turn(inquiry, each)
    lines = _fair([part.lines for part in each])
    order = [
        *([turn] if turn else []),
        *(one for part in each for one in (*part.mentioned, *part.looked.named)),
        *(_proofs(known) if inquiry.kind == "who" else ()),
        *changes[:CHANGES],
        *([last] if last else []),
        # Why something is so is told by whoever did it; how, by the lines themselves.
        *((*hits, *lines) if inquiry.kind == "why" else (*lines, *hits)),
    ]
    return Findings(
        evidence=tuple(_unique(order)[:MOST]),
        turn=turn,
        is_shown=is_shown,
        people=known,
        changes=tuple(changes[:CHANGES]),
        more=max(0, len(changes) - CHANGES),
        is_cut=is_cut,
        window=window,
        last=last,
        paths=tuple(path for part in each for path in part.looked.paths),
    )


def _fair(each: Sequence[Sequence[Evidence]]) -> list[Evidence]:
    """The best of all projects; each has a word in turn, so that a loud one does not drown the others."""
    low = FLOOR * max((one.score for found in each for one in found), default=0.0)
    each = [[one for one in found if one.score >= low] for found in each]
    longest = max((len(found) for found in each), default=0)
    turns = [[found[n] for found in each if n < len(found)] for n in range(longest)]
    return [one for turn in turns for one in sorted(turn, key=lambda one: -one.score)]


def _deeds(hits: Sequence[Evidence], window: Window | None) -> list[Evidence]:
    """What retrieval found that someone did, in the time that is asked about."""
    low = NEAR * max((hit.score for hit in hits), default=0.0)
    near = [hit for hit in hits if hit.kind in DEEDS and hit.date and hit.score >= low]
    return [hit for hit in near if window is None or window.start <= parse(hit.date) < window.end]


def _latest(done: Iterable[Evidence]) -> list[Evidence]:
    return sorted(_unique(done), key=lambda one: one.date, reverse=True)


def _turn(inquiry: Inquiry, each: Sequence[Found]) -> tuple[Evidence | None, bool]:
    """The first, or the last, of what the projects name; what contents show comes before what messages say."""
    if inquiry.kind not in ("introduced", "removed"):
        return None, False
    is_shown = any(one.is_shown and one.turn for one in each)
    turns = [one.turn for one in each if one.turn and one.is_shown == is_shown]
    if not turns:
        return None, False
    choose = min if inquiry.kind == "introduced" else max
    return choose(turns, key=lambda one: one.date), is_shown


def _proofs(known: Sequence[Person]) -> list[Evidence]:
    return [one for person in known[:PEOPLE] for one in person.proof[:PROOFS]]


def _unique(found: Iterable[Evidence]) -> list[Evidence]:
    """Each citation once; the sections of one pull request or issue are told together."""
    kept: dict[tuple[str, str, str, int, int], Evidence] = {}
    for one in found:
        known = kept.get(one.identity)
        if known is None:
            kept[one.identity] = one
        elif one.text not in known.text:
            kept[one.identity] = replace(known, text=f"{known.text}\n\n{one.text}")
    return list(kept.values())
