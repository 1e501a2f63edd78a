"""What is told of code, whoever tells it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from keepsake.core.models import Result

Source = Literal["github", "synced"]
EntryKind = Literal["file", "folder", "link", "module"]
#: Lines and characters of one file, characters of a README, entries of a folder and files of an overview, commits.
LINES, CHARACTERS, README, ENTRIES, FILES, COMMITS = 2_000, 100_000, 20_000, 500, 500, 15


class Match(Result):
    """Where it stands."""

    repo: str = Field(description="`owner/name`, or the bank that was synced from it.")
    path: str = Field(description="The file.")
    line: int | None = Field(None, description="The line, counted from 1, where that is known.")
    text: str = Field(description="The line, or the lines around it.")
    url: str | None = Field(None, description="Where it can be looked at.")
    revision: str | None = Field(None, description="The commit at which the line is this.")


class Found(Result):
    """What was found."""

    answered_by: Source = Field(description="github, or synced: the repositories that banks were synced from.")
    matches: list[Match] = Field(description="Best first.")
    total: int = Field(description="How many there are, as far as was looked.")
    is_cut: bool = Field(description="Whether there may be more than these.")
    note: str | None = Field(None, description="What was left out, and why.")


class FileSize(Result):
    """A file of a repository."""

    path: str = Field(description="From the top of the repository.")
    size: int = Field(description="Bytes.")


class Change(Result):
    """A commit."""

    sha: str = Field(description="Its full name.")
    subject: str = Field(description="The first line of what it says.")
    author: str = Field(description="Who made it.")
    date: str = Field(description="When, ISO 8601.")


class Overview(Result):
    """What a repository is."""

    answered_by: Source = Field(description="github, or synced: as a bank was synced from it.")
    repo: str = Field(description="`owner/name`, or the bank that was synced from it.")
    bank: str | None = Field(None, description="The bank that was synced from it.")
    description: str = Field("", description="What it is, in a sentence.")
    url: str | None = Field(None, description="Where it can be looked at.")
    branch: str = Field(description="The branch that this is about.")
    revision: str | None = Field(None, description="The commit that this is about.")
    updated_at: str | None = Field(None, description="When something was pushed, or it was synced, ISO 8601.")
    stars: int | None = Field(None, description="How many starred it.")
    forks: int | None = Field(None, description="How many forks it has.")
    open_issues: int | None = Field(None, description="Open issues and pull requests.")
    topics: list[str] = Field(default_factory=list, description="Its topics.")
    license: str | None = Field(None, description="Its license.")
    is_private: bool | None = Field(None, description="Whether only some may see it.")
    is_archived: bool | None = Field(None, description="Whether nobody works at it any more.")
    languages: dict[str, int] = Field(description="Bytes of each language, most first.")
    readme: str = Field(description="Its README, or the beginning of it.")
    readme_is_cut: bool = Field(False, description="Whether the README goes on.")
    files: list[FileSize] = Field(description="Its files by path; the first of them where there are many.")
    total_files: int = Field(description="How many files it has, as far as was told.")
    commits: list[Change] = Field(description="Its latest commits.")
    note: str | None = Field(None, description="What could not be told, and why.")


class Entry(Result):
    """What a folder holds."""

    name: str = Field(description="Its name in the folder.")
    kind: EntryKind = Field(description="file, folder, link or module.")
    size: int = Field(description="Bytes of a file; files of a folder, where they were counted.")


class Item(Result):
    """A file or folder that was read."""

    path: str = Field(description="From the top of the repository; empty for the top.")
    kind: Literal["file", "folder"] = Field(description="file or folder.")
    text: str | None = Field(None, description="The lines of a file; what looks like a secret is taken out.")
    start_line: int | None = Field(None, description="The first of these lines.")
    end_line: int | None = Field(None, description="The last of these lines.")
    total_lines: int | None = Field(None, description="How many lines the file has, as far as it was read.")
    entries: list[Entry] | None = Field(None, description="What a folder holds.")
    is_cut: bool = Field(description="Whether there is more; ask for the lines that follow.")


class Reading(Result):
    """What was read."""

    answered_by: Source = Field(description="github, or synced: as a bank was synced from it.")
    repo: str = Field(description="`owner/name`, or the bank that was synced from it.")
    ref: str = Field(description="The commit, branch or tag that this is of.")
    items: list[Item] = Field(description="In the order that was asked for.")


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for."""

    text: str
    #: Only below this folder; everywhere when empty.
    under: str
    limit: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read: paths at a ref, and which lines of files."""

    paths: Sequence[str]
    #: Empty for the synced, or the default one.
    ref: str
    start: int
    end: int | None


def shown_file(path: str, lines: Sequence[str], asked: Wanted, is_cut: bool = False) -> Item:
    """The lines of a file that are wanted, no more than one answer takes."""
    first = min(asked.start, max(1, len(lines)))
    wanted = lines[first - 1 : min(asked.end or len(lines), first + LINES - 1)]
    told, room = [], CHARACTERS
    for line in wanted:
        room -= len(line) + 1
        if room < 0:
            break
        told.append(line)
    if wanted and not told:
        # One endless line: its beginning says more than nothing.
        told = [wanted[0][:CHARACTERS]]
    last = first + len(told) - 1
    stop = min(asked.end or len(lines), len(lines))
    return Item(
        path=path,
        kind="file",
        text="\n".join(told),
        start_line=first,
        end_line=last,
        total_lines=len(lines),
        is_cut=is_cut or last < stop or (len(told) == 1 and told[0] != wanted[0]),
    )


def shown_folder(path: str, entries: Sequence[Entry]) -> Item:
    """What a folder holds, folders first."""
    ordered = sorted(entries, key=lambda one: (one.kind != "folder", one.name))
    return Item(path=path, kind="folder", entries=ordered[:ENTRIES], is_cut=len(ordered) > ENTRIES)
