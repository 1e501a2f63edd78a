"""A project's profile: its chapters, and what is counted for them from commits and files."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from keepsake.core import clock, words


@dataclass(frozen=True, slots=True)
class Chapter:
    """One of the mental models that make up a profile."""

    id: str
    name: str
    query: str
    max_tokens: int = 1_024


PURPOSE = Chapter("project-purpose", "Purpose", "What is this project for, what does it do, and for whom?")
ARCHITECTURE = Chapter(
    "project-architecture",
    "Architecture",
    "How is this project built: its parts, their structure, and how they work together?",
    2_048,
)
CONVENTIONS = Chapter(
    "project-conventions",
    "Conventions",
    "Which conventions hold in this project for code, style, tests, commits and reviews?",
    2_048,
)
HOT_SPOTS = Chapter("project-hot-spots", "Hot spots", "Which files and folders of this project change most?")
OWNERS = Chapter("project-owners", "Owners", "Who wrote which part of this project, and when last?")
OPEN_QUESTIONS = Chapter(
    "project-open-questions",
    "Open questions",
    "What is open in this project: issues, things to do, limitations, what is not decided yet?",
    2_048,
)
CHAPTERS = (PURPOSE, ARCHITECTURE, CONVENTIONS, HOT_SPOTS, OWNERS, OPEN_QUESTIONS)
TAG = "profile"

#: How far back from the newest commit is lately.
LATELY = 90 * clock.DAY
#: Files, folders and people that a chapter names; commits that a sentence rests on.
FILES, FOLDERS, PEOPLE, EVIDENCE = 6, 4, 3, 3
PLACES = 10
#: A folder below which nearly all of its changes are is told by that one; who made less is not told.
NEARLY, LITTLE = 0.9, 0.05
#: The newest commits whose messages show the habits here, and how many must share one.
NEWEST, HABIT = 200, 0.6
_TYPED = re.compile(r"([a-z]{2,12})(?:\([^)]*\))?!?: ")
_REFERS = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence and the memories it rests on."""

    text: str
    rests_on: tuple[int, ...]
    section: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as its memory tells it."""

    id: int
    at: int
    author: str
    title: str
    paths: tuple[str, ...] = ()


def day(at: int) -> str:
    """The date of a moment."""
    return clock.iso(at)[:10]


def person(name: str) -> str:
    """Someone's name, never their address."""
    return name.partition("@")[0].strip(" <") or "someone"


def is_machine(name: str) -> bool:
    """Whether an author is a program."""
    return name.endswith("[bot]")


def by_file(commits: Iterable[Commit], present: Collection[str]) -> dict[str, list[Commit]]:
    """The commits of every file that is still there."""
    found: dict[str, list[Commit]] = {}
    for commit in commits:
        for path in commit.paths:
            if path in present:
                found.setdefault(path, []).append(commit)
    return found


def by_folder(commits: Iterable[Commit], present: Collection[str]) -> dict[str, list[Commit]]:
    """The commits of the upper two levels of folders; one that is told by the folder within it is left out."""
    found: dict[str, list[Commit]] = {}
    for commit in commits:
        above = {folder for path in commit.paths if path in present for folder in folders(path)}
        for folder in sorted(above):
            found.setdefault(folder, []).append(commit)
    within = {
        str(PurePosixPath(folder).parent)
        for folder, held in found.items()
        if "/" in folder and len(held) >= NEARLY * len(found[str(PurePosixPath(folder).parent)])
    }
    return {folder: held for folder, held in found.items() if folder not in within}


def folders(path: str) -> list[str]:
    """The upper two folders that a file is in."""
    parts = PurePosixPath(path).parts[:-1]
    return ["/".join(parts[:n]) for n in range(1, min(2, len(parts)) + 1)]


def most(found: Mapping[str, Sequence[Commit]], number: int) -> list[tuple[str, Sequence[Commit]]]:
    """Where most commits are, the most first."""
    return sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))[:number]


def newest(commits: Iterable[Commit]) -> tuple[int, ...]:
    """The newest of some commits, as evidence."""
    return tuple(one.id for one in sorted(commits, key=lambda one: (-one.at, -one.id))[:EVIDENCE])


def lately(commits: Sequence[Commit]) -> list[Commit]:
    """The commits shortly before the newest."""
    last = max((commit.at for commit in commits), default=0)
    return [commit for commit in commits if commit.at > last - LATELY]


def hot_spots(commits: Sequence[Commit], present: Collection[str]) -> list[Told]:
    """The files and folders that change most, lately and in all."""
    told: list[Told] = []
    recent = lately(commits)
    if recent:
        until = day(max(commit.at for commit in recent))
        told += _spots(recent, present, f"In the {LATELY // clock.DAY} days up to {until}")
    return told + _spots(commits, present, "Overall") if len(commits) > len(recent) else told


def _spots(commits: Sequence[Commit], present: Collection[str], section: str) -> list[Told]:
    places = [*most(by_file(commits, present), FILES), *most(by_folder(commits, present), FOLDERS)]
    return [Told(_spot(place, held), newest(held), section) for place, held in places]


def _spot(place: str, held: Sequence[Commit]) -> str:
    last = max(held, key=lambda one: (one.at, one.id))
    times = f"{len(held):,} commits" if len(held) > 1 else "1 commit"
    return f"{place} was changed by {times}, last on {day(last.at)}: {words.line(last.title, 100)}"


def owners(commits: Sequence[Commit], present: Collection[str]) -> list[Told]:
    """Who made most commits in which folder, and when last; who is at work lately."""
    people = [commit for commit in commits if not is_machine(commit.author)]
    recent = lately(people)
    told = [
        Told(f"{folder}: {_people(held)}", _theirs(held), "By folder")
        for folder, held in most(by_folder(people, present), PLACES)
    ]
    if people:
        told.insert(0, Told(f"Overall: {_people(people)}", _theirs(people)))
    if 0 < len(recent) < len(people):
        since = day(max(commit.at for commit in recent) - LATELY)
        told.insert(1, Told(f"Since {since}: {_people(recent)}", _theirs(recent)))
    return told


def leading(held: Sequence[Commit]) -> list[tuple[str, list[Commit]]]:
    """Those who made most of some commits, with theirs."""
    theirs: dict[str, list[Commit]] = {}
    for commit in held:
        theirs.setdefault(person(commit.author), []).append(commit)
    ranked = sorted(theirs.items(), key=lambda one: (-len(one[1]), one[0]))[:PEOPLE]
    return [one for n, one in enumerate(ranked) if n == 0 or len(one[1]) >= LITTLE * len(held)]


def _people(held: Sequence[Commit]) -> str:
    first, *others = leading(held)
    more = [f"{name} {len(theirs):,} (last on {_last(theirs)})" for name, theirs in others]
    begin = f"{first[0]} made {len(first[1]):,} of {len(held):,} commits (last on {_last(first[1])})"
    return ", ".join([begin, *more]) + "."


def _last(held: Sequence[Commit]) -> str:
    return day(max(commit.at for commit in held))


def _theirs(held: Sequence[Commit]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(newest(theirs)[0] for _, theirs in leading(held)))


def habits(commits: Sequence[Commit]) -> list[Told]:
    """What the newest commit messages have in common."""
    told: list[Told] = []
    last = sorted(commits, key=lambda one: (-one.at, -one.id))[:NEWEST]
    typed = [commit for commit in last if _TYPED.match(commit.title)]
    if last and len(typed) >= HABIT * len(last):
        kinds = Counter(match[1] for one in typed if (match := _TYPED.match(one.title)))
        named = ", ".join(f"{kind}:" for kind, _ in kinds.most_common(4))
        told.append(Told(f"{_share(typed, last)} begin with a type such as {named}", newest(typed)))
    refers = [commit for commit in last if _REFERS.search(commit.title)]
    if last and len(refers) >= HABIT * len(last):
        told.append(Told(f"{_share(refers, last)} name an issue or pull request by its number.", newest(refers)))
    if len(last) >= 10:
        longest = sorted(len(commit.title) for commit in last)[int(len(last) * 0.9) - 1]
        told.append(Told(f"Nine of ten subjects of the newest commits have at most {longest} letters.", newest(last)))
    return [Told(one.text, one.rests_on, "Commit messages") for one in told]


def _share(some: Sequence[Commit], all: Sequence[Commit]) -> str:
    return f"{len(some)} of the newest {len(all)} commit messages"


def layout(files: Mapping[str, int], tree: tuple[int, ...]) -> list[Told]:
    """What the folders hold, as the file tree tells."""
    if not files:
        return []
    kinds = Counter(PurePosixPath(path).suffix or "no suffix" for path in files)
    common = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.most_common(4))
    told = [f"It has {len(files):,} files, {_size(sum(files.values()))} in all, most of them {common}."]
    inside: dict[str, list[str]] = {}
    for path in files:
        inside.setdefault(PurePosixPath(path).parts[0] if "/" in path else "", []).append(path)
    for folder, held in sorted(inside.items(), key=lambda one: (-len(one[1]), one[0]))[:PLACES]:
        if folder:
            below = Counter(two[1] for path in held if len(two := folders(path)) > 1)
            named = ", ".join(name for name, _ in below.most_common(5))
            size = _size(sum(files[path] for path in held))
            count = f"{len(held):,} files" if len(held) > 1 else "1 file"
            told.append(f"{folder} holds {count}, {size}{', in ' + named if named else ''}.")
    return [Told(one, tree, "Folders") for one in told]


def _size(octets: int) -> str:
    return f"{octets / 1_000_000:.1f} MB" if octets >= 1_000_000 else f"{-(-octets // 1_000):,} kB"
