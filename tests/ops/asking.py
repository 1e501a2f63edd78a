"""Projects for tests: real git repositories with a known history, and banks that were synced from them."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from keepsake import dispatch, worker
from keepsake.context import App
from keepsake.core import clock
from keepsake.core.principal import local_owner
from keepsake.ops import ingest
from keepsake.ops.pieces import Piece
from keepsake.store import banks, jobs, repos
from keepsake.store.engine import Tx
from keepsake.store.repos import Repo

ORG = 1
BUDGET = '''"""Budgets of tokens."""

LIMIT = 500_000


def reserve(hold, limit):
    """Set tokens aside before a call."""
    if hold.tokens > limit:
        return False
    return True


def settle(hold, spent):
    """Put what was spent in the place of what was set aside."""
    hold.tokens = spent
'''
RETRY = '''"""Trying again."""


def retry(call, attempts=3):
    """Call again after a pause."""
    for _ in range(attempts):
        call()
'''


@dataclass(frozen=True)
class Step:
    """One commit."""

    author: str
    day: str
    message: str
    files: dict[str, str | None]


HISTORY = (
    Step("Cleo", "2024-01-05", "Begin the service", {"README.md": "# Service\n\nA service that spends tokens.\n"}),
    Step(
        "Ada",
        "2024-02-10",
        "Add reserve to budgets\n\nTwo callers could spend the same tokens, so they are set aside before a call.\n"
        "Settled after it. Closes #12.",
        {"src/budget.py": BUDGET},
    ),
    Step("Bob", "2024-03-01", "Try calls again after a pause", {"src/retry.py": RETRY}),
    Step("Ada", "2024-06-12", "Raise the weekly limit", {"src/budget.py": BUDGET.replace("500_000", "600_000")}),
    Step(
        "Bob",
        "2024-07-20",
        "Refuse a hold above the limit\n\nIt was silently granted.",
        {"src/budget.py": BUDGET.replace("500_000", "600_000").replace("tokens >", "tokens >=")},
    ),
    Step("Cleo", "2024-08-02", "Describe budgets", {"docs/budgets.md": "# Budgets\n\nA week has 600,000 tokens.\n"}),
)


def repository(folder: Path, steps: Sequence[Step] = HISTORY) -> Path:
    """Make a real repository with these commits."""
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "remote", "add", "origin", f"https://github.com/acme/{folder.name}.git")
    for step in steps:
        committed(folder, step)
    return folder


def committed(folder: Path, step: Step) -> str:
    """Add one commit; tells its name."""
    for path, text in step.files.items():
        place = folder / path
        if text is None:
            place.unlink()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "--allow-empty", "-m", step.message, author=step.author, day=step.day)
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *arguments: str, author: str = "Ada", day: str = "2024-01-01") -> str:
    who = {"NAME": author, "EMAIL": f"{author.lower()}@example.com", "DATE": f"{day}T12:00:00Z"}
    given = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in who.items()}
    place = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
    made = subprocess.run(
        ["git", *arguments], cwd=folder, env=place | given, check=True, capture_output=True, text=True
    )
    return made.stdout


async def synced(app: App, bank: str, folder: Path, *more: Piece) -> str:
    """Sync a bank from a repository; tells the commit that it stands at."""
    await dispatch.call(app.ctx(local_owner()), "bank.sync", {"bank": bank, "repo": str(folder)})
    assert await worker.step(app, ["sync"])
    repo = await standing(app, bank)
    assert repo.state == "completed", repo.note
    if more:
        await _told(app, repo, more)
    return repo.head


async def standing(app: App, bank: str) -> Repo:
    """How the repository of a bank stands."""

    async def body(tx: Tx) -> Repo | None:
        found = await banks.named(tx, ORG, bank)
        return await repos.get(tx, ORG, found.id) if found else None

    repo = await app.store.read(ORG, body)
    assert repo is not None
    return repo


async def _told(app: App, repo: Repo, more: Sequence[Piece]) -> None:
    """Store what GitHub would have told."""
    await app.store.write(ORG, lambda tx: jobs.add(tx, app.store, ORG, repo.bank, "by-hand", app.now(), {}))
    job = await app.store.engine.claim(lambda tx: jobs.claim(tx, ["by-hand"], app.now()))
    assert job is not None
    await ingest.stored(app, job, repo, more)
    await app.store.write(ORG, lambda tx: jobs.finish(tx, job, app.now()))


def ticket(kind: str, number: int, title: str, body: str, author: str = "Cleo", day: str = "2024-02-01") -> Piece:
    """A pull request or an issue as GitHub's part of a sync stores it."""
    key = f"{'pr' if kind == 'pull' else kind}/{number}"
    at = clock.parse(f"{day}T09:00:00Z")
    told = {"type": kind, "date": clock.iso(at), "number": number, "state": "closed", "author": author}
    return Piece(kind, key, day, kind, title, f"{title}\n\n{body}", at, told, authors=(author,))


def moved(repo: Repo, folder: Path) -> Repo:
    """A repository that is elsewhere now."""
    return replace(repo, remote=str(folder))
