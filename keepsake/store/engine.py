"""What a database must offer; everything else is SQL written once.

SQL is written for both stores: parameters as `:name`, lists as `= ANY_INT(:ids)` or `= ANY_TEXT(:tags)`.
A transaction's body awaits nothing but its own statements, because SQLite's writer thread drives it alone; work that
keeps a processor busy goes through `Tx.aside`.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from keepsake.core.query import Node


T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
Value = str | int | float | bytes | None | Sequence[int] | Sequence[str]
Row = Mapping[str, Any]
Vector = Sequence[float]
#: A statement with its values; what it selects must be numbers and texts.
Asked = tuple[str, Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """A question to the database that can be asked together with others, and how its answer is read."""

    sql: str
    values: Mapping[str, Value]
    read: Callable[[list[Row]], T]

    @property
    def asked(self) -> Asked:
        """The question as `Tx.gather` takes it."""
        return self.sql, self.values

    async def of(self, tx: "Tx") -> T:
        """Ask it alone."""
        return self.read(await tx.all(self.sql, **self.values))


async def both(tx: "Tx", one: Ask[T], two: Ask[U]) -> tuple[T, U]:
    """Ask two questions at once."""
    first, second = await tx.gather(one.asked, two.asked)
    return one.read(first), two.read(second)


async def together(tx: "Tx", one: Ask[T], two: Ask[U], three: Ask[V]) -> tuple[T, U, V]:
    """Ask three questions at once."""
    first, second, third = await tx.gather(one.asked, two.asked, three.asked)
    return one.read(first), two.read(second), three.read(third)


@dataclass(frozen=True, slots=True)
class Doc:
    """The lexemes of one memory, by field; every word already carries its bank's prefix."""

    id: int
    org: int
    bank: int
    body: Sequence[str]
    title: Sequence[str] = ()
    concepts: Sequence[str] = ()
    facts: Sequence[str] = ()
    files: Sequence[str] = ()
    context: Sequence[str] = ()

    @property
    def length(self) -> int:
        """How many words stand in the fields that describe the memory itself."""
        return len(self.title) + len(self.body) + len(self.concepts) + len(self.facts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which documents to fetch: any of the groups, all words of a group."""

    org: int
    bank: int
    groups: Sequence[Sequence[str]]
    limit: int
    #: About how many documents fit; many of them are found by walking from the newest.
    expected: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A fetched document, its fields as words between blanks."""

    id: int
    title: str
    body: str
    context: str
    length: int
    #: Its concepts, facts and files.
    more: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """Memories that may fit a tree of operators: more may come than fit, but none is missed."""

    org: int
    bank: int
    tree: "Node"
    #: What every word of the bank begins with.
    letters: str
    #: Summaries alone, or all but them.
    summaries: bool
    #: Only ids below this one, the newest first.
    below: int
    limit: int


@dataclass(frozen=True, slots=True)
class Nearest:
    """A search by vector within one bank and model."""

    org: int
    bank: int
    model: int
    vector: Any = field(repr=False)
    limit: int = 100
    #: Only these memories, when given.
    among: Sequence[int] | None = None
    #: These as well, however far away.
    also: Sequence[int] = ()


class Tx(Protocol):
    """One transaction."""

    async def all(self, sql: str, **values: Value) -> list[Row]: ...

    async def one(self, sql: str, **values: Value) -> Row | None: ...

    async def planned(self, sql: str, **values: Value) -> list[Row]:
        """Ask what is best planned for these very values, as rare ones are, and not once for all."""
        ...

    async def gather(self, *asked: Asked) -> list[list[Row]]:
        """Ask several questions at once: one round trip, where there is a way to go."""
        ...

    async def run(self, sql: str, **values: Value) -> int:
        """Run a statement and tell how many rows it touched."""
        ...

    async def many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None: ...

    async def index(self, doc: Doc) -> None:
        """Add a document to the text index, or replace it."""
        ...

    async def unindex(self, org: int, bank: int, ids: Sequence[int]) -> None: ...

    async def search_text(self, wanted: Wanted) -> list[Found]: ...

    async def match(self, match: Match) -> list[int]: ...

    async def put_vector(self, row: "VectorRow") -> None:
        """Write a memory's one vector, replacing the one it had."""
        ...

    async def search_vectors(self, *asked: Nearest) -> list[list[tuple[int, float]]]:
        """Return memories and their cosines, nearest first, for each search."""
        ...

    async def within(self, org: int) -> None:
        """See what this org sees from here on; for who looked across orgs and found whose the rest is."""
        ...

    async def aside(self, work: Callable[[], T]) -> T:
        """Do a few milliseconds of work that asks nothing of the database, away from everyone else's."""
        ...

    async def lock_audit(self, org: int, bank: int) -> Row | None:
        """Return the head of an audit chain, locked until the end of the transaction."""
        ...


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A memory's vector as stored."""

    org: int
    bank: int
    memory: int
    model: int
    vector: Any = field(repr=False)
    text_hash: str = ""
    seq: int = 0


Body = Callable[[Tx], Coroutine[Any, Any, T]]


class Engine(Protocol):
    """A database with its connections."""

    name: str

    async def read(self, org: int, body: Body[T]) -> T:
        """Run a body that only reads, on one snapshot."""
        ...

    async def write(self, org: int, body: Body[T]) -> T:
        """Run a body that writes; returns after the commit is durable."""
        ...

    async def look(self, body: Body[T]) -> T:
        """Run a body that only reads, across orgs: whose credential is this?"""
        ...

    async def claim(self, body: Body[T]) -> T:
        """Run a body that writes across orgs: jobs, nodes, models."""
        ...

    async def volatile(self, body: Body[T]) -> T:
        """Run a body on the counters, which no one waits for to be durable."""
        ...

    async def index_model(self, model: int, dim: int) -> None:
        """Prepare for many vectors of a model; doing it again changes nothing."""
        ...

    async def drop_model(self, model: int) -> None:
        """Undo that for a model that has no vectors any more."""
        ...

    async def settle(self) -> None:
        """Take notice of many rows that came at once."""
        ...

    async def close(self) -> None: ...
