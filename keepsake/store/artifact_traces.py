"""What else of an artifact must go when some of its memories are forgotten."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepsake.core.lazy import lazy
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.core import facts
else:
    facts = lazy("keepsake.core.facts")

#: Shorter sentences stand in many texts and give nothing away.
TELLING = 12
_BETWEEN = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Falling:
    """What goes with the memories that are forgotten."""

    #: Artifacts of whose current text nothing is left: they go with every version.
    artifacts: Sequence[int] = ()
    #: Memories of these, and of earlier versions that say the same.
    memories: Sequence[int] = ()
    #: Of artifacts that stay, by id: what must not stand in any of their versions.
    said: Mapping[int, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Told:
    id: int
    text: str
    is_current: bool


async def falling(tx: Tx, org: int, bank: int, ids: Iterable[int]) -> Falling:
    """Look at the artifacts that these memories tell of."""
    forgotten = set(ids)
    told = await _told(tx, org, bank, forgotten)
    gone: list[int] = []
    more: set[int] = set()
    said: dict[int, list[str]] = {}
    for artifact, held in told.items():
        current = {one.id for one in held if one.is_current}
        if current and current <= forgotten:
            gone.append(artifact)
            more |= {one.id for one in held}
            continue
        whole = [one.text for one in held if one.id in forgotten]
        earlier = [one for one in held if not one.is_current and one.id not in forgotten]
        # A sentence may have been longer then, or shorter: one within the other is the same.
        within = (part for part in sentences(one.text for one in earlier) if any(part in text for text in whole))
        said[artifact] = sorted({*sentences(whole), *within}, key=len, reverse=True)
        more |= {one.id for one in earlier if any(part in one.text for part in said[artifact])}
    return Falling(gone, sorted(more - forgotten), said)


def sentences(texts: Iterable[str]) -> set[str]:
    """What texts say, whole and sentence by sentence, whether or not one leans on the other."""
    whole = set(texts)
    found = whole | {text[span.start : span.end] for text in whole for span in facts.split(text)}
    found |= {part for text in found for part in _BETWEEN.split(text)}
    return {one for one in found if len(one.strip()) >= TELLING}


async def _told(tx: Tx, org: int, bank: int, ids: Iterable[int]) -> dict[int, list[_Told]]:
    """All memories of the artifacts that some of these belong to, by artifact."""
    keys = await tx.all(
        "SELECT DISTINCT s.key AS key FROM memories m JOIN sources s"
        " ON s.org = m.org AND s.bank = m.bank AND s.id = m.source WHERE m.org = :org AND m.bank = :bank"
        " AND m.kind = 'artifact' AND m.id = ANY_INT(:ids) AND s.kind = 'artifact'",
        org=org,
        bank=bank,
        ids=sorted(ids),
    )
    if not keys:
        return {}
    rows = await tx.all(
        "SELECT s.key AS key, m.id AS id, m.text AS text, m.superseded_at AS superseded_at FROM sources s"
        " JOIN memories m ON m.org = s.org AND m.bank = s.bank AND m.source = s.id"
        " WHERE s.org = :org AND s.bank = :bank AND s.kind = 'artifact' AND s.key = ANY_TEXT(:keys)",
        org=org,
        bank=bank,
        keys=[row["key"] for row in keys],
    )
    found: dict[int, list[_Told]] = {}
    for row in rows:
        found.setdefault(int(row["key"]), []).append(_Told(row["id"], row["text"], row["superseded_at"] is None))
    return found


async def blank(tx: Tx, org: int, bank: int, falling: Falling) -> None:
    """Put blanks into earlier versions where they say what is forgotten; in the current one spans tell where."""
    for artifact, said in falling.said.items():
        rows = await tx.all(
            "SELECT id, text FROM sources WHERE org = :org AND bank = :bank AND kind = 'artifact' AND key = :key"
            " AND replaced_by IS NOT NULL",
            org=org,
            bank=bank,
            key=str(artifact),
        )
        for row in rows:
            text = row["text"]
            for part in said:
                text = text.replace(part, " " * len(part))
            if text != row["text"]:
                await tx.run(
                    "UPDATE sources SET text = :text, hash = '' WHERE org = :org AND bank = :bank AND id = :id",
                    text=text,
                    org=org,
                    bank=bank,
                    id=row["id"],
                )
