"""Looks through a repository at a revision: the lines that hold a text, and the commit that a name means."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from keepsake.core.errors import BadInput, NotFound
from keepsake.services import subprocess_git as process
from keepsake.services.git import QUESTION_S, Git
from keepsake.services.subprocess_git import Command, Failed

#: Lines of one file that are told, and bytes of a line that are looked at.
EACH, LONGEST_LINE = 5, 64 * 1024
_SHA = re.compile(r"[0-9a-f]{7,64}")
_REF = re.compile(r"\w[\w./@+-]{0,199}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that holds what was looked for, counted from 1."""

    path: str
    number: int
    text: str


async def grep(here: Git, revision: str, text: str, under: str = "", most: int = 100) -> list[Line]:
    """The lines that hold a text, whatever its letters' case; a few of each file, as many in all as are wanted."""
    words = ("--full-name", "--no-color", "--threads=1", "--no-recurse-submodules", f"--max-count={EACH}")
    asked = ("grep", "-n", "-z", "-I", "-F", "-i", *words, "-e", text, revision, "--", *([under] if under else []))
    found: list[Line] = []
    command = Command(asked, here.directory, patience_s=QUESTION_S, nothing=1)
    async with aclosing(_rows(command)) as rows:
        async for row in rows:
            place, _, rest = row.partition(b"\0")
            number, _, told = rest.partition(b"\0")
            path = place.decode("utf-8", "backslashreplace").removeprefix(f"{revision}:")
            if number.isdigit():
                found.append(Line(path, int(number), told.decode("utf-8", "replace").rstrip("\r")))
            if len(found) >= most:
                break
    return found


async def _rows(command: Command) -> AsyncGenerator[bytes]:
    """What git says line by line; the rest of an endless line is dropped while it comes."""
    rest = b""
    async with aclosing(process.chunks(command)) as heard:
        async for chunk in heard:
            *ended, rest = (rest + chunk).split(b"\n")
            for one in ended:
                yield one[:LONGEST_LINE]
            rest = rest[:LONGEST_LINE]
    if rest:
        yield rest


async def resolved(here: Git, ref: str) -> str:
    """The commit that a branch, a tag or the beginning of a commit's name means; one that no branch has is unknown."""
    if not _REF.fullmatch(ref) or ".." in ref or "@{" in ref:
        raise BadInput(f"{ref!r} cannot be a branch, a tag or a commit.")
    commits = (await here.refs()).commits
    for form in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/remotes/origin/{ref}", f"refs/remotes/{ref}"):
        if form in commits:
            return commits[form]
    if _SHA.fullmatch(ref) and (sha := await _commit(here, ref)):
        return sha
    raise NotFound(f"The synced repository has no branch, tag or commit {ref!r}.")


async def _commit(here: Git, beginning: str) -> str:
    """The full name of a commit that a branch or a tag reaches; empty for any other."""
    try:
        told = await process.whole(
            Command(("rev-parse", "-q", "--verify", f"{beginning}^{{commit}}"), here.directory, patience_s=QUESTION_S)
        )
        sha = told.decode("ascii", "replace").strip()
        asked = ("for-each-ref", "--count=1", f"--contains={sha}", "--format=%(objectname)")
        return sha if await process.whole(Command(asked, here.directory, patience_s=QUESTION_S)) else ""
    except Failed:
        return ""
