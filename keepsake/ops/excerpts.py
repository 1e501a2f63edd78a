"""Lines of a project's files that speak of what is asked: of the files that it names or that the best hits changed."""

import re
from collections.abc import Iterable, Sequence

from keepsake.context import Ctx
from keepsake.core import passages
from keepsake.core.evidence import DOCUMENTS, Evidence
from keepsake.core.inquiry import Inquiry
from keepsake.core.words import lexemes
from keepsake.ops import live, lookups
from keepsake.ops.live import Project

#: Files that are read from a repository on this machine, and from one that is asked over the network.
NEAR, FAR = 8, 3
#: Windows in all, and of one file.
MOST, EACH = 4, 2
#: Files that a commit may change and still tell something of each.
WIDE = 40
#: What the lines of tests count beside those that they test.
TESTED = 0.4
_TESTS = re.compile(r"(?i)(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)|\btests?\b")
#: The share of what is asked of which lines must hold more, where they do not hold a name as it is written.
COVERED = 0.5
#: The share of the best window's worth below which another is noise.
FLOOR = 0.5


async def read(
    ctx: Ctx, project: Project, inquiry: Inquiry, hits: Sequence[Evidence], named: Sequence[str]
) -> list[Evidence]:
    """The windows of lines that hold most of what is asked, best first."""
    if not project.head:
        return []
    most = NEAR if live.git_of(ctx, project) else FAR
    found: list[tuple[float, Evidence]] = []
    for path in _candidates(inquiry, hits, named)[:most]:
        try:
            whole = await live.read(ctx, project, path, 1, live.WHOLE)
        except live.Unreadable:
            continue
        spans = passages.windows(whole.lines, inquiry.identifiers, inquiry.words, EACH)
        spans = [span for span in spans if _speaks(inquiry, span) or path in named]
        if not spans and path in named:
            spans = [passages.Lines(1, min(whole.total, passages.HEIGHT), 1.0)]
        worth = _weight(inquiry, path)
        found += [(worth * span.worth, evidence(ctx, project, whole, span.start, span.end)) for span in spans]
    best = max((worth for worth, _ in found), default=0.0)
    kept = [(worth, one) for worth, one in found if worth >= FLOOR * best]
    return [one for _, one in sorted(kept, key=lambda pair: -pair[0])[:MOST]]


def _speaks(inquiry: Inquiry, span: passages.Lines) -> bool:
    return span.covers > COVERED or (bool(inquiry.identifiers) and span.worth >= passages.WRITTEN)


def _weight(inquiry: Inquiry, path: str) -> float:
    """How much the lines of a file count: more where its name speaks of it, less where it only tests it."""
    wanted, told = set(lexemes(" ".join((*inquiry.identifiers, *inquiry.words)))), set(lexemes(path))
    is_beside = bool(_TESTS.search(path)) and not _TESTS.search(inquiry.question)
    return (1 + len(wanted & told) / (len(wanted) or 1)) * (TESTED if is_beside else 1.0)


def evidence(ctx: Ctx, project: Project, whole: live.Read, start: int, end: int) -> Evidence:
    """Lines of a file as evidence."""
    first = whole.start
    return lookups.addressed(
        lookups.website(ctx, project),
        Evidence(
            bank=project.bank.name,
            kind="file",
            key=whole.path,
            title=whole.path,
            text="\n".join(whole.lines[start - first : end - first + 1]),
            path=whole.path,
            start=start,
            end=end,
            revision=whole.revision,
            blob=whole.blob,
        ),
    )


def _candidates(inquiry: Inquiry, hits: Sequence[Evidence], named: Sequence[str]) -> list[str]:
    """Paths, the likeliest first: those that are named, then what the best hits changed or stand in."""
    wanted = set(lexemes(" ".join((*inquiry.identifiers, *inquiry.words))))
    # A folder is no file to be read; of many files those count that the hits speak of as well.
    first = list(named) if len(named) <= NEAR else []
    told: dict[str, float] = {}
    for rank, hit in enumerate(hits):
        for path in _paths(hit):
            share = len(wanted.intersection(lexemes(path))) / (len(wanted) or 1)
            is_named = len(named) > NEAR and path in named
            told[path] = told.get(path, 0.0) + (1 + 2 * share + 2 * is_named) / (2 + rank)
    ranked = sorted(told, key=lambda path: (-told[path], path))
    return list(dict.fromkeys((*first, *ranked)))


def _paths(hit: Evidence) -> Iterable[str]:
    if hit.kind in DOCUMENTS:
        return (hit.path,)
    return hit.files if len(hit.files) <= WIDE else ()
