"""Programs that an operator enrolled: run with little to see and less to touch, and ended with all they started."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from keepsake.core.enrolment import Sandbox
from keepsake.core.errors import Unavailable
from keepsake.services import seccomp

#: What a program finds where it looks for others, and nothing else of ours.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: The programs that make a sandbox.
NEEDED = ("bwrap", "prlimit")
#: By this a program knows which run it is, and we know what belongs to one.
MARK = "EXEC_INVOCATION"
#: Bytes that a program may print before it is ended as one that would never stop; whatever is kept of them.
FLOOD = 64 * 1024 * 1024
#: Bytes of the end of a long output that are kept besides its beginning.
TAIL = 4_096
TMP, LARGEST_FILE, OPEN_FILES = 256 * 1024 * 1024, 1024 * 1024 * 1024, 1_024
#: Users that belong to nobody, one for each run at a time: limits are counted by user.
UIDS = range(61_000, 61_100)
UNSTARTED = "It could not be started in its sandbox: "
_CHUNK = 64 * 1024
#: Seconds for what was printed last once a program has ended.
_LAST_WORDS_S = 2.0
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "pki", "ssl")
_ETC_NETWORK = ("hosts", "nsswitch.conf", "protocols", "resolv.conf", "services")
Heard = Callable[[bytes], Awaitable[None]]


class Refused(Unavailable):
    """A program cannot be run here; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and within what."""

    argv: Sequence[str]
    mark: str
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: str | None = None
    timeout_s: float = 300
    output_limit: int = 65_536
    sandbox: Sandbox = field(default_factory=Sandbox)
    #: Folders that no program gets to see, whatever its enrolment says.
    hidden: Sequence[Path] = ()

    @property
    def loose(self) -> str:
        """The mark of what may outlive the program itself; nothing does in a sandbox."""
        return self.mark if self.sandbox.kind == "none" else ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended."""

    state: Literal["succeeded", "failed", "timed_out", "cancelled"]
    exit_code: int | None = None
    reason: str = ""


def missing() -> list[str]:
    """What this machine lacks to make a sandbox."""
    return [name for name in NEEDED if shutil.which(name, path=PATH) is None]


async def why_not() -> str:
    """Why no sandbox can be made here with what there is; empty where one was made."""

    async def heard(_: bytes) -> None:
        """It says nothing."""

    ended = await run(Program(["true"], "probe", timeout_s=10), heard, asyncio.Event())
    return "" if ended.state == "succeeded" else ended.reason.removeprefix(UNSTARTED).rstrip(".")


async def run(program: Program, heard: Heard, cancelled: asyncio.Event) -> Ended:
    """Run a program to its end, its time or its cancellation; tells what it prints while it does."""
    with _folder(program) as folder, _user(program.sandbox) as uid, _filter(program) as calls:
        command = _command(program, uid, calls)
        async with _started(program, command, Ours(folder, uid, calls)) as (process, printed):
            listening = asyncio.create_task(_listen(printed, program.output_limit, heard))
            why = await _awaited(process, listening, program.timeout_s, cancelled)
            _end(process, program.loose)
            code = await process.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(listening), _LAST_WORDS_S)
            listening.cancel()
            said = await asyncio.gather(listening, return_exceptions=True)
    began = said[0].begun if isinstance(said[0], Said) else b""
    return why or _ended(code, began)


def _ended(code: int, began: bytes) -> Ended:
    if code == 0:
        return Ended("succeeded", 0)
    if began.startswith(b"bwrap: "):
        told = began.decode("utf-8", "replace").partition("\n")[0].removeprefix("bwrap: ")[:300]
        return Ended("failed", None, f"{UNSTARTED}{told}.")
    if code < 0:
        return Ended("failed", code, f"It was ended by signal {-code}.")
    return Ended("failed", code, f"It ended with code {code}.")


@dataclass(frozen=True, slots=True)
class Ours:
    """What our side of a run has made ready: a folder to begin in, a user, and a filter of system calls."""

    folder: str | None
    uid: int | None
    calls: int | None


@dataclass(slots=True)
class Said:
    """What a program has printed."""

    total: int = 0
    begun: bytes = b""
    tail: bytes = b""

    @property
    def is_endless(self) -> bool:
        """Whether it would never stop."""
        return self.total > FLOOD


async def _listen(stream: asyncio.StreamReader, limit: int, heard: Heard) -> Said:
    """Hear all of it, tell the beginning, and at the end what came last."""
    said = Said()
    try:
        while chunk := await stream.read(_CHUNK):
            room = max(0, limit - said.total)
            said.total += len(chunk)
            said.begun = (said.begun + chunk[:400])[:400]
            if room:
                await heard(chunk[:room])
            said.tail = (said.tail + chunk[room:])[-TAIL:]
            if said.is_endless:
                break
    finally:
        if said.tail:
            left = said.total - limit - len(said.tail)
            await heard((f"\n[… {left:,} bytes left out …]\n" if left > 0 else "").encode() + said.tail)
    return said


async def _awaited(
    process: asyncio.subprocess.Process, listening: "asyncio.Task[Said]", seconds: float, cancelled: asyncio.Event
) -> Ended | None:
    """Wait for the end; tells why we end it where it does not end by itself."""
    ending = asyncio.create_task(process.wait())
    stopping = asyncio.create_task(cancelled.wait())
    waiting: set[asyncio.Task[int] | asyncio.Task[bool] | asyncio.Task[Said]] = {ending, stopping, listening}
    try:
        async with asyncio.timeout(seconds):
            while not ending.done():
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    return Ended("cancelled", None, "It was cancelled, and ended with all it had started.")
                if listening.done() and listening.result().is_endless:
                    return Ended("failed", None, f"It printed more than {FLOOD // 2**20} MiB, and was ended.")
                waiting = {ending, stopping}
    except TimeoutError:
        return Ended("timed_out", None, f"It took longer than {seconds:g} s, and was ended with all it had started.")
    finally:
        stopping.cancel()
        ending.cancel()
        await asyncio.gather(ending, stopping, return_exceptions=True)
    return None


@asynccontextmanager
async def _started(
    program: Program, command: Sequence[str], given: "Ours"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    # A pipe of our own: asyncio tells the end of a process only once everyone has closed its pipes.
    ours, theirs = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8", **program.env, MARK: program.mark},
            cwd=given.folder,
            start_new_session=True,
            pass_fds=() if given.calls is None else (given.calls,),
            user=given.uid,
            group=given.uid,
            extra_groups=None if given.uid is None else [],
        )
    except (OSError, ValueError) as error:
        os.close(ours)
        raise Refused(_why(program, error)) from error
    finally:
        os.close(theirs)
    reader = asyncio.StreamReader(limit=_CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", 0)
    )
    try:
        yield process, reader
    finally:
        _end(process, program.loose)
        await process.wait()
        transport.close()


def _why(program: Program, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"The program {Path(program.argv[0]).name!r} or its folder is not there on this machine."
    if isinstance(error, PermissionError):
        return f"The program {Path(program.argv[0]).name!r} may not be run by the server."
    return f"The program could not be started ({type(error).__name__})."


def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    """End a program and whatever it started: a sandbox dies as one, and what has none is known by its mark."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if not mark:
        return
    wanted = f"{MARK}={mark}".encode()
    # What it starts while we look is found the next time; a program that is quicker than that has the same mark.
    for _ in range(100):
        found = [pid for pid in _marked(wanted) if pid != os.getpid()]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _marked(wanted: bytes) -> Iterator[int]:
    """Processes that carry a mark and have not ended."""
    for entry in os.scandir("/proc") if os.path.isdir("/proc/self") else ():
        if entry.name.isdecimal():
            with suppress(OSError):
                if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


@contextmanager
def _folder(program: Program) -> Iterator[str | None]:
    """Where our side of it begins: a sandbox changes into its folder itself."""
    if program.sandbox.kind != "none":
        yield None
    elif program.directory is not None:
        yield program.directory
    else:
        with tempfile.TemporaryDirectory(prefix="keepsake-run-") as made:
            yield made


_taken: set[int] = set()


@contextmanager
def _user(sandbox: Sandbox) -> Iterator[int | None]:
    """Who runs it: never root, and someone of its own where we may choose."""
    if os.geteuid() != 0 or sandbox.kind == "none":
        yield sandbox.uid if os.geteuid() == 0 else None
        return
    uid = sandbox.uid or next((uid for uid in UIDS if uid not in _taken), UIDS[0])
    _taken.add(uid)
    try:
        yield uid
    finally:
        _taken.discard(uid)


@contextmanager
def _filter(program: Program) -> Iterator[int | None]:
    """What of the kernel a sandbox keeps away, as an open file."""
    calls = seccomp.opened() if program.sandbox.kind != "none" else None
    try:
        yield calls
    finally:
        if calls is not None:
            os.close(calls)


def _command(program: Program, uid: int | None, calls: int | None) -> list[str]:
    if program.sandbox.kind == "none":
        return list(program.argv)
    bwrap, prlimit = (shutil.which(name, path=PATH) for name in NEEDED)
    if bwrap is None or prlimit is None:
        raise Refused(
            "Commands run in a sandbox, and this machine has none: install bubblewrap (and util-linux) where the worker"
            " runs, or enrol the tool with sandbox.kind none to run it without one."
        )
    limits = _limits(program, uid)
    known = [] if calls is None else ["--seccomp", str(calls)]
    # Where memory is short, a command goes before the server and its database do.
    choom = shutil.which("choom", path=PATH) if os.access("/proc/self/oom_score_adj", os.W_OK) else None
    first = [choom, "-n", "1000", "--"] if choom is not None else []
    return [*first, prlimit, *limits, "--", bwrap, *_walls(program), *known, "--", *program.argv]


def _limits(program: Program, uid: int | None) -> list[str]:
    wanted = program.sandbox
    held = 0 if uid is not None and wanted.uid is None else _threads(os.getuid() if uid is None else uid)
    limits = {
        "core": 0,
        "cpu": int(program.timeout_s) + 1,
        "data": wanted.memory_mb << 20,
        "fsize": LARGEST_FILE,
        "nofile": OPEN_FILES,
        # The sandbox itself is three.
        "nproc": wanted.processes + held + 3,
    }
    return [f"--{name}={value}" for name, value in limits.items()]


def _threads(uid: int) -> int:
    """How many threads a user has already, which the limit counts too."""
    held = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with suppress(OSError, ValueError):
                if entry.stat().st_uid == uid:
                    held += len(os.listdir(f"{entry.path}/task"))
    return held


def _walls(program: Program) -> list[str]:
    """What the sandbox holds, and nothing else."""
    wanted = program.sandbox
    walls = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    walls += ["--cap-drop", "ALL", "--hostname", "sandbox", "--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        if os.path.islink(f"/{name}"):
            walls += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            walls += ["--ro-bind", f"/{name}", f"/{name}"]
    for name in (*_ETC, *(_ETC_NETWORK if wanted.network else ())):
        walls += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    walls += ["--proc", "/proc", "--dev", "/dev", "--size", str(TMP), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    walls += ["--size", str(TMP), "--tmpfs", "/tmp"]
    for path in _shown(program, wanted.read_only):
        walls += ["--ro-bind", path, path]
    if program.directory is not None:
        [path] = _shown(program, [program.directory])
        walls += ["--ro-bind", path, path]
    for path in _shown(program, wanted.writable):
        walls += ["--bind", path, path]
    if wanted.network:
        walls.append("--share-net")
    return [*walls, "--remount-ro", "/", "--chdir", program.directory or "/tmp"]


def _shown(program: Program, paths: Sequence[str]) -> list[str]:
    """Paths that a program may see; ours are not among them, by whatever way they are called."""
    for path in paths:
        real = Path(path).resolve()
        for hidden in program.hidden:
            place = hidden.resolve()
            if real == place or real in place.parents or place in real.parents:
                raise Refused(f"The path {path} of its sandbox would show Keepsake's own data. Enrol another.")
        if not real.exists():
            raise Refused(f"The path {path} of its sandbox is not there on this machine.")
    return list(paths)
