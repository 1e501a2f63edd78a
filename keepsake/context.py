"""Ctx: who asks, the store, the services and the clock; frozen, and passed first everywhere."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from keepsake.core import clock
from keepsake.core.asking import Asker
from keepsake.core.errors import Conflict, Misconfigured
from keepsake.core.later import Later
from keepsake.core.lazy import lazy
from keepsake.core.principal import Principal
from keepsake.services import embed
from keepsake.settings import Settings
from keepsake.store import audit, embeddings, migrate
from keepsake.store.engine import Engine, Tx
from keepsake.store.handed_out import Outbox
from keepsake.store.sqlite import UNUSABLE, Sqlite
from keepsake.store.store import Store, opened

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from keepsake.core.project import Project
    from keepsake.store import migrate_postgres, postgres, projects
else:
    postgres = lazy("keepsake.store.postgres")
    migrate_postgres = lazy("keepsake.store.migrate_postgres")
    projects = lazy("keepsake.store.projects")

T = TypeVar("T")
#: Characters that the quick model takes in a fraction of a millisecond.
INLINE = 4_000
Report = Callable[[float, float, str], Awaitable[None]]
#: Given a result as far as it has come; None takes that back.
Follow = Callable[[BaseModel | None], Awaitable[None]]
#: Where a request comes in; the background's come from nowhere.
Surface = Literal["mcp", "web", "cli", ""]


@dataclass(slots=True)
class Embedding:
    """The models of meaning, kept off the event loop, with the numbers the store knows them by."""

    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "embedding"))
    # Questions must not wait behind a batch from the background.
    _background: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "sharpening"))
    known: dict[str, embeddings.Model] = field(default_factory=dict)

    async def static(self, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """Vectors that are made at once: a short text takes less time than asking a thread."""
        if "static" in self.known and sum(map(len, texts)) < INLINE:
            return embed.static().embed(texts)
        return await self._run(lambda: embed.static().embed(texts))

    def at_once(self, told: str) -> "npt.NDArray[np.float32]":
        """One vector inside a transaction; `static_model` was awaited before, so nothing is loaded here."""
        row: npt.NDArray[np.float32] = embed.static().embed([told])[0]
        return row

    async def sharp(self, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """Vectors that tell meanings apart better."""
        return await self._run(lambda: embed.sharp().embed(texts))

    async def sharpened(self, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """The same for the background, which never holds up a question."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._background, lambda: embed.sharp().embed(texts))

    async def static_model(self, store: Store) -> embeddings.Model:
        """What the store knows the quick model as."""
        if "static" not in self.known:
            model = _described(await self._run(embed.static), "static")
            self.known["static"] = await store.engine.claim(lambda tx: embeddings.register(tx, model))
        return self.known["static"]

    async def sharp_model(self, store: Store) -> embeddings.Model:
        """What the store knows the packaged better model as, once it is the one to use."""
        if "sharp" not in self.known:
            model = _described(await self._run(embed.sharp), "retired")
            self.known["sharp"] = await store.engine.claim(lambda tx: embeddings.bring_in(tx, model))
        return self.known["sharp"]

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread once its work is done."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._background.shutdown(wait=True, cancel_futures=True)


def _described(made: embed.Embedder, state: str) -> embeddings.Model:
    return embeddings.Model(0, made.name, made.dim, made.zero, made.one, state)


async def _unreported(progress: float, total: float, message: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """What a change gives back, and what the audit log says of it."""

    value: T
    bank: int
    targets: Sequence[int]
    #: What was written, to be digested; never kept.
    content: str = ""


@dataclass(slots=True)
class Consent:
    """Leave to make one change, used up in the very transaction that makes it."""

    proposal: int
    use: Callable[[Tx], Coroutine[Any, Any, None]]
    is_used: bool = False


class Connection(Protocol):
    """The client's session, as far as operations know it."""

    @property
    def id(self) -> str:
        """What tells it from every other."""
        ...

    @property
    def bank(self) -> str:
        """Id of the bank that it works in; empty before its client chose one."""
        ...

    @property
    def choosing(self) -> asyncio.Lock:
        """Held while its user is asked for one."""
        ...

    async def bind(self, bank: int) -> None:
        """Let its later requests work in a bank."""
        ...


@dataclass(frozen=True, slots=True)
class App:
    """What lives as long as the process."""

    settings: Settings
    store: Store
    embedding: Embedding = field(default_factory=Embedding)
    now: Callable[[], int] = clock.now
    #: What was handed out and is not noted yet.
    outbox: Outbox = field(default_factory=Outbox)
    #: Set when there is new work for the background.
    work: asyncio.Event = field(default_factory=asyncio.Event)
    later: Later = field(default_factory=Later)
    #: Set when a command may be run.
    runs: asyncio.Event = field(default_factory=asyncio.Event)

    def ctx(
        self, principal: Principal, bank: str | None = None, report: Report = _unreported, surface: Surface = "mcp"
    ) -> "Ctx":
        """The context of one request; `bank` is the one its path, header or flag names."""
        return Ctx(self, principal, bank, secrets.token_hex(8), report, surface=surface)


@dataclass(frozen=True, slots=True)
class Ctx:
    """One request."""

    app: App
    principal: Principal
    #: The bank that the request itself names; it is made by its first write.
    bank: str | None
    request_id: str
    report: Report
    #: The operation that runs, set by dispatch.
    operation: str = ""
    #: Names of the secrets that dispatch took out of what was given.
    redacted: tuple[str, ...] = ()
    #: The project that the bank was chosen for; its first write makes that bank, or claims it.
    project: "Project | None" = None
    #: Where the request came in; the usage log tells it.
    surface: Surface = "mcp"
    #: By what its change was allowed, where that was proposed before.
    consent: Consent | None = None
    #: The client's session; a request may come without one.
    connection: Connection | None = None
    #: Whether a header or flag names the bank, which no session changes.
    is_pinned: bool = False
    #: The client, where it can be asked something in the middle of its call.
    asker: Asker | None = None
    #: When a person last gave their password, where they look at a page of ours.
    signed_in_at: int | None = None
    #: Who reads along while an answer is written.
    follow: Follow | None = None

    @property
    def store(self) -> Store:
        """The store."""
        return self.app.store

    @property
    def org(self) -> int:
        """The org whose data this request sees."""
        return self.principal.org

    @property
    def now(self) -> int:
        """The present moment."""
        return self.app.now()

    def acting(self, scopes: frozenset[str]) -> "Ctx":
        """The same request, reaching only the banks where its principal has these scopes."""
        principal = self.principal.acting(scopes)
        return self if principal is self.principal else replace(self, principal=principal)

    def running(self, operation: str) -> "Ctx":
        """The same request, inside an operation."""
        return replace(self, operation=operation)

    def without(self, redacted: tuple[str, ...]) -> "Ctx":
        """The same request, knowing which secrets were taken out of it."""
        return replace(self, redacted=redacted) if redacted else self

    async def read(self, body: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
        """Read on one snapshot."""
        return await self.store.read(self.org, self._at_home(body))

    async def change(self, body: Callable[[Tx], Coroutine[Any, Any, Changed[T]]]) -> T:
        """Write, with the audit entry in the same transaction."""

        consent = self.consent if self.consent is not None and not self.consent.is_used else None

        async def audited(tx: Tx) -> T:
            if consent is not None:
                await consent.use(tx)
            changed = await body(tx)
            digest = self.store.digest(changed.content) if changed.content else ""
            entry = audit.Entry(
                self.org, changed.bank, self.now, self.principal.name, self.operation, changed.targets, digest
            )
            await audit.append(tx, entry)
            if consent is not None:
                applied = replace(entry, operation="proposal.apply", targets=[consent.proposal], digest="")
                await audit.append(tx, applied)
            return changed.value

        value = await self.store.write(self.org, self._at_home(audited))
        if consent is not None:
            consent.is_used = True
        self.app.work.set()
        return value

    def _at_home(self, body: Callable[[Tx], Coroutine[Any, Any, T]]) -> Callable[[Tx], Coroutine[Any, Any, T]]:
        """The same work, for a project only while the bank is its own."""
        if self.project is None:
            return body
        project = self.project

        async def checked(tx: Tx) -> T:
            # Until the project's first write, another of its name may get the bank between two transactions.
            self.stay_in(await projects.expected(tx, self.org, project))
            return await body(tx)

        return checked

    def stay_in(self, bank: str) -> None:
        """Refuse a bank that the project has got after the request was let into another."""
        if bank != self.bank:
            raise Conflict("The bank of this project has just become another one. Try again.")


@asynccontextmanager
async def open(settings: Settings) -> AsyncIterator[App]:
    """Open the store, bring its schema up to date and build the services."""
    store = await opened(await _engine(settings))
    app = App(settings, store)
    try:
        yield app
    finally:
        await app.later.done()
        await asyncio.to_thread(app.embedding.close)
        await store.close()


async def _engine(settings: Settings) -> Engine:
    if settings.database_url:
        await migrate_postgres.postgres_database(settings.database_url)
        return await postgres.connected(settings.database_url)
    path = settings.data_dir / "keepsake.db"
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(migrate.sqlite_file, path)
        await asyncio.to_thread(migrate.counters_file, path.with_name("counters.db"))
    except (OSError, *UNUSABLE) as error:
        raise Misconfigured(f"Cannot use {path} ({error}). `keepsake doctor` tells how to mend it.") from error
    return Sqlite(path)
