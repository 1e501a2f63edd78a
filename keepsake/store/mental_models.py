"""Mental models: documents that are kept current, every version of them, and what each sentence rests on."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from keepsake.store import jobs
from keepsake.store.engine import Row, Tx
from keepsake.store.store import Store

#: The kind of the job that makes one anew.
JOB = "model"
#: Versions that are kept.
KEPT = 50


@dataclass(frozen=True, slots=True)
class Model:
    """One mental model as stored; `version` is 0 until its first text is made."""

    org: int
    bank: int
    id: str
    name: str
    source_query: str
    tags: tuple[str, ...]
    max_tokens: int
    refresh_after_consolidation: bool
    version: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a model and the memories it rests on."""

    text: str
    memories: tuple[int, ...]
    section: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """The text of a model as it was made once."""

    org: int
    bank: int
    model: str
    version: int
    sentences: tuple[Sentence, ...]
    maker: str
    #: The bank's sequence it was made at; 0 when it must be made anew whatever happened since.
    seq: int
    made_at: int
    #: A digest of all it was made from.
    basis: str = ""
    text: str = field(default="")


def rendered(sentences: Sequence[Sentence]) -> str:
    """The text of a model: its sections and their sentences."""
    lines: list[str] = []
    section = ""
    for sentence in sentences:
        if sentence.section != section:
            section = sentence.section
            lines += ["", f"## {section}"] if section else [""]
        lines.append(f"- {sentence.text}")
    return "\n".join(lines).strip()


_COLUMNS = (
    "org, bank, id, name, source_query, tags, max_tokens, refresh_after_consolidation, version, created_at, updated_at"
)


def _model(row: Row) -> Model:
    told = {
        "tags": tuple(json.loads(row["tags"])),
        "refresh_after_consolidation": bool(row["refresh_after_consolidation"]),
    }
    return Model(**{**row, **told})


def _stored(model: Model) -> dict[str, int | str]:
    return {
        "org": model.org,
        "bank": model.bank,
        "id": model.id,
        "name": model.name,
        "source_query": model.source_query,
        "tags": json.dumps(model.tags, ensure_ascii=False),
        "max_tokens": model.max_tokens,
        "trigger": int(model.refresh_after_consolidation),
        "now": model.updated_at,
    }


async def insert(tx: Tx, model: Model) -> bool:
    """Write a new model; False when its id is taken."""
    changed = await tx.run(
        f"INSERT INTO mental_models ({_COLUMNS}) VALUES (:org, :bank, :id, :name, :source_query, :tags, :max_tokens,"
        " :trigger, 0, :now, :now) ON CONFLICT (org, bank, id) DO NOTHING",
        **_stored(model),
    )
    return changed == 1


async def update(tx: Tx, model: Model) -> None:
    """Change what a model is called, asks and keeps to."""
    await tx.run(
        "UPDATE mental_models SET name = :name, source_query = :source_query, tags = :tags, max_tokens = :max_tokens,"
        " refresh_after_consolidation = :trigger, updated_at = :now WHERE org = :org AND bank = :bank AND id = :id",
        **_stored(model),
    )


async def get(tx: Tx, org: int, bank: int, id: str) -> Model | None:
    """One model of a bank."""
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM mental_models WHERE org = :org AND bank = :bank AND id = :id",
        org=org,
        bank=bank,
        id=id,
    )
    return _model(row) if row else None


async def listed(tx: Tx, org: int, bank: int) -> list[Model]:
    """Every model of a bank, by id."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM mental_models WHERE org = :org AND bank = :bank ORDER BY id", org=org, bank=bank
    )
    return [_model(row) for row in rows]


async def delete(tx: Tx, org: int, bank: int, id: str) -> None:
    """Remove a model with every version."""
    await tx.run(
        "DELETE FROM model_versions WHERE org = :org AND bank = :bank AND model = :id", org=org, bank=bank, id=id
    )
    await tx.run("DELETE FROM mental_models WHERE org = :org AND bank = :bank AND id = :id", org=org, bank=bank, id=id)


_VERSION = "org, bank, model, version, text, evidence, maker, seq, made_at"


def _version(row: Row) -> Version:
    told = json.loads(row["evidence"])
    sentences = tuple(Sentence(one["text"], tuple(one["memories"]), one["section"]) for one in told["sentences"])
    kept = {key: row[key] for key in ("org", "bank", "model", "version", "text", "maker", "seq", "made_at")}
    return Version(**kept, sentences=sentences, basis=told["basis"])


def _evidence(version: Version) -> str:
    told = [{"text": one.text, "memories": one.memories, "section": one.section} for one in version.sentences]
    return json.dumps({"basis": version.basis, "sentences": told}, ensure_ascii=False)


async def add_version(tx: Tx, version: Version) -> int | None:
    """Make a text the current version, keeping the earlier ones; None when the model is gone."""
    row = await tx.one(
        "UPDATE mental_models SET version = version + 1, updated_at = :now"
        " WHERE org = :org AND bank = :bank AND id = :id RETURNING version",
        now=version.made_at,
        org=version.org,
        bank=version.bank,
        id=version.model,
    )
    if row is None:
        return None
    number = int(row["version"])
    await tx.run(
        f"INSERT INTO model_versions ({_VERSION}) VALUES (:org, :bank, :model, :version, :text, :evidence, :maker,"
        " :seq, :made_at)",
        org=version.org,
        bank=version.bank,
        model=version.model,
        version=number,
        text=rendered(version.sentences),
        evidence=_evidence(version),
        maker=version.maker,
        seq=version.seq,
        made_at=version.made_at,
    )
    await tx.run(
        "DELETE FROM model_versions WHERE org = :org AND bank = :bank AND model = :model AND version <= :old",
        org=version.org,
        bank=version.bank,
        model=version.model,
        old=number - KEPT,
    )
    return number


async def current(tx: Tx, model: Model, version: int | None = None) -> Version | None:
    """The newest text of a model, or an earlier one; None before the first, or where it is not kept."""
    row = await tx.one(
        f"SELECT {_VERSION} FROM model_versions WHERE org = :org AND bank = :bank AND model = :model"
        " AND version = :version",
        org=model.org,
        bank=model.bank,
        model=model.id,
        version=model.version if version is None else version,
    )
    return _version(row) if row else None


async def made(tx: Tx, model: Model) -> list[tuple[int, int, str]]:
    """Number, time and maker of each kept text of a model, newest first."""
    rows = await tx.all(
        "SELECT version, made_at, maker FROM model_versions WHERE org = :org AND bank = :bank AND model = :model"
        " ORDER BY version DESC",
        org=model.org,
        bank=model.bank,
        model=model.id,
    )
    return [(int(row["version"]), int(row["made_at"]), row["maker"]) for row in rows]


async def versions(tx: Tx, org: int, bank: int) -> dict[str, list[Version]]:
    """Every kept version of every model of a bank, newest first."""
    rows = await tx.all(
        f"SELECT {_VERSION} FROM model_versions WHERE org = :org AND bank = :bank ORDER BY model, version DESC",
        org=org,
        bank=bank,
    )
    found: dict[str, list[Version]] = {}
    for row in rows:
        found.setdefault(row["model"], []).append(_version(row))
    return found


async def count(tx: Tx, model: Model) -> int:
    """How many versions of a model are kept."""
    row = await tx.one(
        "SELECT count(*) AS held FROM model_versions WHERE org = :org AND bank = :bank AND model = :model",
        org=model.org,
        bank=model.bank,
        model=model.id,
    )
    return int(row["held"]) if row else 0


async def seen(tx: Tx, version: Version, seq: int) -> None:
    """Note up to which point of the bank a version is known to be current."""
    await tx.run(
        "UPDATE model_versions SET seq = :seq WHERE org = :org AND bank = :bank AND model = :model"
        " AND version = :version",
        seq=seq,
        org=version.org,
        bank=version.bank,
        model=version.model,
        version=version.version,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """When the memories of a bank last changed."""

    seq: int
    superseded_at: int

    def since(self, version: Version) -> bool:
        """Whether a version may have something to catch up with."""
        return self.seq > version.seq or self.superseded_at > version.made_at


async def last_change(tx: Tx, org: int, bank: int) -> Change:
    """The newest change of a bank's memories; vectors made anew are none."""
    # Two questions, for an index each.
    row = await tx.one(
        "SELECT coalesce((SELECT max(seq) FROM memories WHERE org = :org AND bank = :bank), 0) AS seq,"
        " coalesce((SELECT max(superseded_at) FROM memories WHERE org = :org AND bank = :bank"
        " AND superseded_at IS NOT NULL), 0) AS superseded_at",
        org=org,
        bank=bank,
    )
    return Change(int(row["seq"]), int(row["superseded_at"])) if row else Change(0, 0)


async def asked(tx: Tx, store: Store, org: int, bank: int, id: str, now: int) -> int:
    """Leave the job that makes a model's text, and tell its id."""
    return await jobs.add(tx, store, org, bank, JOB, now, {"model": id})


async def resting_on(tx: Tx, org: int, bank: int, memories: Collection[int]) -> list[str]:
    """The models that say something in any version that rests on these memories."""
    gone, every = set(memories), await versions(tx, org, bank)
    told = {model: [one for version in held for one in version.sentences] for model, held in every.items()}
    return [model for model, said in told.items() if any(gone & set(one.memories) for one in said)]


async def forgotten(tx: Tx, store: Store, org: int, bank: int, memories: Collection[int], now: int) -> list[str]:
    """Take every sentence that rests on forgotten memories out of all versions, and have those models made anew.

    A sentence that rests on others too goes as well: it may tell what was forgotten. The job brings back what remains.
    """
    gone, touched = set(memories), []
    for model, held in (await versions(tx, org, bank)).items():
        hit = [version for version in held if any(gone & set(one.memories) for one in version.sentences)]
        for version in hit:
            await _rewrite(tx, replace(version, sentences=_without(version.sentences, gone), seq=0, basis=""))
        if hit:
            touched.append(model)
            await asked(tx, store, org, bank, model, now)
    return touched


def _without(sentences: Sequence[Sentence], gone: set[int]) -> tuple[Sentence, ...]:
    # A section's title was made from all of its sentences.
    bare = {one.section for one in sentences if gone & set(one.memories)}
    kept = [one for one in sentences if not gone & set(one.memories)]
    return tuple(replace(one, section="" if one.section in bare else one.section) for one in kept)


async def _rewrite(tx: Tx, version: Version) -> None:
    await tx.run(
        "UPDATE model_versions SET text = :text, evidence = :evidence, seq = :seq"
        " WHERE org = :org AND bank = :bank AND model = :model AND version = :version",
        text=rendered(version.sentences),
        evidence=_evidence(version),
        seq=version.seq,
        org=version.org,
        bank=version.bank,
        model=version.model,
        version=version.version,
    )
