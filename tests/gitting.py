"""Real repositories for tests, made with the real git."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

AUTHOR = "Ada Lovelace <ada@example.org>"
#: 2026-03-01T12:00:00Z; every commit comes an hour after the one before.
BEGAN = 1_772_366_400


class Made:
    """A repository that is being written."""

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self.count = 0
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *(["--bare"] if bare else []))

    def git(self, *words: str, given: bytes = b"", **more: str) -> str:
        """Run git with nothing of the developer's own."""
        at = f"{BEGAN + 3600 * self.count} +0000"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada Lovelace",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada Lovelace",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
            "GIT_AUTHOR_DATE": at,
            "GIT_COMMITTER_DATE": at,
            **more,
        }
        done = subprocess.run(
            ["git", *words], cwd=self.path, env=environment, input=given, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout.decode("utf-8", "replace").strip()

    def put(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files by path; None removes one."""
        for path, held in files.items():
            place = self.path / path
            if held is None:
                place.unlink()
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(held if isinstance(held, bytes) else held.encode())

    def commit(self, message: str, files: Mapping[str, str | bytes | None] | None = None, author: str = AUTHOR) -> str:
        """Commit files; tells the commit's name."""
        self.put(files or {})
        self.git("add", "-A")
        self.count += 1
        self.git("commit", "-q", "--allow-empty", "--author", author, "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def raw(self, message: bytes, at: str = f"{BEGAN} +0000", author: bytes = b"Ada <ada@example.org>") -> str:
        """A commit exactly as given, on top of the last one."""
        tree = self.git("rev-parse", "HEAD^{tree}")
        told = f"tree {tree}\nparent {self.head}\n".encode()
        told += b"author " + author + f" {at}\ncommitter Ada <ada@example.org> {BEGAN} +0000\n\n".encode() + message
        sha = self.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", given=told)
        self.git("update-ref", "refs/heads/main", sha)
        return sha

    def many(self, count: int, given: bytes = b"") -> None:
        """So many commits at once, each with a file and a message of its own."""
        parts = [given]
        for n in range(count):
            message = f"Change part {n} of the engine\n\nIt was number {n} on the list.".encode()
            parts.append(
                b"commit refs/heads/main\nauthor Ada <ada@example.org> %d +0000\n" % (BEGAN + n)
                + b"committer Ada <ada@example.org> %d +0000\ndata %d\n%s\n" % (BEGAN + n, len(message), message)
                + b"M 100644 inline src/part%d.py\ndata 4\nx=1\n\n" % (n % 50)
            )
        self.git("fast-import", "--quiet", "--force", given=b"".join(parts))
