"""The command line, typed: in this process where its answer is the point, in one of its own where its end is."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from keepsake.surfaces import main
from keepsake.surfaces.cli import app
from tests.surfaces.serving import ROOT, environment


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its answer, which must be one document."""
        assert self.code == 0, self.err
        return json.loads(self.out)


@dataclass(frozen=True)
class Terminal:
    """Someone who types commands; nobody looks at the terminal, so its output is plain."""

    folder: Path
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Ran:
        self.capture.readouterr()
        code = main.guarded(lambda: app.run(words))
        out, err = self.capture.readouterr()
        return Ran(code, out, err)

    def set(self, **variables: object) -> None:
        """Set environment variables."""
        for name, value in variables.items():
            self.patch.setenv(name, str(value))


@pytest.fixture
def keepsake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Commands over a fresh store."""
    for name in list(os.environ):
        if name.startswith(("KEEPSAKE_", "HINDSIGHT_", "XEROTIER_", "MCP_")):
            monkeypatch.delenv(name)
    # The doctor looks at the clients that this user has connected.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEEPSAKE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KEEPSAKE_PORT", str(free_port()))
    return Terminal(tmp_path / "data", monkeypatch, capsys)


def free_port() -> int:
    """A port that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def damaged(folder: Path, sql: str) -> None:
    """Change a store behind its back."""
    connection = apsw.Connection(str(folder / "keepsake.db"))
    connection.execute(sql)
    connection.close()


def levels(doctor: str) -> dict[str, str]:
    """What the doctor thinks of each thing."""
    return {finding["check"]: finding["level"] for finding in json.loads(doctor)["findings"]}


def typed(folder: Path, *words: str, **settings: object) -> Ran:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "keepsake", *words]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment(folder, **settings), capture_output=True, text=True, check=False, timeout=60
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@dataclass(frozen=True)
class Serving:
    """`keepsake serve`, and what it said when it began."""

    process: subprocess.Popen[str]
    welcome: str

    @property
    def url(self) -> str:
        """Where it listens."""
        found = re.search(r"http://[\d.]+:\d+", self.welcome)
        assert found, self.welcome
        return found[0]

    def ended(self, with_signal: signal.Signals) -> int:
        """Send a signal, and tell the exit code."""
        self.process.send_signal(with_signal)
        return self.process.wait(20)


@contextmanager
def serving(folder: Path, *words: str, **settings: object) -> Iterator[Serving]:
    """Serve until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "keepsake", "serve", *words],
        cwd=ROOT,
        env=environment(folder, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield Serving(process, _until(process.stdout.readline, "Ctrl-C stops it." if not words else "}"))
        finally:
            process.kill()


def _until(readline: Any, last: str) -> str:
    lines = []
    while line := readline():
        lines.append(line)
        if line.rstrip("\n") == last:
            break
    return "".join(lines)
