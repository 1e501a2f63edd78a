"""Copies of repositories that are elsewhere: bare, fetched over https only, never larger than allowed."""

import asyncio
import base64
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from keepsake.core.errors import BadInput, KeepsakeError, NotFound, Unavailable
from keepsake.services import subprocess_git as process
from keepsake.services.subprocess_git import Command, Failed

#: Seconds that fetching may take in all, and asking what there is.
FETCH_S, ASK_S = 3_600.0, 120.0
#: How often the size of a copy that grows is looked at.
LOOK_S = 1.0
UNREAD = "The repository cannot be read"
_REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def place(data_dir: Path, org: int, bank: int) -> Path:
    """Where the copy of a bank's repository is."""
    return data_dir / "repos" / f"{org}-{bank}.git"


def drop(data_dir: Path, org: int, bank: int) -> None:
    """Remove the copy of a bank's repository."""
    shutil.rmtree(place(data_dir, org, bank), ignore_errors=True)


def authorised(url: str, token: str) -> dict[str, str]:
    """The configuration by which a token goes to the host of an address, and to no other."""
    if not token:
        return {}
    parts = urlsplit(url)
    proof = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {f"http.{parts.scheme}://{parts.netloc}/.extraHeader": f"Authorization: Basic {proof}"}


async def fetch(url: str, into: Path, most: int, private: Mapping[str, str] | None = None) -> bool:
    """Bring a copy up to date; False when nothing had changed. `most` is how many bytes it may take."""
    private = private or {}
    there, branch = await _offered(url, private)
    if not (into / "HEAD").exists():
        await process.whole(Command(("init", "--bare", "--quiet", str(into)), patience_s=ASK_S))
    if branch:
        await process.whole(Command(("symbolic-ref", "HEAD", branch), str(into)))
    if there == await _held(into):
        return False
    for left in (into / "objects" / "pack").glob("tmp_*"):
        left.unlink(missing_ok=True)
    arguments = (
        *("fetch", "--quiet", "--prune", "--force", "--no-tags", "--no-auto-maintenance", "--no-write-fetch-head"),
        *("--no-recurse-submodules", "--update-head-ok", "--end-of-options", url, *_REFSPECS),
    )
    await _within(into, most, Command(arguments, str(into), b"", FETCH_S, "https", private))
    return True


async def _offered(url: str, private: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The branches and tags of a repository elsewhere, and which of them is its own choice."""
    command = Command(("ls-remote", "--symref", "--end-of-options", url), "", b"", ASK_S, "https", private)
    try:
        told = await process.whole(command)
    except Failed as error:
        raise _meant(str(error)) from error
    refs, branch = {}, ""
    for line in told.decode("utf-8", "replace").splitlines():
        what, _, name = line.partition("\t")
        if what.startswith("ref: ") and name == "HEAD":
            branch = what.removeprefix("ref: ")
        elif name.startswith(("refs/heads/", "refs/tags/")) and not name.endswith("^{}"):
            refs[name] = what
    return refs, branch if branch.startswith("refs/heads/") else ""


def _meant(said: str) -> KeepsakeError:
    """What git's complaint means to someone who did not call git; what no second try mends is told apart."""
    if any(words in said for words in ("could not read Username", "Authentication failed", "error: 40", "not found")):
        return NotFound(f"{UNREAD}: it does not exist, or is private and needs a token (KEEPSAKE_GITHUB_TOKEN).")
    if "from redirection" in said or "returned error: 30" in said:
        return BadInput(f"{UNREAD}: its host answers with a redirect. Give the address that it leads to.")
    return Unavailable(f"{UNREAD}: {said.rstrip('.')}.")


async def _held(into: Path) -> dict[str, str]:
    told = await process.whole(Command(("for-each-ref", "--format=%(objectname) %(refname)"), str(into)))
    rows = [line.partition(" ") for line in told.decode("utf-8", "replace").splitlines()]
    return {name: sha for sha, _, name in rows}


async def _within(into: Path, most: int, command: Command) -> None:
    """Run a command that fills a folder, and stop it when that grows too large."""
    work = asyncio.ensure_future(process.whole(command))
    try:
        while not work.done():
            await asyncio.wait((work,), timeout=LOOK_S)
            if await asyncio.to_thread(_size, into) > most:
                raise BadInput(
                    f"The repository takes more than {most // 1_000_000} MB. Raise KEEPSAKE_SYNC_REPO_LIMIT to read it."
                )
        await work
    except Failed as error:
        raise _meant(str(error)) from error
    finally:
        work.cancel()
        await asyncio.wait((work,))


def _size(folder: Path) -> int:
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
    return total
