"""A bank that learns from a repository at the GitHub of the tests, and what it has learnt."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.ops import ingest, jobs, sync_github
from keepsake.ops.sync_github import Pulled
from keepsake.services import github
from keepsake.store import banks, repos
from keepsake.store import jobs as stored_jobs
from keepsake.store.engine import Row, Tx
from keepsake.store.repos import Repo
from tests.github_server import Forge, serving

ORG = 1
BANK = "keeper"
TOKEN = "ghp_" + "a1" * 18


@pytest.fixture
def forge() -> Iterator[Forge]:
    """GitHub, with an empty repository."""
    with serving() as forge:
        forge.token = TOKEN
        yield forge


@dataclass(frozen=True)
class Learning:
    """The bank, as a test drives it."""

    app: App
    bank: int

    async def repo(self) -> Repo:
        """How its repository stands."""
        repo = await self.app.store.read(ORG, lambda tx: repos.get(tx, ORG, self.bank))
        assert repo is not None
        return repo

    async def put(self, **fields: object) -> None:
        """Change how its repository stands."""
        changed = replace(await self.repo(), **fields)  # type: ignore[arg-type]  # its own fields
        await self.app.store.write(ORG, lambda tx: repos.put(tx, changed))

    async def job(self) -> jobs.Job:
        """A sync that was asked for and begins now."""
        await self.app.store.write(
            ORG,
            lambda tx: stored_jobs.wanted(tx, self.app.store, ORG, self.bank, "sync", self.app.now()),
        )
        job = await jobs.claim(self.app, ["sync"])
        assert job is not None
        return job

    async def sync(self, lives_for: int = 1_000_000) -> tuple[Pulled, ingest.Report]:
        """Read GitHub; the job is taken away after it was asked so often whether it is still ours."""
        job, report, asked = await self.job(), ingest.Report(), 0

        async def alive() -> bool:
            nonlocal asked
            asked += 1
            return asked <= lives_for

        try:
            return await sync_github.pulled(self.app, job, await self.repo(), alive, report), report
        finally:
            await jobs.finish(self.app, job)

    async def shown(self) -> dict[str, object]:
        """What its last sync says of itself."""
        found = await self.app.store.read(ORG, lambda tx: stored_jobs.listed(tx, ORG, self.bank, jobs.STATES, 1))
        told: dict[str, object] = json.loads(found[0].result) if found and found[0].result else {}
        return told

    async def memories(self, extra: str = "AND m.superseded_at IS NULL") -> list[Row]:
        """What it has learnt, in the order of its sources."""

        async def body(tx: Tx) -> list[Row]:
            return await tx.all(
                "SELECT s.kind, s.key, s.revision, m.id, m.subtype, m.fact_type, m.title, m.text, m.metadata, m.author,"
                " m.trust, m.happened_from FROM memories m JOIN sources s ON s.org = m.org AND s.bank = m.bank"
                f" AND s.id = m.source WHERE m.org = :org AND m.bank = :bank {extra} ORDER BY s.key, m.id",
                org=ORG,
                bank=self.bank,
            )

        return await self.app.store.read(ORG, body)

    async def told(self) -> dict[str, list[str]]:
        """What each source tells now."""
        found: dict[str, list[str]] = {}
        for row in await self.memories():
            found.setdefault(row["key"], []).append(row["text"])
        return found


async def learning(app: App, forge: Forge, token: str = TOKEN, remote: str = "/home/ada/keeper") -> Learning:
    """A bank with its repository, read by an application that may ask this GitHub."""
    environment = {"KEEPSAKE_GITHUB_URL": forge.url, "KEEPSAKE_GITHUB_TOKEN": token}
    made = replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))
    hub = github.configured(made.settings)
    hub.pause_s = 0.01

    async def body(tx: Tx) -> int:
        bank = await banks.create(tx, app.store, ORG, BANK)
        assert bank is not None
        await repos.put(tx, Repo(ORG, bank.id, remote, app.now(), app.now(), full_name=forge.full_name))
        return bank.id

    return Learning(made, await app.store.write(ORG, body))


def filled(forge: Forge, issues: int = 3, pulls: int = 3) -> None:
    """A repository with some of everything."""
    for number in range(1, issues + 1):
        forge.issue(number, f"Crash {number}", f"It crashes at step {number}.", "ada")
        forge.comment(number, f"I see it too, in place {number}.")
    for number in range(101, 101 + pulls):
        forge.pull(number, f"Mend {number}", f"This mends step {number}.", "grace")
        review = forge.review(number, f"Why is step {number} first?", "bob", "CHANGES_REQUESTED")
        forge.review_comment(number, review, f"src/step{number}.py", 7, "Say why.")
    forge.release("v1.0", "First", "All steps work.")


def wanted(forge: Forge) -> set[str]:
    """The keys of all that is there."""
    return {
        *(f"issue/{number}" for number, one in forge.issues.items() if "pull_request" not in one),
        *(f"pr/{number}" for number in forge.pulls),
        *(f"release/{one['tag_name']}" for one in forge.releases),
    }
