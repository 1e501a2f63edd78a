"""What a database must offer; everything else is SQL written once.

SQL is written for both stores: parameters as `:name`, lists as `= ANY_INT(:ids)` or `= ANY_TEXT(:tags)`.
A transaction's body awaits nothing but its own statements, because SQLite's writer thread drives it alone.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Value = str | int | float | bytes | None | Sequence[int] | Sequence[str]
Row = Mapping[str, Any]
Vector = Sequence[float]


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


class Tx(Protocol):
    """One transaction."""

    async def all(self, sql: str, **values: Value) -> list[Row]: ...

    async def one(self, sql: str, **values: Value) -> Row | None: ...

    async def run(self, sql: str, **values: Value) -> int:
        """Run a statement and tell how many rows it touched."""
        ...

    async def many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None: ...

    async def index(self, doc: Doc) -> None:
        """Add a document to the text index, or replace it."""
        ...

    async def unindex(self, org: int, bank: int, ids: Sequence[int]) -> None: ...

    async def search_text(self, wanted: Wanted) -> list[Found]: ...

    async def put_vector(self, row: "VectorRow") -> None:
        """Write a memory's one vector, replacing the one it had."""
        ...

    async def search_vector(self, nearest: Nearest) -> list[tuple[int, float]]:
        """Return memories and their cosines, nearest first."""
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

    async def settle(self) -> None:
        """Take notice of many rows that came at once."""
        ...

    async def close(self) -> None: ...
