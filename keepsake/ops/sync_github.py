"""What GitHub knows of a repository: read on from where the last sync came to, so that it can stop anywhere."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from keepsake.context import App
from keepsake.core import clock, log
from keepsake.core.clock import DAY, MINUTE
from keepsake.core.errors import Conflict
from keepsake.ops import github_pieces, ingest
from keepsake.ops.announced import DELETED
from keepsake.ops.embedding import Alive
from keepsake.ops.pieces import Piece
from keepsake.services import github
from keepsake.services.github import Connection, Failed, Limited, Missing, Refused
from keepsake.services.github_items import Authored, Comment, Issue, Item, Pull, Release, Review
from keepsake.store import bulk, jobs
from keepsake.store.engine import Tx
from keepsake.store.repos import Repo

T = TypeVar("T", bound=Item)
S = TypeVar("S", bound=Authored)
KINDS = ("pull", "issue", "release")
#: Where a repository holds how far GitHub was read.
CURSOR = "github"
#: Items whose details are read before they are stored: what an interruption may cost.
AT_ONCE = 10
#: Comments, reviews and remarks of one item, and releases, of which each is read.
MOST_SAID, MOST_RELEASES = 1_000, 2_000
#: How often it is looked for what was deleted, and how many are asked about one by one.
SWEEP, MOST_ASKED = 7 * DAY, 100
#: Told of a list of issues that was switched off.
OFF = 410
#: How long one job goes on; the rest waits for the next, so that others have their turn.
LONGEST = 20 * MINUTE
#: The part of the job that this is.
LOW, HIGH = 0.6, 0.95


class Walk(BaseModel):
    """How far a list was read."""

    #: All that changed before this moment is stored.
    until: str = ""
    #: The newest change when a walk that has not ended began, and the page that it has come to.
    top: str = ""
    next: str = ""
    #: What the first page was when it was read last, and where.
    etag: str = ""
    of: str = ""


class Marks(BaseModel):
    """How far everything was read; of one repository only."""

    full_name: str = ""
    pulls: Walk = Field(default_factory=Walk)
    issues: Walk = Field(default_factory=Walk)
    #: Pages of releases with what they were.
    releases: list[tuple[str, str]] = Field(default_factory=list)
    swept_at: int = 0
    #: Whether any of it was ever stored.
    is_told: bool = False


class Enough(Conflict):
    """Others have their turn now."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """How it ended; what was left out stands in the report's notes."""

    #: When to go on, where GitHub wants to be left alone until then.
    again_at: int | None = None
    #: What failed and may not fail the next time.
    error: Failed | None = None


async def pulled(app: App, job: jobs.Job, repo: Repo, alive: Alive, report: ingest.Report) -> Pulled:
    """Read pull requests, issues and releases that are new or have changed; asks nobody who was not named."""
    known, marks = await _begun(app, job, repo, report)
    if not github.may_ask(app.settings, repo.full_name, repo.remote):
        return Pulled()

    async def waiting(until: int) -> None:
        report.waiting_until = clock.iso(until) if until else ""
        await report.tell(app, job)

    async with github.configured(app.settings).connected(waiting) as hub:
        sync = Sync(app, job, repo, alive, report, hub, known, marks, app.now() + LONGEST)
        try:
            await sync.run()
        except Enough:
            report.notes.append("There is more to read at GitHub; the sync goes on by itself.")
            return Pulled(again_at=app.now())
        except Limited as error:
            report.waiting_until = clock.iso(error.until)
            report.notes.append(f"{error} The sync goes on by itself then.")
            return Pulled(again_at=error.until)
        except Failed as error:
            report.notes.append(f"{error} The next sync goes on where this one ended.")
            return Pulled(error=error)
    return Pulled()


async def _begun(
    app: App, job: jobs.Job, repo: Repo, report: ingest.Report
) -> tuple[dict[tuple[str, str], str], Marks]:
    """What is stored, and how far it was read; what another repository told is superseded first."""
    org, bank = job.org, job.bank

    async def looked(tx: Tx) -> tuple[dict[tuple[str, str], str], bool]:
        known = await bulk.revisions(tx, org, bank, KINDS)
        return known, any([await bulk.tells(tx, org, bank, kind) for kind in KINDS if known])

    known, is_told = await app.store.read(org, looked)
    fresh = Marks(full_name=repo.full_name, swept_at=app.now())
    marks = _marks(repo)
    if known and (marks is None or marks.full_name.lower() != repo.full_name.lower()):
        for kind in KINDS:
            await ingest.gone(app, job, repo, kind, [key for each, key in known if each == kind], report)
        known, marks = {}, fresh
    if marks is None or (marks.is_told and not is_told):
        # Nothing was read yet, or all of it has been cleared away since.
        known, marks = {}, fresh
    if marks is fresh and repo.full_name:
        # Before anything is stored, so that it is known whose it is.
        await ingest.noted(app, job, {CURSOR: fresh.model_dump()})
    return known, marks


def _marks(repo: Repo) -> Marks | None:
    """How far the last sync came; None when there was none."""
    try:
        return Marks.model_validate(repo.cursors[CURSOR]) if repo.cursors.get(CURSOR) else None
    except ValidationError:
        return Marks(full_name=repo.full_name)


@dataclass(slots=True)
class Sync:
    """One sync with GitHub."""

    app: App
    job: jobs.Job
    repo: Repo
    alive: Alive
    report: ingest.Report
    hub: Connection
    #: The present revision of what is stored, by kind and key.
    known: dict[tuple[str, str], str]
    marks: Marks
    #: When it has gone on for long enough.
    over: int

    async def run(self) -> None:
        """Read each list; what GitHub refuses of one is no reason to leave out the others."""
        parts: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("reading pull requests", self.pulls),
            ("reading issues", self.issues),
            ("reading releases", self.releases),
            ("looking for what was deleted", self.swept),
        ]
        for place, (doing, read) in enumerate(parts):
            share = (HIGH - LOW) / len(parts)
            self.report.begin(doing, 0, LOW + place * share, LOW + (place + 1) * share)
            try:
                await read()
            except (Refused, Missing) as error:
                log.info("GitHub refused", doing=doing, reason=type(error).__name__)
                self._note(str(error))
                if isinstance(error, Refused) and error.answered == 401:
                    break

    def _note(self, what: str) -> None:
        """Say what is left out, once."""
        if what not in self.report.notes:
            self.report.notes.append(what)

    def _first(self, what: str, **query: str) -> str:
        return github.listing(self.repo.full_name, what, **query)

    async def _noted(self, more: Mapping[str, object] | None = None) -> None:
        """Write down how far it is, after what was read: read again, that is known, so nothing is lost or doubled."""
        if not await self.alive():
            raise Conflict(ingest.LOST)
        await ingest.noted(self.app, self.job, {CURSOR: self.marks.model_dump(), **(more or {})})
        if self.app.now() > self.over:
            raise Enough(ingest.LOST)

    async def pulls(self) -> None:
        """Pull requests, the last changed first, since their list cannot begin at a moment."""
        if self.marks.pulls.next:
            await self._down()
        await self._down()

    async def _down(self) -> None:
        walk = self.marks.pulls
        first = self._first("pulls", state="all", sort="updated", direction="desc")
        path = walk.next or first
        while path:
            page = await self.hub.page(Pull, path, walk.etag if path == first == walk.of and not walk.next else "")
            if page is None:
                return
            if path == first:
                walk.top = page.items[0].updated_at if page.items else ""
                walk.etag, walk.of = page.etag, first
            await self._take("pull", page.items, self._pull)
            is_over = not page.next or any(one.updated_at < walk.until for one in page.items)
            path = walk.next = "" if is_over else page.next
            if is_over:
                walk.until, walk.top = max(walk.until, walk.top), ""
            await self._noted()

    async def issues(self) -> None:
        """Issues, the first changed first, beginning anew at the moment that each page ends with.

        Pages counted from the beginning would lose what moves up while they are read.
        """
        walk = self.marks.issues
        while True:
            since = {"since": walk.until} if walk.until else {}
            first = self._first("issues", state="all", sort="updated", direction="asc", **since)
            path = walk.next or first
            try:
                page = await self.hub.page(Issue, path, walk.etag if path == walk.of else "")
            except Missing as error:
                if error.answered == OFF:
                    return
                raise
            if page is None:
                return
            await self._take("issue", [one for one in page.items if one.pull_request is None], self._issue)
            last = max((one.updated_at for one in page.items), default="")
            walk.etag, walk.of = page.etag, path
            # A page full of one moment is followed by the next one; any other begins a new list.
            walk.next = page.next if last <= walk.until else ""
            walk.until = max(walk.until, last)
            await self._noted()
            if not page.next:
                return

    async def releases(self) -> None:
        """Releases: there are few, and any of them may have changed."""
        if self.marks.releases and await self._is_unchanged():
            return
        path, pages, found = self._first("releases"), [], list[Release]()
        while path and len(found) < MOST_RELEASES:
            page = await self.hub.page(Release, path)
            assert page is not None, "without an etag nothing is unchanged"
            pages.append((path, page.etag))
            found += [one for one in page.items if not one.draft]
            path = page.next
        new = [one for one in found if self._known("release", one.tag_name) != github_pieces.revision(one)]
        pieces = await asyncio.to_thread(lambda: [piece for one in new for piece in github_pieces.release(one)])
        await self._store(pieces)
        there = {github_pieces.key("release", one.tag_name) for one in found}
        if not path:
            await self._gone("release", [key for kind, key in self.known if kind == "release" and key not in there])
        self.marks.releases = pages
        await self._noted()

    async def _is_unchanged(self) -> bool:
        for path, etag in self.marks.releases:
            if await self.hub.page(Release, path, etag) is not None:
                return False
        return True

    def _known(self, kind: str, name: str | int) -> str:
        return self.known.get((kind, github_pieces.key(kind, name)), "")

    async def _take(self, kind: str, items: Sequence[T], told: Callable[[T], Awaitable[list[Piece]]]) -> None:
        """Read and store what is new or has changed, a few at a time."""
        new = [one for one in items if self._known(kind, one.number) != one.updated_at]
        for start in range(0, len(new), AT_ONCE):
            pieces: list[Piece] = []
            try:
                for one in new[start : start + AT_ONCE]:
                    pieces += await told(one)
            except (Failed, Limited):
                # Where sixty requests are all that an hour gives, none may be wasted.
                await self._store(pieces)
                raise
            await self._store(pieces)

    async def _store(self, pieces: Sequence[Piece]) -> None:
        if not await self.alive():
            raise Conflict(ingest.LOST)
        await ingest.stored(self.app, self.job, self.repo, pieces, self.report)
        self.known |= {(piece.kind, piece.key): piece.revision for piece in pieces}
        self.marks.is_told = self.marks.is_told or bool(pieces)
        if self.app.now() > self.over:
            raise Enough(ingest.LOST)

    async def _gone(self, kind: str, keys: Sequence[str]) -> None:
        if keys:
            await ingest.gone(self.app, self.job, self.repo, kind, keys, self.report)
            self.known = {name: told for name, told in self.known.items() if name[0] != kind or name[1] not in keys}

    async def _issue(self, one: Issue) -> list[Piece]:
        comments = await self._said(Comment, f"issues/{one.number}/comments") if one.comments else []
        if comments is None and await self._is_gone("issue", one.number):
            return []
        return await asyncio.to_thread(github_pieces.issue, one, comments or [])

    async def _pull(self, one: Pull) -> list[Piece]:
        reviews = await self._said(Review, f"pulls/{one.number}/reviews")
        if reviews is None and await self._is_gone("pull", one.number):
            return []
        # A remark on a line belongs to a review, so without reviews there are none.
        remarks = await self._said(Comment, f"pulls/{one.number}/comments") if reviews else []
        comments = await self._said(Comment, f"issues/{one.number}/comments")
        return await asyncio.to_thread(github_pieces.pull, one, reviews or [], remarks or [], comments or [])

    async def _said(self, kind: type[S], what: str) -> list[S] | None:
        """What was said to an item; None when GitHub does not show it."""
        try:
            found = await self.hub.all(kind, self._first(what), MOST_SAID)
        except Missing:
            return None
        if len(found) == MOST_SAID:
            self._note(f"Of {what} only the first {MOST_SAID:,} are read.")
        return found

    async def _is_gone(self, kind: str, number: int, home: str = "") -> bool:
        """Whether an item is no longer there, or in another repository; what it told is then superseded."""
        try:
            what = f"{github.repository(self.repo.full_name)}/{'pulls' if kind == 'pull' else 'issues'}/{number}"
            found = await self.hub.one(Issue, what)
        except Missing:
            found = None
        if found is not None and (not home or not found.repository_url or found.repository_url == home):
            return False
        await self._gone(
            kind, [key] if (key := github_pieces.key(kind, number)) in {each for _, each in self.known} else []
        )
        return True

    async def swept(self) -> None:
        """Look for what was deleted or moved, once in a while and when GitHub has announced it; no list tells it."""
        is_due = self.app.now() - self.marks.swept_at >= SWEEP or bool(self.repo.cursors.get(DELETED))
        if not is_due or not self.app.settings.github_token:
            return
        there, home = await self._numbers()
        missing = [
            (kind, number)
            for kind, key in self.known
            if kind != "release" and (number := int(key.rpartition("/")[2])) not in there
        ]
        for kind, number in missing[:MOST_ASKED]:
            await self._is_gone(kind, number, home)
        self.marks.swept_at = self.app.now()
        await self._noted({DELETED: False})

    async def _numbers(self) -> tuple[set[int], str]:
        """The numbers of all that is there, and what the repository calls itself."""
        there: set[int] = set()
        home = ""
        path = self._first("issues", state="all", sort="created", direction="asc")
        while path:
            page = await self.hub.page(Issue, path)
            assert page is not None, "without an etag nothing is unchanged"
            there |= {one.number for one in page.items}
            home = page.items[0].repository_url if page.items else home
            path = page.next
        return there, home
