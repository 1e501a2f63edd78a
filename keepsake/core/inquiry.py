"""What a question about a project asks for: its kind, and the names, paths and times in it, read by rules."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from keepsake.core import names, when
from keepsake.core.when import Window
from keepsake.core.words import STOP_WORDS

Kind = Literal["introduced", "removed", "who", "changed", "why", "other"]
#: Names, and plain words, of a question that are looked up.
MOST = 6

_ASKS = re.compile(
    r"\b(?:when|why|how long|how come|who|whom|(?:which|what) (?:commit|change|release|version|pull request|pr))\b",
    re.IGNORECASE,
)
_KNOWS = re.compile(r"\bwho(?:m|se)?\b.{0,30}\b(?:knows?|owns?|maintains?|ask|expert|responsible)\b", re.IGNORECASE)
_WHO = re.compile(
    r"\b(?:who|whom|whose|which (?:people|person|developers?|authors?|maintainers?|engineers?)|maintainers? of"
    r"|experts? (?:on|in|for))\b",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\b(?:introduc\w*|added|adding|created?|creation|began|begun|start(?:ed|s)?|first|appear(?:ed|s)?|landed"
    r"|implemented|originat\w*|come from|came (?:in|from)|since when|invented|adopted|switch(?:ed)? to|move[ds]? to)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:remov(?:e[sd]?|al|ing)|delet(?:e[sd]?|ing)|drop(?:s|ped|ping)?|gone|went away|disappear(?:ed)?|retired?"
    r"|ripped out|no longer)\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:what(?:['’]s| is| has| have| was| were)? (?:been )?(?:chang\w+|new|happen\w*|done|different|fixed|added"
    r"|released|merged)|changes (?:in|to|of|since|between)|(?:has|have|did) .{0,80}\b(?:chang\w+|evolv\w+)"
    r"|history of|changelog|which (?:changes|commits)|(?:latest|recent|last) (?:changes|commits|work))\b",
    re.IGNORECASE,
)
_WHY = re.compile(r"\b(?:why|how come|what for|reason(?:s|ing)? (?:for|behind|why)|rationale)\b", re.IGNORECASE)
_TICKET = re.compile(
    r"(?:\b(?P<kind>pull requests?|prs?|issues?|tickets?|bugs?)\s*#?|(?<![\w/&])#)(?P<number>\d{1,7})\b", re.IGNORECASE
)
_SHA = re.compile(r"(?<![\w./-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w/-])")
_VERSION = re.compile(r"(?<![\w.-])v?\d+\.\d+(?:\.\d+)*(?:[-.]?(?:a|b|rc|alpha|beta)\d*)?(?![\w-]|\.\d)")
_TICKED = re.compile(r"`([^`\n]{1,120})`")
_PATH = re.compile(r"(?<![\w:/])(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/])[\w@+-][\w.@+-]*\.[a-z]\w{0,5}(?![\w/])")
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*(?:\(\))?")
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w+)\(\)")
_WORD = re.compile(r"[^\W\d_][\w-]{2,}")
_ADDRESS = re.compile(r"\b\w+://\S+")
#: Words that ask or tell a time and name nothing.
_ASKING = frozenset(
    """add added adding adopt adopted appear appeared april ask august author authors autumn began begin begun behind
    between bring brought bug bugs change changed changes come commit commits create created day days december delete
    deleted developer developers disappear does done drop dropped evolve evolved expert experts february file files
    first fixed folder friday from function gone happen happened happening history implement implemented introduce
    introduced introduction issue issues january july june know known knows landed last latest like made maintain
    maintained maintainer maintainers maintains march may merged module monday month months needed new november october
    own owner owners owns people person please project pull quarter reason recent recently release released removal
    remove removed repo repository request requests responsible saturday say see september should since somebody
    someone spring start started summer sunday switch switched tell there thursday today touched tuesday until used
    using version versions wednesday week weeks winter work worked working works write written wrote year years
    yesterday""".split()
)

#: What files end with, and names in code do not.
_ENDINGS = frozenset(
    """bash c cc cfg conf cpp cs css csv go h hpp html ini ipynb java js json jsx kt lock md php proto py pyi rb rs rst
    scss sh sql svelte swift tf toml ts tsx txt vue xml yaml yml""".split()
)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question as the lookups understand it."""

    question: str
    kind: Kind
    #: Names in code, as they are written there.
    identifiers: tuple[str, ...] = ()
    #: Paths, and words that look like one.
    paths: tuple[str, ...] = ()
    #: Plain words that may name a part of the project.
    words: tuple[str, ...] = ()
    #: Keys of pull requests and issues, such as `pr/12`; a bare number may be either.
    tickets: tuple[str, ...] = ()
    #: Beginnings of the names of commits.
    commits: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """What it is about: the names and paths in it, else its words."""
        return (*self.identifiers, *self.paths) or self.words

    @property
    def is_why(self) -> bool:
        """Whether a reason is asked for."""
        return bool(_WHY.search(self.question))


def tells_end(text: str) -> bool:
    """Whether a text speaks of something that was taken out."""
    return bool(_ENDS.search(text))


def read(question: str, now: int) -> Inquiry:
    """Read a question; relative times count from `now`."""
    plain = _ADDRESS.sub(" ", question)
    versions = _unique(_VERSION.findall(plain))
    runs = [path.removeprefix("./") for path in _PATH.findall(plain) if not _VERSION.fullmatch(path)]
    paths = [run.rstrip("/.") for run in runs if _is_path(run.rstrip("."))]
    tickets = list(_TICKET.finditer(plain))
    identifiers = _unique(name for name in _identifiers(plain) if name not in paths)
    return Inquiry(
        question=question,
        kind=_kind(plain),
        identifiers=identifiers,
        paths=_unique(paths),
        words=_unique(word for word in _words(plain) if word not in identifiers),
        tickets=_unique(key for ticket in tickets for key in _keys(ticket)),
        commits=_unique(_SHA.findall(plain)),
        versions=versions,
        windows=tuple(when.windows(plain, now)),
    )


def _kind(question: str) -> Kind:
    if _KNOWS.search(question):
        return "who"
    if _CHANGES.search(question):
        return "changed"
    if _ASKS.search(question) and _ENDS.search(question):
        return "removed"
    if _ASKS.search(question) and _BEGINS.search(question):
        return "introduced"
    if _WHO.search(question):
        return "who"
    return "why" if _WHY.search(question) else "other"


def _identifiers(question: str) -> Iterator[str]:
    """Names in code: what stands between ticks, and what is written as only code is."""
    yield from (ticked.removesuffix("()") for ticked in _TICKED.findall(question) if _NAME.fullmatch(ticked))
    yield from (mention.name for mention in names.entities(question) if mention.kind == "code")
    # A function is often named with its brackets and nothing else that tells it.
    yield from _CALLED.findall(question)


def _is_path(word: str) -> bool:
    """Whether a run is a file or folder; `a.b` is a name in code unless it ends as files do."""
    return "/" in word or word.rpartition(".")[2].lower() in _ENDINGS


def _words(question: str) -> list[str]:
    bare = _SHA.sub(" ", _PATH.sub(" ", _TICKED.sub(" ", question)))
    return [word for word in _WORD.findall(bare) if word.lower() not in STOP_WORDS | _ASKING]


def _keys(ticket: re.Match[str]) -> list[str]:
    kind, number = (ticket["kind"] or "").lower(), int(ticket["number"])
    kinds = ("pr",) if kind.startswith("p") else ("issue",) if kind else ("pr", "issue")
    return [f"{name}/{number}" for name in kinds]


def _unique(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in found if one))[:MOST]
