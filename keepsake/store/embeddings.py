"""Embedding models and the one vector that each memory has."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store import threads
from keepsake.store.engine import Ask, Row, Tx


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose vectors the store holds."""

    id: int
    name: str
    dim: int
    zero: float
    one: float
    state: str


def _model(row: Row) -> Model:
    return Model(row["model"], row["name"], row["dim"], row["zero"], row["one"], row["state"])


async def models(tx: Tx) -> list[Model]:
    """Every model known."""
    return [_model(row) for row in await tx.all("SELECT model, name, dim, zero, one, state FROM embedding_models")]


async def register(tx: Tx, model: Model) -> Model:
    """Make a model known under the next free number, or return what is known of it."""
    while True:
        known = {row.name: row for row in await models(tx)}
        if model.name in known:
            return known[model.name]
        # Another process may take the number or bring the model in the same moment: look again then.
        await tx.run(
            "INSERT INTO embedding_models (model, name, dim, zero, one, state)"
            " VALUES (:model, :name, :dim, :zero, :one, :state) ON CONFLICT DO NOTHING",
            model=max((row.id for row in known.values()), default=0) + 1,
            name=model.name,
            dim=model.dim,
            zero=model.zero,
            one=model.one,
            state=model.state,
        )


async def bring_in(tx: Tx, model: Model) -> Model:
    """Make a model the one to use: current at once when it is the first, else incoming while another still serves."""
    known = await register(tx, model)
    await tx.run(
        "UPDATE embedding_models SET state = 'retired' WHERE state = 'incoming' AND model <> :model", model=known.id
    )
    await tx.run(
        "UPDATE embedding_models SET state = CASE WHEN EXISTS (SELECT 1 FROM embedding_models o"
        " WHERE o.state = 'current' AND o.model <> :model) THEN 'incoming' ELSE 'current' END"
        " WHERE model = :model AND state <> 'current'",
        model=known.id,
    )
    return next(row for row in await models(tx) if row.id == known.id)


async def arrived(tx: Tx, model: int) -> None:
    """An incoming model is the current one now, and whatever was current before is retired."""
    await tx.run(
        "UPDATE embedding_models SET state = CASE WHEN model = :model THEN 'current' ELSE 'retired' END"
        " WHERE state <> 'static' AND EXISTS (SELECT 1 FROM embedding_models i"
        " WHERE i.model = :model AND i.state = 'incoming')",
        model=model,
    )


async def orgs(tx: Tx) -> list[int]:
    """Every org that may hold vectors."""
    return [int(row["org"]) for row in await tx.all("SELECT org FROM orgs ORDER BY org")]


async def elsewhere(tx: Tx, org: int, model: int, states: Sequence[str]) -> list[int]:
    """The banks that hold vectors of another model in one of these states."""
    rows = await tx.all(
        "SELECT DISTINCT b.bank AS bank FROM banks b CROSS JOIN embedding_models e"
        " WHERE b.org = :org AND e.model <> :model AND e.state = ANY_TEXT(:states) AND (SELECT v.model FROM vectors v"
        " WHERE v.org = b.org AND v.bank = b.bank AND v.model >= e.model ORDER BY v.model LIMIT 1) = e.model",
        org=org,
        model=model,
        states=list(states),
    )
    return [row["bank"] for row in rows]


def held(org: int, bank: int) -> Ask[list[Model]]:
    """The models under which a bank has vectors."""
    # Not EXISTS, and in order: PostgreSQL would read every vector's row to find a model that holds few.
    return Ask(
        "SELECT e.model AS model, e.name AS name, e.dim AS dim, e.zero AS zero, e.one AS one, e.state AS state"
        " FROM embedding_models e WHERE (SELECT v.model FROM vectors v"
        " WHERE v.org = :org AND v.bank = :bank AND v.model >= e.model ORDER BY v.model LIMIT 1) = e.model",
        {"org": org, "bank": bank},
        lambda rows: [_model(row) for row in rows],
    )


async def waiting(tx: Tx, org: int, bank: int) -> int:
    """How many memories still wait for their vector of the model to use."""
    row = await tx.one(
        "SELECT count(*) AS held FROM vectors v JOIN embedding_models e ON e.model = v.model"
        " WHERE v.org = :org AND v.bank = :bank AND (e.state IN ('static', 'retired') OR (e.state = 'current'"
        " AND EXISTS (SELECT 1 FROM embedding_models i WHERE i.state = 'incoming')))",
        org=org,
        bank=bank,
    )
    return int(row["held"]) if row else 0


async def others(tx: Tx, org: int, bank: int, model: int) -> int:
    """How many memories have a vector of another model."""
    row = await tx.one(
        "SELECT count(*) AS held FROM vectors WHERE org = :org AND bank = :bank AND model <> :model",
        org=org,
        bank=bank,
        model=model,
    )
    return int(row["held"]) if row else 0


@dataclass(frozen=True, slots=True)
class Due:
    """A memory whose vector is to be made again."""

    memory: int
    text: str
    text_hash: str


async def due(tx: Tx, org: int, bank: int, model: int, limit: int) -> list[Due]:
    """Memories that have no vector of this model yet, oldest first, with what they lend each other."""
    rows = await tx.all(
        "SELECT m.id AS id, m.title AS title, m.text AS text, b.text AS lent, v.text_hash AS text_hash FROM vectors v"
        " JOIN memories m ON m.org = v.org AND m.bank = v.bank AND m.id = v.memory"
        " LEFT JOIN memories b ON b.org = m.org AND b.bank = m.bank AND b.id = m.before"
        " WHERE v.org = :org AND v.bank = :bank AND v.model <> :model ORDER BY v.memory LIMIT :limit",
        org=org,
        bank=bank,
        model=model,
        limit=limit,
    )
    return [
        Due(
            row["id"],
            threads.embedded(row["lent"] or "", f"{row['title']}\n{row['text']}".strip()),
            row["text_hash"],
        )
        for row in rows
    ]


async def having(tx: Tx, org: int, bank: int, model: int, memories: Sequence[int]) -> set[int]:
    """Those of the memories that have a vector of this model."""
    rows = await tx.all(
        "SELECT memory FROM vectors WHERE org = :org AND bank = :bank AND model = :model AND memory = ANY_INT(:ids)",
        org=org,
        bank=bank,
        model=model,
        ids=list(memories),
    )
    return {row["memory"] for row in rows}


async def unchanged(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> dict[int, str]:
    """The text hash each memory's vector stands for now."""
    rows = await tx.all(
        "SELECT memory, text_hash FROM vectors WHERE org = :org AND bank = :bank AND memory = ANY_INT(:ids)",
        org=org,
        bank=bank,
        ids=list(memories),
    )
    return {row["memory"]: row["text_hash"] for row in rows}
