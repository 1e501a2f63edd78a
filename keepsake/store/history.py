"""The history of a project: which commits touched a path, fell into a time or speak of a name, and what was cited."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core import words as text
from keepsake.core.when import Window
from keepsake.store import search
from keepsake.store.engine import Tx, Value, Wanted
from keepsake.store.filters import HELD, SAID_AT, Filter
from keepsake.store.repos import File

#: Memories that speak of a name and are looked through for the earliest.
SPOKEN = 400
_HERE = f"m.org = :org AND m.bank = :bank AND {HELD}"


@dataclass(frozen=True, slots=True)
class Touch:
    """A commit that changed a file, and when."""

    memory: int
    at: int


def _values(given: Filter) -> dict[str, Value]:
    return {"org": given.org, "bank": given.bank, "at": given.at}


async def paths(tx: Tx, given: Filter, said: Sequence[str], limit: int) -> list[str]:
    """The files of a project that words may mean: whole paths, ends of paths, folders, names without their ending."""
    values: dict[str, Value] = {"org": given.org, "bank": given.bank, "limit": limit}
    clauses = []
    for n, word in enumerate(said):
        escaped = word.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
        for m, form in enumerate((f"{escaped}/%", f"{escaped}.%")):
            clauses.append(f"'/' || lower(path) LIKE :s{n}_{m} ESCAPE '!'")
            values[f"s{n}_{m}"] = f"%/{form}"
        clauses.append(f"'/' || lower(path) LIKE :s{n} ESCAPE '!'")
        values[f"s{n}"] = f"%/{escaped}"
    if not clauses:
        return []
    rows = await tx.all(
        f"SELECT path FROM repo_files WHERE org = :org AND bank = :bank AND ({' OR '.join(clauses)})"
        " ORDER BY path LIMIT :limit",
        **values,
    )
    return [row["path"] for row in rows]


async def under(tx: Tx, given: Filter, folder: str) -> list[File]:
    """The files below a folder, which ends in `/`; all of them for an empty one."""
    escaped = folder.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    rows = await tx.all(
        "SELECT path, blob, size, kind FROM repo_files WHERE org = :org AND bank = :bank"
        " AND path LIKE :under ESCAPE '!' ORDER BY path",
        org=given.org,
        bank=given.bank,
        under=f"{escaped}%",
    )
    return [file for file in (File(**row) for row in rows) if file.path.startswith(folder)]


async def touching(tx: Tx, given: Filter, files: Sequence[str], window: Window, limit: int) -> list[Touch]:
    """The commits that changed one of these files within a time, the latest first."""
    return await _touching(tx, given, files, window, f"DESC LIMIT {int(limit)}")


async def first_touching(tx: Tx, given: Filter, files: Sequence[str], window: Window, limit: int) -> list[Touch]:
    """The same, the earliest first."""
    return await _touching(tx, given, files, window, f"ASC LIMIT {int(limit)}")


async def _touching(tx: Tx, given: Filter, files: Sequence[str], window: Window, order: str) -> list[Touch]:
    rows = await tx.all(
        "SELECT f.memory AS memory, min(f.at) AS touched FROM memory_files f JOIN memories m"
        " ON m.org = f.org AND m.bank = f.bank AND m.id = f.memory"
        f" WHERE f.org = :org AND f.bank = :bank AND f.path = ANY_TEXT(:files) AND f.wrote = 1"
        f" AND f.at >= :start AND f.at < :end AND {_HERE} GROUP BY f.memory ORDER BY touched {order}",
        files=list(files),
        start=window.start,
        end=window.end,
        **_values(given),
    )
    return [Touch(row["memory"], row["touched"]) for row in rows]


async def within(tx: Tx, given: Filter, window: Window, subtypes: Sequence[str], limit: int) -> list[int]:
    """What a repository tells of a time, the latest first."""
    rows = await tx.all(
        f"SELECT m.id AS id FROM memories m WHERE {_HERE} AND m.kind = 'chunk' AND {SAID_AT} >= :start"
        f" AND {SAID_AT} < :end AND m.subtype = ANY_TEXT(:subtypes) ORDER BY {SAID_AT} DESC, m.id DESC LIMIT :limit",
        start=window.start,
        end=window.end,
        subtypes=list(subtypes),
        limit=limit,
        **_values(given),
    )
    return [row["id"] for row in rows]


async def under_keys(tx: Tx, given: Filter, kinds: Sequence[str], keys: Sequence[str]) -> list[int]:
    """The memories of what a repository calls by these keys."""
    rows = await tx.all(
        "SELECT m.id AS id FROM sources s JOIN memories m ON m.org = s.org AND m.bank = s.bank AND m.source = s.id"
        " WHERE s.org = :org AND s.bank = :bank AND s.kind = ANY_TEXT(:kinds) AND s.key = ANY_TEXT(:keys)"
        f" AND s.replaced_by IS NULL AND {_HERE} ORDER BY m.id",
        kinds=list(kinds),
        keys=list(keys),
        **_values(given),
    )
    return [row["id"] for row in rows]


async def commits(tx: Tx, given: Filter, beginning: str, limit: int) -> list[str]:
    """The names of the commits that begin like this."""
    rows = await tx.all(
        "SELECT key FROM sources WHERE org = :org AND bank = :bank AND kind = 'commit' AND key LIKE :beginning"
        " AND replaced_by IS NULL ORDER BY key LIMIT :limit",
        org=given.org,
        bank=given.bank,
        beginning=f"{beginning}%",
        limit=limit,
    )
    return [row["key"] for row in rows]


async def versions(tx: Tx, given: Filter) -> dict[str, int]:
    """When each tag and release was made."""
    rows = await tx.all(
        f"SELECT s.key AS key, {SAID_AT} AS made FROM sources s JOIN memories m"
        " ON m.org = s.org AND m.bank = s.bank AND m.source = s.id WHERE s.org = :org AND s.bank = :bank"
        f" AND s.kind = ANY_TEXT(:kinds) AND s.replaced_by IS NULL AND {_HERE}",
        kinds=["tag", "release"],
        **_values(given),
    )
    return {row["key"].removeprefix("release/"): row["made"] for row in rows}


async def speaking(tx: Tx, given: Filter, name: str) -> list[int]:
    """Memories whose text or files hold all words of a name, in no order; of very many, the latest."""
    before = search.prefix(given.bank)
    stems = [before + word for word in text.asked(name)]
    if not stems:
        return []
    return [one.id for one in await tx.search_text(Wanted(given.org, given.bank, [stems], SPOKEN))]


async def cited(tx: Tx, given: Filter, kind: str, keys: Sequence[str]) -> set[str]:
    """Those of these keys under which a repository still tells something."""
    rows = await tx.all(
        "SELECT DISTINCT s.key AS key FROM sources s JOIN memories m"
        " ON m.org = s.org AND m.bank = s.bank AND m.source = s.id"
        " WHERE s.org = :org AND s.bank = :bank AND s.kind = :kind AND s.key = ANY_TEXT(:keys)"
        f" AND s.replaced_by IS NULL AND {_HERE}",
        kind=kind,
        keys=list(keys),
        **_values(given),
    )
    return {row["key"] for row in rows}
