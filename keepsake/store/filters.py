"""Which memories of a bank count: filters, and the conditions they make in SQL."""

from dataclasses import dataclass

from keepsake.store.engine import Value

#: `Memory.said_at` in SQL.
SAID_AT = "coalesce(event_at, CASE WHEN happened_to IS NULL THEN happened_from END, learned_at)"
#: Whether a memory held at a moment; `:at` may lie in the past.
HELD = "m.learned_at <= :at AND (m.superseded_at IS NULL OR m.superseded_at > :at) AND m.state = 'live'"
#: Whether it holds now, in the words of the index that knows it.
STANDS = "m.superseded_at IS NULL AND m.state = 'live'"
#: Whether it was known by then, be it superseded or not.
KNOWN = "m.learned_at <= :at AND m.state = 'live'"
_FROM = (
    "('told' = ANY_TEXT(:sources) AND m.source IS NULL"
    " OR EXISTS (SELECT 1 FROM sources s WHERE s.org = m.org AND s.bank = m.bank AND s.id = m.source"
    " AND s.kind = ANY_TEXT(:sources)) OR 'session' = ANY_TEXT(:sources)"
    " AND EXISTS (SELECT 1 FROM sessions e WHERE e.org = m.org AND e.bank = m.bank AND e.id = m.source))"
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories of a bank count."""

    org: int
    bank: int
    at: int
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    every_tag: bool = False
    #: Part of the text, in lower case.
    contains: str = ""
    kinds: tuple[str, ...] = ()
    #: When it happened, else was learned: from this moment on, and before that one.
    said: tuple[int, int] | None = None
    #: Where it came from: kinds of sources, `session`, or `told` for what has no source.
    sources: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    #: What has been superseded by then counts, too.
    with_past: bool = False
    #: The moment is now.
    is_now: bool = False

    @property
    def is_open(self) -> bool:
        """Nothing but the moment narrows."""
        narrowing = (self.types, self.tags, self.contains, self.kinds, self.said, self.sources, self.trust)
        return not any(narrowing)


def where(given: Filter) -> tuple[str, dict[str, Value]]:
    """The conditions on `memories m` that a filter makes, with their values."""
    held = KNOWN if given.with_past else STANDS if given.is_now else HELD
    clauses = ["m.org = :org", "m.bank = :bank", held]
    values: dict[str, Value] = {"org": given.org, "bank": given.bank}
    if held != STANDS:
        values["at"] = given.at
    if given.types:
        clauses.append("m.fact_type = ANY_TEXT(:types)")
        values["types"] = list(given.types)
    if given.kinds:
        clauses.append("m.kind = ANY_TEXT(:kinds)")
        values["kinds"] = list(given.kinds)
    if given.trust:
        clauses.append("m.trust = ANY_TEXT(:trust)")
        values["trust"] = list(given.trust)
    if given.sources:
        clauses.append(_FROM)
        values["sources"] = list(given.sources)
    if given.said:
        clauses.append(f"{SAID_AT} >= :since AND {SAID_AT} < :until")
        values["since"], values["until"] = given.said
    if given.tags:
        # Begun from the tags, which are few, not asked of every memory.
        need = len(set(given.tags)) if given.every_tag else 1
        tagged = "FROM memory_tags t WHERE t.org = :org AND t.bank = :bank AND t.tag = ANY_TEXT(:tags)"
        clauses.append(f"m.id IN (SELECT t.memory {tagged} GROUP BY t.memory HAVING count(*) >= {need})")
        values["tags"] = list(given.tags)
    if given.contains:
        clauses.append("(lower(m.text) LIKE :part ESCAPE '!' OR lower(m.title) LIKE :part ESCAPE '!')")
        escaped = given.contains.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
        values["part"] = f"%{escaped}%"
    return " AND ".join(clauses), values
