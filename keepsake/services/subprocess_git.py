"""A git subprocess that does nothing but read: no hooks, no helpers, no prompts, no configuration but ours."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

from keepsake.core import secrets
from keepsake.core.errors import Unavailable

#: Seconds that a command may take, and bytes that one which is read whole may say.
PATIENCE_S, LARGEST = 600.0, 256 * 1024 * 1024
#: Bytes of one field of a stream; what is longer is cut.
LONGEST_FIELD = 1024 * 1024
_CHUNK = 256 * 1024
_TOLD = 4096
_NOWHERE = os.devnull

#: What a repository's own configuration must not say; given on the command line, where it counts most.
_CONFIG = {
    "safe.directory": "*",
    "core.bare": "true",
    "core.hooksPath": _NOWHERE,
    "core.fsmonitor": "false",
    "core.attributesFile": _NOWHERE,
    "core.excludesFile": _NOWHERE,
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "false",
    "core.pager": "cat",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "false",
    # Larger blobs are not compared line by line.
    "core.bigFileThreshold": "16m",
    "credential.helper": "",
    "diff.external": "",
    "diff.orderFile": _NOWHERE,
    "log.showSignature": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "mailmap.file": _NOWHERE,
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "filter.lfs.smudge": "",
    "filter.lfs.process": "",
    "filter.lfs.required": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "init.templateDir": "",
    "uploadpack.packObjectsHook": "",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "protocol.allow": "never",
    "protocol.https.allow": "always",
    "i18n.logOutputEncoding": "UTF-8",
}
#: What of our own environment a connection may need.
_PASSED = (
    *("PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"),
)
_USER = re.compile(r"(?<=://)[^/\s@]*@")


class Failed(Unavailable):
    """Git ended with an error; the message is the first thing it said, without secrets."""

    code = "unavailable"


@dataclass(frozen=True, slots=True)
class Command:
    """One call of git."""

    arguments: Sequence[str]
    #: The git folder; empty where there is none yet.
    directory: str = ""
    given: bytes = b""
    patience_s: float = PATIENCE_S
    #: Protocols that it may speak; none, unless it fetches.
    protocols: str = ""
    #: Configuration that must not be seen in a list of processes.
    private: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: The status by which it says that it found nothing, where that is no failure.
    nothing: int = 0

    @property
    def line(self) -> list[str]:
        """The words of the command."""
        config = [word for name, value in _CONFIG.items() for word in ("-c", f"{name}={value}")]
        place = [f"--git-dir={self.directory}"] if self.directory else []
        return ["git", "--no-pager", "--no-replace-objects", "--literal-pathspecs", *config, *place, *self.arguments]

    @property
    def environment(self) -> dict[str, str]:
        """All that git gets to see of ours."""
        made = {name: os.environ[name] for name in _PASSED if name in os.environ}
        made |= {
            "HOME": _NOWHERE,
            "XDG_CONFIG_HOME": _NOWHERE,
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": _NOWHERE,
            "GIT_CONFIG_GLOBAL": _NOWHERE,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_ALLOW_PROTOCOL": self.protocols,
            "GIT_CONFIG_COUNT": str(len(self.private)),
        }
        for n, (name, value) in enumerate(self.private.items()):
            made |= {f"GIT_CONFIG_KEY_{n}": name, f"GIT_CONFIG_VALUE_{n}": value}
        return made


@asynccontextmanager
async def started(command: Command) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run git as long as the block lasts; whoever leaves it early ends git and all that git started."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command.line,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=command.environment,
            cwd=command.directory or None,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise Unavailable("git is not installed, or not in the PATH. Install it to sync repositories.") from error
    except (OSError, ValueError) as error:
        raise Unavailable(f"git could not be started ({type(error).__name__}).") from error
    try:
        yield process
    finally:
        await ended(process)


async def ended(process: asyncio.subprocess.Process) -> None:
    """End a process that leads a session of its own, with all that it started."""
    _end(process)
    await _emptied(process)
    await process.wait()


async def _emptied(process: asyncio.subprocess.Process) -> None:
    """Read what a process that has ended left in its pipes: before that its end is not told."""
    if process.stdin is not None:
        process.stdin.close()
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(_CHUNK):
            continue


def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)


async def chunks(command: Command) -> AsyncGenerator[bytes]:
    """What git says, piece by piece; raises Failed when it ends badly, or lets us wait too long."""
    async with started(command) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        giving = asyncio.create_task(_give(process, command.given))
        hearing = asyncio.create_task(_heard(process.stderr))
        try:
            async for chunk in _read(process.stdout, command.patience_s):
                yield chunk
            told = await hearing
            if await process.wait() not in (0, command.nothing):
                raise Failed(plain(told))
        finally:
            giving.cancel()
            hearing.cancel()
            await asyncio.gather(giving, hearing, return_exceptions=True)


async def _read(stream: asyncio.StreamReader, patience_s: float) -> AsyncGenerator[bytes]:
    """Whatever comes; only the time that we wait for it counts."""
    while True:
        began = time.monotonic()
        try:
            chunk = await asyncio.wait_for(stream.read(_CHUNK), patience_s)
        except TimeoutError as error:
            raise Failed("git took too long") from error
        if not chunk:
            return
        patience_s = max(0.001, patience_s - (time.monotonic() - began))
        yield chunk


async def _give(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()


async def _heard(stream: asyncio.StreamReader) -> bytes:
    """The beginning of what git complains of; all of it is read, so that git never waits for us."""
    told = b""
    while chunk := await stream.read(_CHUNK):
        told = (told + chunk)[: 16 * _TOLD]
    return told


def plain(told: bytes) -> str:
    """The first complaint of git in one line, without anything secret in it."""
    lines = told.decode("utf-8", "replace").replace("\r", "\n").split("\n")
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), next(iter(lines), ""))
    said = _USER.sub("", said.partition(": ")[2] if said.startswith(("fatal:", "error:")) else said)
    shown = "".join(letter if letter.isprintable() else " " for letter in said)[:300].strip()
    return secrets.redacted(shown).text or "git failed"


async def whole(command: Command, limit: int = LARGEST) -> bytes:
    """All that git says."""
    told = bytearray()
    async with aclosing(chunks(command)) as heard:
        async for chunk in heard:
            told += chunk
            if len(told) > limit:
                raise Failed(f"git said more than {limit // 1024} KiB")
    return bytes(told)


async def fields(command: Command) -> AsyncGenerator[bytes]:
    """What git says between NULs, each cut where it is too long."""
    rest = b""
    async with aclosing(chunks(command)) as heard:
        async for chunk in heard:
            *ended, rest = (rest + chunk).split(b"\0")
            for one in ended:
                yield one[:LONGEST_FIELD]
            # The tail of an endless field is dropped while it comes.
            rest = rest[:LONGEST_FIELD]
    if rest:
        yield rest[:LONGEST_FIELD]
