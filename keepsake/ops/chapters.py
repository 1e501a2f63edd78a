"""The chapters of a project's profile: what each is gathered from, and how rules tell it."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from keepsake.context import Ctx
from keepsake.core import profile, prose, words
from keepsake.core.profile import Told
from keepsake.core.prose import Reading
from keepsake.ops import modelling, retrieve, views
from keepsake.ops.modelling import SEARCHED, Ground, Way
from keepsake.store import banks, conflicts, memories, repos
from keepsake.store import profile as pieces
from keepsake.store.engine import Tx
from keepsake.store.mental_models import Model, Sentence
from keepsake.store.profile import Piece

#: Pieces of documents that a chapter reads, what a search may add, and sentences taken from one piece.
READ, FOUND, EACH = 16, 8, 3
#: Sentences from the beginning of the README, and the sections that they are looked for in.
OPENING, SECTIONS = 6, 3
#: Open issues and pull requests that are named, and memories at odds.
OPEN, AT_ODDS = 15, 5
DOCUMENTS = ("note", "readme", "file")
_BUILT = re.compile(
    r"architect|design|structure|overview|internals|layout|components?\b|modules?\b|how it works|lifecycle", re.I
)
_RULES = re.compile(
    r"contribut|convention|guidelines?\b|hacking|style ?guide|cod(?:e|ing) (?:style|standard)|commit message"
    r"|pull request|agents\.md|claude\.md",
    re.I,
)
_OPEN = re.compile(r"\bto-?do|roadmap|open question|known (?:issue|problem|limitation)|limitations?\b|backlog", re.I)
#: What tells of the past, or of the law, tells nothing of how things are done here.
_OTHER = re.compile(r"(?:^|/)(?:changes|changelog|history|news|licen[cs]e|copying|code_of_conduct)[^/]*$", re.I)
UNSETTLED = "TODO, FIXME, TBD, open question, undecided, known issue, limitation, not yet supported or implemented"


def way(model: Model) -> Way:
    """How a model is made: a chapter that nobody has given another question in its own way, any other by searching."""
    found = next((chapter for chapter in profile.CHAPTERS if chapter.id == model.id), None)
    return WAYS[found.id] if found and found.query == model.source_query else SEARCHED


def _sentences(told: Iterable[Told]) -> list[Sentence]:
    return [Sentence(one.text, one.rests_on, one.section) for one in told if one.rests_on]


async def _ground(ctx: Ctx, bank: banks.Bank, told: Sequence[Told], more: Sequence[retrieve.Hit]) -> Ground:
    """The memories that sentences rest on, and others that a language model may use; nothing is said twice."""
    once: dict[str, Told] = {}
    for one in told:
        once.setdefault(one.text, one)
    chosen = list(dict.fromkeys(id for one in once.values() for id in one.rests_on))

    async def body(tx: Tx) -> list[retrieve.Hit]:
        rows = await memories.fetched(tx, bank.org, bank.id, chosen)
        shown = await views.described(tx, bank, [rows[id] for id in chosen if id in rows])
        return [retrieve.Hit(memory, 0.0, {}) for memory in shown]

    hits = await ctx.read(body)
    known = {hit.memory.id for hit in hits}
    return Ground([*hits, *(hit for hit in more if hit.memory.id not in known)], _sentences(once.values()))


async def _found(ctx: Ctx, bank: banks.Bank, query: str) -> list[retrieve.Hit]:
    """What documents and notes answer."""
    question = retrieve.Question(query, ctx.now, "high", types=("world",), most=FOUND)
    hits = await retrieve.search_bank(ctx, bank.name, question)
    return [hit for hit in hits if hit.memory.kind != "insight" and not _OTHER.search(_path(hit))]


def _path(hit: retrieve.Hit) -> str:
    return str(hit.memory.metadata.get("path", ""))


async def _pieces(ctx: Ctx, bank: banks.Bank, subtypes: Sequence[str]) -> list[Piece]:
    return await ctx.read(lambda tx: pieces.pieces(tx, bank.org, bank.id, subtypes, ctx.now))


async def _texts(ctx: Ctx, bank: banks.Bank, ids: Sequence[int]) -> dict[int, str]:
    found = await ctx.read(lambda tx: memories.fetched(tx, bank.org, bank.id, ids))
    return {id: memory.text for id, memory in found.items()}


def _first(piece: Piece) -> tuple[int, int, str, int]:
    """Notes first, then what lies higher, each document in its order."""
    return DOCUMENTS.index(piece.subtype), piece.path.count("/"), piece.path, piece.line


async def _documents(ctx: Ctx, bank: banks.Bank, about: re.Pattern[str], reading: Reading) -> list[Told]:
    """What the documents that are about something say of it."""
    every = [one for one in await _pieces(ctx, bank, DOCUMENTS) if not _OTHER.search(one.path)]
    named = {one.path for one in every if about.search(PurePosixPath(one.path).name)}
    meant = [one for one in every if one.path in named or about.search(one.title)]
    return await _said(ctx, bank, sorted(meant, key=lambda one: (one.path not in named, *_first(one))), reading)


async def _notes(ctx: Ctx, bank: banks.Bank, reading: Reading) -> list[Told]:
    """What the notes for agents say, whatever they are called."""
    return await _said(ctx, bank, sorted(await _pieces(ctx, bank, ["note"]), key=_first), reading)


async def _said(ctx: Ctx, bank: banks.Bank, chosen: Sequence[Piece], reading: Reading) -> list[Told]:
    told = await _texts(ctx, bank, [one.id for one in chosen[:READ]])
    return [
        Told(sentence, (one.id,), one.path)
        for one in chosen[:READ]
        if one.id in told
        for sentence in reading(told[one.id])[:EACH]
    ]


def _read(hits: Sequence[retrieve.Hit], reading: Reading) -> list[Told]:
    """What is read in the memories that a search brought."""
    return [
        Told(sentence, (int(hit.memory.id),), _path(hit))
        for hit in hits
        for sentence in reading(hit.memory.text)[:EACH]
    ]


async def purpose(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """What the README begins with; where there is none, what the documents answer."""
    found = await _found(ctx, bank, model.source_query)
    sections = sorted(await _pieces(ctx, bank, ["readme"]), key=_first)
    sections = [one for one in sections if one.path == sections[0].path][:SECTIONS]
    told = await _texts(ctx, bank, [one.id for one in sections])
    opening = [Told(one, (part.id,)) for part in sections if part.id in told for one in prose.statements(told[part.id])]
    return await _ground(ctx, bank, (opening or _read(found, prose.statements))[:OPENING], found)


async def architecture(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """What the folders hold, and what documents on the design say."""
    tree = tuple(one.id for one in await _pieces(ctx, bank, ["tree"]))[: profile.EVIDENCE]
    files = await ctx.read(lambda tx: repos.files(tx, bank.org, bank.id))
    folders = profile.layout({path: one.size for path, one in files.items() if one.kind == "file"}, tree)
    found = await _found(ctx, bank, model.source_query)
    told = await _documents(ctx, bank, _BUILT, prose.statements) or _read(found, prose.statements)
    return await _ground(ctx, bank, [*folders, *told], found)


async def conventions(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """What documents for contributors prescribe, notes for agents too, and what the commit messages have in common."""
    found = await _found(ctx, bank, model.source_query)
    told = [
        *await _notes(ctx, bank, prose.prescribing),
        *await _documents(ctx, bank, _RULES, prose.prescribing),
    ] or _read(found, prose.prescribing)
    return await _ground(ctx, bank, [*profile.habits(await _commits(ctx, bank)), *told], found)


async def _commits(ctx: Ctx, bank: banks.Bank) -> list[profile.Commit]:
    return await ctx.read(lambda tx: pieces.commits(tx, bank.org, bank.id, ctx.now))


async def _present(ctx: Ctx, bank: banks.Bank, commits: Sequence[profile.Commit]) -> set[str]:
    """The files that are there; where no revision was read, those that were ever changed."""
    files = await ctx.read(lambda tx: repos.files(tx, bank.org, bank.id))
    return set(files) or {path for commit in commits for path in commit.paths}


async def hot_spots(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """Which files and folders change most."""
    commits = await _commits(ctx, bank)
    told = profile.hot_spots(commits, await _present(ctx, bank, commits))
    return Ground((), _sentences(told))


async def owners(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """Who wrote what."""
    commits = await _commits(ctx, bank)
    told = profile.owners(commits, await _present(ctx, bank, commits))
    return Ground((), _sentences(told))


async def open_questions(ctx: Ctx, bank: banks.Bank, model: Model) -> Ground:
    """Open issues and pull requests, what documents call unsettled, and memories at odds."""
    found = await _found(ctx, bank, UNSETTLED)
    told = [
        *_still_open(await _pieces(ctx, bank, ["issue", "pull"])),
        *await _notes(ctx, bank, prose.unsettled),
        *await _documents(ctx, bank, _OPEN, prose.sentences),
        *_read(found, prose.unsettled),
        *await _at_odds(ctx, bank),
    ]
    return await _ground(ctx, bank, told, found)


def _still_open(found: Sequence[Piece]) -> list[Told]:
    """The issues and pull requests that are open, newest first, each once however many pieces it has."""
    items = {(one.subtype, one.metadata.get("number")): one for one in reversed(found) if _is_open(one)}
    newest = sorted(items.values(), key=lambda one: (one.subtype, -one.at))
    named = {"issue": ("Issue", "Issues"), "pull": ("Pull request", "Pull requests")}
    return [
        Told(
            f"{named[one.subtype][0]} #{one.metadata['number']} is open since {profile.day(one.at)}:"
            f" {words.line(one.title, 200)}",
            (one.id,),
            named[one.subtype][1],
        )
        for one in newest[:OPEN]
    ]


def _is_open(piece: Piece) -> bool:
    return piece.metadata.get("state") == "open" and "number" in piece.metadata


async def _at_odds(ctx: Ctx, bank: banks.Bank) -> list[Told]:
    async def body(tx: Tx) -> list[Told]:
        found = await conflicts.listed(tx, bank.org, bank.id, AT_ODDS)
        pairs = [id for one in found for id in (one.older, one.newer)]
        rows = await memories.fetched(tx, bank.org, bank.id, pairs)
        return [
            Told(
                f"Not settled: “{words.line(rows[one.older].text, 150)}” or “{words.line(rows[one.newer].text, 150)}”",
                (one.older, one.newer),
                "At odds",
            )
            for one in found
            if one.older in rows and one.newer in rows
        ]

    return await ctx.read(body)


WAYS: dict[str, modelling.Way] = {
    profile.PURPOSE.id: Way(purpose),
    profile.ARCHITECTURE.id: Way(architecture),
    profile.CONVENTIONS.id: Way(conventions),
    profile.HOT_SPOTS.id: Way(hot_spots, is_counted=True),
    profile.OWNERS.id: Way(owners, is_counted=True),
    profile.OPEN_QUESTIONS.id: Way(open_questions),
}
