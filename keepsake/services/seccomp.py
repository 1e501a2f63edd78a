"""System calls that no enrolled program needs, refused by the kernel: what opens doors of the kernel's own."""

import os
import platform
import struct
from dataclasses import dataclass

#: Offsets in what the kernel shows a filter, and the few words of its language that are needed.
_NUMBER, _ARCH = 0, 4
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
#: Numbers that are the same everywhere: io_uring, the new ways to mount, and reaching into other processes' files.
_COMMON = (*range(425, 434), 438, 442)
#: Its flags lie where no filter can read them; without it, programs use the older way.
_CLONE3 = 435


@dataclass(frozen=True, slots=True)
class Machine:
    """A kind of processor, and the numbers of the calls there."""

    arch: int
    refused: tuple[int, ...]
    #: From this number on calls belong to another way of counting.
    foreign: int | None = None


_X86_64 = Machine(
    0xC000003E,
    (
        *(101, 310, 311),  # ptrace, process_vm_readv, process_vm_writev
        *(155, 161, 165, 166, 272, 308),  # pivot_root, chroot, mount, umount2, unshare, setns
        *(248, 249, 250, 298, 321, 323),  # add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd
        *(175, 176, 246, 313, 320),  # modules, kexec
        *(303, 304, 103, 163, 167, 168, 169, 179),  # file handles, syslog, acct, swap, reboot, quotactl
        *(154, 159, 164, 172, 173, 227, 305),  # modify_ldt, clocks, ports
    ),
    foreign=0x40000000,
)
_AARCH64 = Machine(
    0xC00000B7,
    (
        *(117, 270, 271),
        *(41, 51, 40, 39, 97, 268),
        *(217, 218, 219, 241, 280, 282),
        *(105, 106, 104, 273, 294),
        *(264, 265, 116, 89, 224, 225, 142, 60),
        *(171, 170, 112, 266),
    ),
)
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def program() -> bytes:
    """The filter for this machine as the kernel reads it; empty where we know none."""
    machine = _MACHINES.get(platform.machine())
    return _written(machine) if machine else b""


def _written(machine: Machine) -> bytes:
    refused = [*machine.refused, *_COMMON]
    # Each question knows how far it is to the three answers at the end.
    questions: list[tuple[int, int, str]] = [(_EQUAL, number, "refused") for number in refused]
    questions += [(_EQUAL, _CLONE3, "missing")]
    if machine.foreign is not None:
        questions.insert(0, (_AT_LEAST, machine.foreign, "refused"))
    lines = [
        _line(_LOAD, _ARCH),
        _line(_EQUAL, machine.arch, 1),
        _line(_RETURN, _ERROR | _EPERM),
        _line(_LOAD, _NUMBER),
    ]
    for n, (code, value, answer) in enumerate(questions, 1):
        left = len(questions) - n
        lines.append(_line(code, value, left + {"refused": 1, "missing": 2}[answer]))
    lines += [_line(_RETURN, _ALLOW), _line(_RETURN, _ERROR | _EPERM), _line(_RETURN, _ERROR | _ENOSYS)]
    return b"".join(lines)


def _line(code: int, value: int, jump: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump, 0, value)


def opened() -> int | None:
    """The filter as a file that a sandbox can be given; None where there is none."""
    if not (written := program()):
        return None
    file = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(file, written)
    os.lseek(file, 0, os.SEEK_SET)
    return file
