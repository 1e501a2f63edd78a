"""The git part of a sync: what is new in a repository since it was read last, and what is no longer there."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from keepsake.context import App
from keepsake.core import address, secrets, sections
from keepsake.core.errors import Conflict
from keepsake.ops import git_pieces, ingest
from keepsake.ops.embedding import Alive
from keepsake.ops.git_pieces import Document, Origin
from keepsake.ops.pieces import Piece
from keepsake.services import github, mirror
from keepsake.services.git import Commit, Entry, Failed, Git, Refs
from keepsake.store import bulk, jobs, repos
from keepsake.store.engine import Tx
from keepsake.store.repos import File, Repo

#: Commits that are worked on at a time, rows of files in one transaction, documents in one reading.
AT_ONCE, ROWS, DOCUMENTS = 400, 5_000, 50
_DOCUMENTS = ("readme", "file")
EMPTY = "The repository is empty: nothing was committed yet."
SHALLOW = "The repository is a shallow clone: older commits are not there."
PARTIAL = "Objects are missing from the repository, so not all of it could be read."


async def read(app: App, job: jobs.Job, repo: Repo, alive: Alive, report: ingest.Report) -> Repo:
    """Read what is new; tells how the repository stands afterwards. What was left out stands in the report's notes."""
    git = await _opened(app, job, repo, report)
    refs = await git.refs()
    repo = await _recognised(app, job, repo, git, refs)
    if not refs.commits:
        report.notes.append(EMPTY)
    if git.shallow:
        report.notes.append(SHALLOW)
    return await Reading(app, job, repo, alive, report, git, refs).run()


async def _opened(app: App, job: jobs.Job, repo: Repo, report: ingest.Report) -> Git:
    if repo.is_local:
        return await asyncio.to_thread(Git, repo.remote)
    report.begin("fetching", 0, 0.0, 0.0)
    await report.tell(app, job)
    place = mirror.place(app.settings.data_dir, job.org, job.bank)
    is_github = address.full_name(repo.remote, github.website(app.settings.github_url))
    private = mirror.authorised(repo.remote, app.settings.github_token if is_github else "")
    await mirror.fetch(repo.remote, place, app.settings.sync_repo_limit * 1_000_000, private)
    return await asyncio.to_thread(Git, place)


async def _recognised(app: App, job: jobs.Job, repo: Repo, git: Git, refs: Refs) -> Repo:
    """Note what GitHub calls it, also where a folder only came from there."""
    website = github.website(app.settings.github_url)
    # What a folder says of its origin has no port.
    origin = (git.remote, website.partition(":")[0]) if repo.is_local else (repo.remote, website)
    name = address.full_name(*origin)
    if (repo.full_name, repo.branch) == (name, refs.branch):
        return repo
    return await ingest.noted(app, job, full_name=name, branch=refs.branch)


def _mark(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


@dataclass(slots=True)
class Reading:
    """One reading of a repository."""

    app: App
    job: jobs.Job
    repo: Repo
    alive: Alive
    report: ingest.Report
    git: Git
    refs: Refs
    #: When documents were last changed, as far as the commits that were read tell it.
    changed_at: dict[str, int] = field(default_factory=dict)

    @property
    def tips(self) -> list[str]:
        """The commits that refs name."""
        return sorted(set(self.refs.commits.values()))

    def _cursor(self, name: str) -> list[str]:
        """Commits that a former sync read, or began to read."""
        held = self.repo.cursors.get(name)
        return [one for one in held if isinstance(one, str)] if isinstance(held, list) else []

    @property
    def _state(self) -> str:
        """All that must be as it was for nothing to be read."""
        tags = [f"{tag.name} {tag.sha} {tag.message}" for tag in self.refs.tags]
        return _mark([*self.tips, *tags, *self.git.shallow])

    async def run(self) -> Repo:
        """Commits, tags, then files; each part is noted when it is done. A bank that was cleared is filled again."""
        state, shallow = self._state, _mark(self.git.shallow)
        is_cleared = not await self._tells("commit")
        if self.repo.cursors.get("state") != state or is_cleared:
            await self._commits(is_anew=is_cleared or self.repo.cursors.get("shallow") != shallow)
            await self._tags()
            marks = {"refs": self.tips, "reading": [], "state": state, "shallow": shallow}
            self.repo = await ingest.noted(self.app, self.job, marks)
        head = self.refs.head
        is_cleared = not await self._tells("file", "tree")
        if head and (self.repo.cursors.get("files") != head or is_cleared):
            await self._files(is_anew=is_cleared)
        return self.repo

    async def _tells(self, kind: str, key: str = "") -> bool:
        org, bank = self.job.org, self.job.bank
        return await self.app.store.read(org, lambda tx: bulk.tells(tx, org, bank, kind, key))

    async def _ours(self) -> None:
        if not await self.alive():
            raise Conflict(ingest.LOST)

    async def _commits(self, *, is_anew: bool) -> None:
        before = self._cursor("refs")
        there = await self.git.exists(*before, *self._cursor("reading"))
        # Noted before anything is stored, so that a sync which is cut off here leaves nothing that no one knows of.
        began = sorted({*self._cursor("reading"), *self.tips})
        await ingest.noted(self.app, self.job, {"reading": began})
        known = [] if is_anew else [sha for sha in before if sha in there]
        total = await self.git.count(self.tips, known) if self.tips else 0
        self.report.begin("reading commits", total, 0.02, 0.5)
        if total:
            try:
                await self._streamed(known, counted=True)
            except Failed as error:
                if not _is_missing(error):
                    raise
                self.report.notes.append(PARTIAL)
                self.report.begin("reading commits", total, 0.02, 0.5)
                await self._streamed(known, counted=False)
        await self._unreachable([*before, *self._cursor("reading")], there)

    async def _streamed(self, known: Sequence[str], *, counted: bool) -> None:
        origin = self._origin(None)
        batch: list[Piece] = []
        async with aclosing(self.git.commits(self.tips, known, counted=counted)) as commits:
            async for one in commits:
                batch.append(self._piece(one, origin))
                if len(batch) >= AT_ONCE:
                    await self._store(batch)
                    batch = []
        await self._store(batch)

    def _piece(self, one: Commit, origin: Origin) -> Piece:
        if one.sha in self.git.shallow:
            # Its parents are not there, so git would take all files for new ones.
            one = replace(one, changes=(), files=0, added=0, removed=0)
        for change in one.changes:
            if one.at is not None and change.path.lower().endswith(sections.SUFFIXES):
                self.changed_at[change.path] = max(one.at, self.changed_at.get(change.path, 0))
        digest = self.app.store.digest(f"email:{one.email.lower()}")[:16] if one.email else ""
        return git_pieces.commit(one, origin, digest)

    def _origin(self, at: int | None) -> Origin:
        website = github.website(self.app.settings.github_url)
        url = f"https://{website}/{self.repo.full_name}" if self.repo.full_name else ""
        return Origin(url, self.refs.head, at)

    async def _store(self, pieces: Sequence[Piece]) -> None:
        await self._ours()
        if pieces:
            await ingest.stored(self.app, self.job, self.repo, pieces, self.report)

    async def _unreachable(self, before: Sequence[str], there: set[str]) -> None:
        """Supersede commits that no ref reaches any more."""
        if before and there >= set(before):
            gone = await self.git.reached(before, self.tips)
        elif self.git.shallow:
            # What lies beyond its edge may be stored from a fuller clone, and is not gone.
            return
        else:
            kept = await self._stored_keys("commit")
            gone = sorted(kept.difference(await self.git.reached(self.tips, [])) if kept else ())
        known = await self._stored_keys("commit") if gone else set()
        await self._gone("commit", [sha for sha in gone if sha in known])

    async def _stored_keys(self, *kinds: str) -> set[str]:
        org, bank = self.job.org, self.job.bank
        return {key for _, key in await self.app.store.read(org, lambda tx: bulk.revisions(tx, org, bank, kinds))}

    async def _gone(self, kind: str, keys: Sequence[str]) -> None:
        await self._ours()
        if keys:
            await ingest.gone(self.app, self.job, self.repo, kind, keys, self.report)

    async def _tags(self) -> None:
        self.report.begin("reading tags", len(self.refs.tags), 0.5, 0.5)
        origin = self._origin(None)
        await self._store([git_pieces.tag(one, origin) for one in self.refs.tags])
        names = {tag.name for tag in self.refs.tags}
        await self._gone("tag", sorted(await self._stored_keys("tag") - names))

    async def _files(self, *, is_anew: bool) -> None:
        head = self.refs.head
        self.report.begin("reading files", 0, 0.5, 0.5)
        entries = await self.git.tree(head)
        origin = self._origin(await self.git.date(head))
        await self._documents(entries, origin, is_anew=is_anew)
        await self._store([git_pieces.tree(entries, origin)])
        await self._listed(entries)
        notes = sum(git_pieces.is_note(entry.path) for entry in entries)
        self.repo = await ingest.noted(self.app, self.job, {"files": head}, head=head, folder_files=notes)

    async def _documents(self, entries: Sequence[Entry], origin: Origin, *, is_anew: bool) -> None:
        limit = self.app.settings.sync_file_limit * 1000
        chosen = await asyncio.to_thread(git_pieces.documents, entries, limit)
        if left := chosen.large + chosen.over:
            self.report.notes.append(f"{left} documents were left out: too large, or too many.")
        org, bank = self.job.org, self.job.bank
        known = await self.app.store.read(org, lambda tx: bulk.revisions(tx, org, bank, _DOCUMENTS))
        new = [one for one in chosen.documents if is_anew or known.get((one.kind, one.entry.path)) != one.entry.blob]
        self.report.begin("reading documents", len(new), 0.5, 0.6)
        silent: set[tuple[str, str]] = set()
        for start in range(0, len(new), DOCUMENTS):
            silent |= await self._sections(new[start : start + DOCUMENTS], origin, limit)
        there = {(one.kind, one.entry.path) for one in chosen.documents} - silent
        for kind in _DOCUMENTS:
            gone = [key for of, key in known if of == kind and (of, key) not in there and key != "tree"]
            await self._gone(kind, sorted(gone))

    async def _sections(self, part: Sequence[Document], origin: Origin, limit: int) -> set[tuple[str, str]]:
        """Store what these documents say; tells which of them say nothing."""
        blobs = await self._blobs([one.entry.blob for one in part], limit)

        def told() -> list[list[Piece]]:
            dates = [self.changed_at.get(one.entry.path) for one in part]
            return [
                git_pieces.document(one, blobs.get(one.entry.blob, b""), origin, at)
                for one, at in zip(part, dates, strict=True)
            ]

        found = await asyncio.to_thread(told)
        await self._store([piece for pieces in found for piece in pieces])
        return {
            (one.kind, one.entry.path)
            for one, pieces in zip(part, found, strict=True)
            if not pieces and one.entry.blob in blobs
        }

    async def _blobs(self, names: Sequence[str], limit: int) -> dict[str, bytes]:
        try:
            return {sha: held async for sha, held in self.git.blobs(names, limit)}
        except Failed as error:
            if not _is_missing(error):
                raise
            if PARTIAL not in self.report.notes:
                self.report.notes.append(PARTIAL)
            return {}

    async def _listed(self, entries: Sequence[Entry]) -> None:
        """Bring the list of files to this revision."""
        org, bank = self.job.org, self.job.bank
        known = await self.app.store.read(org, lambda tx: repos.files(tx, org, bank))
        # All paths at once are looked through in a tenth of the time.
        is_clean = not secrets.redacted("\n".join(entry.path for entry in entries)).cuts
        clean = entries if is_clean else [entry for entry in entries if not secrets.redacted(entry.path).cuts]
        now = {entry.path: File(entry.path, entry.blob, entry.size, entry.kind) for entry in clean}
        changed = [file for path, file in now.items() if known.get(path) != file]
        gone = [path for path in known if path not in now]
        for start in range(0, max(len(changed), len(gone)), ROWS):
            some, away = changed[start : start + ROWS], gone[start : start + ROWS]
            await self._ours()
            await self.app.store.write(org, lambda tx: self._put(tx, some, away))  # noqa: B023

    async def _put(self, tx: Tx, changed: Sequence[File], gone: Sequence[str]) -> None:
        if not await jobs.keep(tx, self.job, self.app.now()):
            raise Conflict(ingest.LOST)
        await repos.put_files(tx, self.job.org, self.job.bank, changed, gone)


def _is_missing(error: Failed) -> bool:
    """Whether git stopped at an object that is not there."""
    said = str(error)
    return any(
        words in said
        for words in ("unable to read", "could not fetch", "bad object", "lazy fetch", "missing", "promisor")
    )
