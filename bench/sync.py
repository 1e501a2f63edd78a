"""`python -m bench.sync`: what learning from a repository of some 5,000 commits costs, and doing it again.

KEEPSAKE_BENCH_REPO names a clone of one; without it a repository is made. CPU is that of the process that syncs, of
every git it starts and, where there is one, of PostgreSQL's backends; the sync is done as `keepsake sync` does it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import corpus, speed

COMMITS = 5_000
#: Run in a process of its own, so that its memory is its own.
_SCRIPT = """
import asyncio, json, os, resource, sys, time
from keepsake import context, dispatch, settings, worker
from keepsake.core.principal import local_owner

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)

async def main():
    async with context.open(settings.load()) as app:
        ctx = app.ctx(local_owner())
        for repo in ({"repo": sys.argv[1]}, {}):
            before = spent()
            asked = await dispatch.call(ctx, "bank.sync", {"bank": "bench", **repo})
            await worker.step(app, ["sync"])
            done = await dispatch.call(ctx, "job.get", {"bank": "bench", "id": asked.operation})
            told = {"cpu": spent() - before, "state": done.state, "result": done.result}
            print(json.dumps(told), flush=True)
            # Whoever measures looks at PostgreSQL before this process, and its connections, are gone.
            sys.stdin.readline()
        print(json.dumps({"rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}), flush=True)

asyncio.run(main())
"""


def generated(folder: Path) -> Path:
    """A repository with so many commits of made-up messages."""
    texts = corpus.memories(COMMITS)
    parts = []
    for n, told in enumerate(texts):
        at, message = 1_500_000_000 + 3_600 * n, f"{told}\n\n{texts[-n]}".encode()
        parts.append(
            b"commit refs/heads/main\nauthor Ada %d <a%d@example.org> %d +0000\n" % (n % 40, n % 40, at)
            + b"committer Ada <ada@example.org> %d +0000\ndata %d\n%s\n" % (at, len(message), message)
            + b"".join(b"M 100644 inline src/part%d.py\ndata 7\nx=%05d\n" % (n * k % 400, n) for k in (1, 3, 7))
            + b"\n"
        )
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=b"".join(parts), check=True)
    return folder


def repository(folder: Path) -> Path:
    """The repository to learn from."""
    named = os.environ.get("KEEPSAKE_BENCH_REPO")
    return Path(named) if named else generated(folder / "repo.git")


def measured(url: str = "") -> dict[str, float]:
    """CPU seconds of the first sync and of one that finds nothing new, and the most memory that was resident."""
    with tempfile.TemporaryDirectory() as folder:
        repo = repository(Path(folder))
        environment = {**os.environ, "KEEPSAKE_DATA_DIR": str(Path(folder) / "data"), "KEEPSAKE_DATABASE_URL": url}
        process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, str(repo)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        took, before = [], 0.0
        for _ in range(2):
            told = json.loads(process.stdout.readline())
            assert told["state"] == "completed", told
            behind = sum(speed.cpu(each) for each in speed.backends(url))
            took.append((told["cpu"] + behind - before, told["result"]))
            before = behind
            process.stdin.write("\n")
            process.stdin.flush()
        rss = json.loads(process.stdout.readline())["rss"]
        process.wait(60)
    return {
        "commits": took[0][1]["commits"],
        "memories": took[0][1]["stored"],
        "first s CPU": took[0][0],
        "again s CPU": took[1][0],
        "RSS MB": rss,
    }


def main() -> None:
    """Measure on both stores."""
    # The table of all figures asks this module, so it is asked for here only.
    from bench.__main__ import postgres, syncs

    syncs("SQLite", "")
    with postgres() as url:
        syncs("PostgreSQL", url)


if __name__ == "__main__":
    main()
