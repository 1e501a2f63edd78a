"""The reference memory server of MCP: entities, observations and relations in one JSONL file."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from keepsake.core.errors import BadInput
from keepsake.core.words import digest
from keepsake.importers import lines
from keepsake.importers.lines import Entry
from keepsake.importers.record import Broken, Found, Record, Step, Steps, fit

NAME = "mcp-memory"
_JOINTS = re.compile(r"[_\s]+|(?<=[a-z])(?=[A-Z])")


def place() -> Path | None:
    """Where its file is, if its own variable says so; else it lies in whatever folder npx made."""
    told = os.environ.get("MEMORY_FILE_PATH")
    return Path(told).expanduser() if told else None


def found(path: Path) -> Found:
    """What there is to read."""
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Give the path of the memory server's JSONL file.")
    return Found(NAME, path, path.stat().st_size)


def read(path: Path) -> Steps:
    """Every observation of an entity and every relation as a fact."""
    for line in lines.read(path):
        records = list(_records(line.entry)) if line.entry else []
        for record in records:
            yield Step(record, line.end)
        if not records:
            yield Step(Broken(f"line {line.number}"), line.end)


def _records(entry: Entry) -> Iterator[Record]:
    """A line as facts; none when it is neither an entity nor a relation."""
    if entry.get("type") == "entity" and (name := fit(entry.get("name"))):
        type, told = fit(entry.get("entityType")), entry.get("observations")
        facts = [fit(one) for one in told if fit(one)] if isinstance(told, list) else []
        for fact in facts:
            yield _fact(f"{name}: {fact}", "entity", [name, fact], ((name, type),), {"entity": name, "type": type})
        if not facts:
            kind = f"{name} ({type})" if type else name
            yield _fact(kind, "entity", [name, ""], ((name, type),), {"entity": name, "type": type})
    if entry.get("type") == "relation":
        ends = origin, target, type = tuple(fit(entry.get(part)) for part in ("from", "to", "relationType"))
        if all(ends):
            text = f"{origin} {' '.join(_JOINTS.split(type)).lower()} {target}"
            told_as: dict[str, object] = {"from": origin, "to": target, "relation": type}
            yield _fact(text, "relation", list(ends), ((origin, ""), (target, "")), told_as)


def _fact(
    text: str, table: str, identity: list[str], entities: tuple[tuple[str, str], ...], told: dict[str, object]
) -> Record:
    # The file has no ids: what a line says is what it is.
    id = digest("\x1f".join(identity))
    return Record(
        key=f"{NAME}:{table}:{id}",
        kind="fact",
        text=text,
        subtype=table,
        metadata={"peer": NAME, "peer_id": id, **{name: value for name, value in told.items() if value}},
        entities=entities,
    )
