"""The JSONL file of MCP's reference memory server, taken over into both stores."""

import json
from pathlib import Path

import pytest

from keepsake.store.engine import Tx
from tests.importers.peers import SECRET
from tests.importers.taking import Taking

pytestmark = pytest.mark.anyio


def written(path: Path, *entries: object) -> Path:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def graph(folder: Path) -> Path:
    return written(
        folder / "memory.jsonl",
        {
            "type": "entity",
            "name": "John_Smith",
            "entityType": "person",
            "observations": ["Speaks fluent Spanish", "Graduated in 2019"],
        },
        {"type": "entity", "name": "Anthropic", "entityType": "organization", "observations": []},
        {"type": "relation", "from": "John_Smith", "to": "Anthropic", "relationType": "works_at"},
    )


async def test_every_observation_and_relation_becomes_a_fact(taking: Taking, tmp_path: Path) -> None:
    told = await taking.take("mcp-memory", graph(tmp_path))

    assert (told.read, told.stored, told.broken, told.banks) == (4, 4, 0, {"default": 4})
    held = await taking.held("default")
    assert [(memory.kind, memory.text) for memory in held] == [
        ("fact", "John_Smith: Speaks fluent Spanish"),
        ("fact", "John_Smith: Graduated in 2019"),
        ("fact", "Anthropic (organization)"),
        ("fact", "John_Smith works at Anthropic"),
    ]
    assert held[3].metadata["relation"] == "works_at"
    assert held[0].happened_from is None


async def test_the_entities_are_linked_under_their_names(taking: Taking, tmp_path: Path) -> None:
    await taking.take("mcp-memory", graph(tmp_path))

    async def linked(tx: Tx) -> dict[str, tuple[str, int]]:
        rows = await tx.all(
            "SELECT e.name AS name, e.kind AS kind, count(*) AS n FROM entities e JOIN memory_entities m"
            " ON m.org = e.org AND m.bank = e.bank AND m.entity = e.id GROUP BY e.name, e.kind"
        )
        return {row["name"]: (row["kind"], int(row["n"])) for row in rows}

    found = await taking.app.store.read(1, linked)
    assert found["John_Smith"] == ("person", 3)
    assert found["Anthropic"] == ("organization", 2)


async def test_a_second_time_takes_only_what_was_added(taking: Taking, tmp_path: Path) -> None:
    path = graph(tmp_path)
    await taking.take("mcp-memory", path)
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    entries[0]["observations"].insert(0, "Prefers morning meetings")

    again = await taking.take("mcp-memory", written(path, *entries))

    assert (again.stored, again.known) == (1, 4)


async def test_broken_lines_are_counted_and_the_rest_is_taken(taking: Taking, tmp_path: Path) -> None:
    path = written(
        tmp_path / "memory.jsonl",
        '{"type": "entity", "name": "cut o',
        "[1, 2]",
        {"type": "entity", "name": 7, "observations": ["no name"]},
        {"type": "note", "text": "of some other tool"},
        {"type": "relation", "from": "A", "to": "", "relationType": "knows"},
        {"type": "entity", "name": "Deploys", "entityType": "", "observations": ["Only on Fridays", 7, None]},
        "[" * 100_000,
    )

    told = await taking.take("mcp-memory", path)

    assert (told.stored, told.broken, told.where) == (1, 6, ["line 1", "line 2", "line 3"])


async def test_secrets_are_taken_out(taking: Taking, tmp_path: Path) -> None:
    entity = {"type": "entity", "name": "CI", "entityType": "service", "observations": [f"pushes with {SECRET}"]}

    told = await taking.take("mcp-memory", written(tmp_path / "memory.jsonl", entity))

    assert told.redacted == ["github-token"]
    assert SECRET not in repr(await taking.held("default"))
