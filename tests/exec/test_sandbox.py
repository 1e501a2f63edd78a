"""Programs that want out of their sandbox, and programs that misbehave in it: contained, ended, and told of."""

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from keepsake.core.enrolment import Sandbox
from keepsake.services import sandbox
from keepsake.services.sandbox import Ended, Program, Refused
from tests.exec.executing import needs_sandbox

pytestmark = needs_sandbox
OUT = "ESCAPED"
PYTHON = shutil.which("python3", path=sandbox.PATH) or ""

#: What each tries, in a shell; whatever succeeds says so. {secret} is a file of the host that anyone there may read.
SHELL = {
    "read a file of the host": "cat {secret}",
    "read it through the root of pid 1": "cat /proc/1/root{secret}",
    "read it through the root of itself": "cat /proc/self/root{secret}",
    "read it through the root of the server": "cat /proc/{pid}/root{secret}",
    "read it through a link": "ln -s {secret} /tmp/link && cat /tmp/link",
    "read it by a way up": "cat /tmp/../../..{secret}",
    "list a folder of the host": "ls {folder} && echo ESCAPED",
    "list the homes": "ls /home /root && echo ESCAPED",
    "read the users": "grep -q root: /etc/passwd && echo ESCAPED",
    "read the passwords": "cat /etc/shadow && echo ESCAPED",
    "read the machine's id": "cat /etc/machine-id /etc/hostname && echo ESCAPED",
    "see the server's environment": "grep -q ESCAPED /proc/{pid}/environ && echo ESCAPED",
    "inherit the server's environment": "env | grep ESCAPED",
    "see the server's processes": "ls /proc | grep -qx {pid} && echo ESCAPED",
    "signal the server": "kill -0 {pid} && echo ESCAPED",
    "inherit open files": "test -e /proc/self/fd/4 -o -e /proc/self/fd/5 && echo ESCAPED",
    "write programs": "echo x > /usr/bin/escaped && echo ESCAPED",
    "write settings": "echo x > /etc/escaped && echo ESCAPED",
    "write the root": "echo x > /escaped && echo ESCAPED",
    "write devices": "echo x > /dev/escaped && echo ESCAPED",
    "rename what is mounted": "mv /usr /usr2 && echo ESCAPED",
    "change the kernel": "echo escaped > /proc/sys/kernel/hostname && echo ESCAPED",
    "press the kernel's keys": "echo h > /proc/sysrq-trigger && echo ESCAPED",
    "spare itself when memory is short": "echo -1000 > /proc/self/oom_score_adj && echo ESCAPED",
    "map itself to root": "echo 0 0 1 > /proc/self/uid_map && echo ESCAPED",
    "read the kernel's memory": "head -c 1 /proc/kcore && echo ESCAPED",
    "read the machine's memory": "head -c 1 /dev/mem && echo ESCAPED",
    "read a disk": "head -c 1 /dev/vda /dev/sda /dev/nvme0n1 && echo ESCAPED",
    "make a device": "mknod /tmp/disk b 8 0 && echo ESCAPED",
    "mount": "mount -t tmpfs none /tmp && echo ESCAPED",
    "mount the host": "mount --bind / /tmp && echo ESCAPED",
    "take a mount away": "umount /usr && echo ESCAPED",
    "open walls for writing": "mount -o remount,rw /usr && echo ESCAPED",
    "make a user namespace": "unshare --user --map-root-user true && echo ESCAPED",
    "make a mount namespace": "unshare --mount true && echo ESCAPED",
    "enter the host's namespaces": "nsenter --target 1 --mount true && ls {folder} && echo ESCAPED",
    "change its root": "chroot /tmp /bin/true && echo ESCAPED",
    "become root": "test $(id -u) = 0 && echo ESCAPED",
    "become root by su": "su root -c true && echo ESCAPED",
    "become root by a bit": "cp /bin/sh /tmp/s; chmod u+s /tmp/s; test $(/tmp/s -p -c 'id -u') = 0 && echo ESCAPED",
    "keep capabilities": "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo ESCAPED",
    "name the machine": "hostname escaped && echo ESCAPED",
    "set the clock": "date -s 2000-01-01 && echo ESCAPED",
    "come before others": "renice -n -20 $$ && echo ESCAPED",
    "see other networks": "test $(grep -c : /proc/net/dev) -gt 1 && echo ESCAPED",
    "lift its limits": "ulimit -u unlimited && echo ESCAPED",
    "fill the disk": "head -c 400000000 /dev/zero > /tmp/large && echo ESCAPED",
    "fill shared memory": "head -c 400000000 /dev/zero > /dev/shm/large && echo ESCAPED",
    "start hundreds": "i=0; while [ $i -lt 300 ]; do sleep 3 & i=$((i+1)); done; echo ESCAPED",
    "see devices of the machine": "ls /sys/class && echo ESCAPED",
    "leave control groups": "ls /sys/fs/cgroup && echo ESCAPED",
}
#: The same in Python, where that is installed.
CODE = {
    "call a service of the machine": "import socket; socket.create_connection(('127.0.0.1', {port})); print('ESCAPED')",
    "call an abstract socket": "import socket; s = socket.socket(1); s.connect('\\0{abstract}'); print('ESCAPED')",
    "leave for the internet": "import socket; socket.create_connection(('1.1.1.1', 53), 2); print('ESCAPED')",
    "ask a name server": "import socket; s = socket.socket(2, 2); s.sendto(b'x', ('8.8.8.8', 53)); print('ESCAPED')",
    "send raw packets": "import socket; socket.socket(2, 3, 1); print('ESCAPED')",
    "set its user": "import os; os.setuid(0); print('ESCAPED')",
    "take two gigabytes": "x = bytearray(2 << 30); print('ESCAPED')",
    "open the server's memory": "open('/proc/{pid}/mem', 'r+b'); print('ESCAPED')",
    "type into a terminal": "import fcntl; fcntl.ioctl(0, 0x5412, b'x'); print('ESCAPED')",
    "trace its keeper": "import ctypes; print('ESCAPED' if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 else 'no')",
    "hand work to the kernel": "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(425, 8, 0);"
    " print('no' if ctypes.get_errno() == 1 else 'ESCAPED')",
    "trace the server": "import ctypes; print('ESCAPED' if ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0 else 'no')",
}


@dataclass
class Host:
    """What there is to be found outside."""

    secret: Path
    port: int
    abstract: str

    def told(self, attempt: str) -> str:
        for name, value in {"folder": self.secret.parent, "pid": os.getpid(), **vars(self)}.items():
            attempt = attempt.replace(f"{{{name}}}", str(value))
        return attempt


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("KEEPSAKE_TEST", OUT)
    abstract = f"keepsake-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        folder.chmod(0o755)
        secret = folder / "secret"
        secret.write_text(OUT)
        secret.chmod(0o644)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind(f"\0{abstract}")
        named.listen()
        yield Host(secret, server.getsockname()[1], abstract)


async def told(program: Program, cancelled: asyncio.Event | None = None) -> tuple[Ended, bytes]:
    """How a program ended and what it printed."""
    printed = bytearray()

    async def heard(chunk: bytes) -> None:
        printed.extend(chunk)

    return await sandbox.run(program, heard, cancelled or asyncio.Event()), bytes(printed)


def attempts(host: Host) -> dict[str, list[str]]:
    made = {name: ["sh", "-c", host.told(script)] for name, script in SHELL.items()}
    return made | {name: [PYTHON, "-c", host.told(code)] for name, code in CODE.items() if PYTHON}


async def out(argv: list[str], walls: Sandbox) -> bool:
    _, printed = await told(Program(argv, "escape", timeout_s=10, sandbox=walls))
    return OUT.encode() in printed


async def test_no_attempt_to_escape_succeeds(host: Host) -> None:
    tries, turns = attempts(host), asyncio.Semaphore(8)

    async def tried(name: str, argv: list[str]) -> str:
        async with turns:
            return name if await out(argv, Sandbox()) else ""

    escaped = await asyncio.gather(*(tried(name, argv) for name, argv in tries.items()))

    assert len(tries) >= 40
    assert [name for name in escaped if name] == []


async def test_the_same_attempts_succeed_where_there_is_no_sandbox(host: Host) -> None:
    tries = attempts(host)
    open_doors = ["read a file of the host", "list a folder of the host", "signal the server", "read the users"]

    found = [name for name in open_doors if await out(tries[name], Sandbox(kind="none"))]

    assert found == open_doors


async def test_a_path_that_was_enrolled_is_seen_and_written_only_as_far_as_that_says(host: Host) -> None:
    folder = host.secret.parent
    folder.chmod(0o777)
    script = ["sh", "-c", f"cat {host.secret}; touch {folder}/new && echo wrote"]

    _, read = await told(Program(script, "read", sandbox=Sandbox(read_only=[str(folder)])))
    _, written = await told(Program(script, "write", sandbox=Sandbox(writable=[str(folder)])))

    assert read.startswith(OUT.encode()) and b"wrote" not in read
    assert written == f"{OUT}wrote\n".encode()


async def test_nothing_shows_our_own_data_by_whatever_way(host: Host) -> None:
    folder = host.secret.parent
    link = folder.with_name(f"{folder.name}-link")
    link.symlink_to(folder)
    shown = [str(folder), str(folder.parent), str(link), str(host.secret)]
    try:
        for path in shown:
            with pytest.raises(Refused, match="own data"):
                await told(Program(["true"], "own", sandbox=Sandbox(read_only=[path]), hidden=[folder]))
    finally:
        link.unlink()


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
async def test_what_hangs_ignores_signals_and_leaves_children_is_ended_with_all_of_them(kind: str) -> None:
    mark = f"tree-{os.getpid()}-{kind}"
    script = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &); sleep 1000 & wait"
    walls = Sandbox(kind="none") if kind == "none" else Sandbox()

    ended, _ = await told(Program(["sh", "-c", script], mark, timeout_s=1, sandbox=walls))

    assert ended.state == "timed_out"
    assert _alive(mark) == []


async def test_a_cancelled_program_is_ended_at_once() -> None:
    cancelled, began = asyncio.Event(), time.monotonic()
    asyncio.get_running_loop().call_later(0.3, cancelled.set)

    ended, _ = await told(Program(["sleep", "1000"], "cancel"), cancelled)

    assert ended.state == "cancelled"
    assert time.monotonic() - began < 10


async def test_what_is_left_behind_ends_with_the_program() -> None:
    mark = f"orphan-{os.getpid()}"
    script = "(setsid sleep 1000 &) ; echo done"

    ended, printed = await told(Program(["sh", "-c", script], mark))
    loose, _ = await told(Program(["sh", "-c", script], f"{mark}-loose", sandbox=Sandbox(kind="none")))

    assert (ended, printed, loose.state) == (Ended("succeeded", 0), b"done\n", "succeeded")
    assert _alive(mark) == _alive(f"{mark}-loose") == []


async def test_a_flood_is_kept_within_its_limit_and_what_never_stops_is_ended() -> None:
    some, printed = await told(Program(["sh", "-c", "seq 1 100000; echo the end"], "some", output_limit=1_000))
    endless, _ = await told(Program(["yes"], "endless", timeout_s=60, output_limit=1_000))

    assert some.state == "succeeded"
    assert printed.startswith(b"1\n2\n3\n") and printed.endswith(b"100000\nthe end\n")
    assert len(printed) < 1_000 + sandbox.TAIL + 100
    assert (endless.state, "MiB" in endless.reason) == ("failed", True)


async def test_processes_are_counted_over_the_whole_command_and_memory_in_each() -> None:
    forks = "i=0; while [ $i -lt 30 ]; do (sh -c 'sleep 3' &) ; i=$((i+1)); done"
    large = f"{PYTHON} -c 'import time; x = bytearray(40 << 20); time.sleep(0.5); print(1)'"

    _, few = await told(Program(["sh", "-c", forks], "few", sandbox=Sandbox(processes=10)))
    _, three = await told(
        Program(["sh", "-c", f"{large} & {large} & {large} & wait"], "x", sandbox=Sandbox(memory_mb=64))
    )
    _, one = await told(Program([PYTHON, "-c", "bytearray(80 << 20)"], "one", sandbox=Sandbox(memory_mb=64)))

    assert b"fork" in few
    assert (three, b"MemoryError" in one) == (b"1\n1\n1\n", True)


@pytest.mark.skipif(shutil.which("choom", path=sandbox.PATH) is None, reason="There is no choom here.")
async def test_where_memory_is_short_a_command_goes_before_the_server() -> None:
    _, printed = await told(Program(["cat", "/proc/self/oom_score_adj"], "first"))

    assert printed == b"1000\n"


async def test_ends_are_told_as_they_are() -> None:
    missing, _ = await told(Program(["no-such-program"], "missing"))
    ends = [await told(Program(["sh", "-c", script], "ends")) for script in ("exit 3", "kill -9 $$")]
    with pytest.raises(Refused, match="not there"):
        await told(Program(["true"], "path", sandbox=Sandbox(read_only=["/no/such/path"])))
    with pytest.raises(Refused, match="'no-such-program'"):
        await told(Program(["no-such-program"], "missing", sandbox=Sandbox(kind="none")))

    assert missing.state == "failed" and "No such file" in missing.reason
    assert [(ended.state, ended.exit_code) for ended, _ in ends] == [("failed", 3), ("failed", 137)]


async def test_without_bubblewrap_a_command_is_refused_in_words_that_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "PATH", "/nowhere")

    with pytest.raises(Refused, match=r"install bubblewrap .* sandbox\.kind none"):
        await told(Program(["true"], "none"))


def _alive(mark: str) -> list[int]:
    """Processes that still carry a mark."""
    end = time.monotonic() + 5
    while (found := list(sandbox._marked(f"{sandbox.MARK}={mark}".encode()))) and time.monotonic() < end:
        time.sleep(0.05)
    return found
