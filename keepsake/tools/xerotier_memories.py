"""Memories in xerotier's words: search, recall, save."""

from typing import Self
from urllib.parse import quote

from pydantic import BaseModel, Field

from keepsake.core import models, text
from keepsake.core.models import Given, Kind, Result, Tags
from keepsake.core.text import Clean, Filled
from keepsake.ops import memory
from keepsake.tools.dialect import Gives, Takes

#: Characters of one entry, and tokens of a whole answer.
LONGEST, ROOM = 4_000, 8_000
KNOWLEDGE: tuple[Kind, ...] = ("decision", "constraint", "heuristic", "rejected")
#: What was saved, and what was understood of it; not what tools, repositories and artifacts left.
NOTES: tuple[Kind, ...] = ("note", "fact", "insight", "milestone", *KNOWLEDGE)


class Search(Takes):
    """Arguments of xerotier.memory.search."""

    query: Filled = Field(max_length=20_000, description="What to look for, in natural language or exact words")
    limit: int = Field(10, ge=1, le=50, description="Results at most")

    def to_core(self) -> Given:
        return memory.Recall(query=self.query, limit=self.limit, max_tokens=ROOM)


class Recall(Takes):
    """Arguments of xerotier.memory.recall."""

    query: Clean = Field("", max_length=20_000, description="What they are about; the newest when left out")
    limit: int = Field(10, ge=1, le=50, description="Memories at most")
    tags: Tags = Field(default_factory=list, description="Only those with one of these tags")

    def to_core(self) -> Given:
        # What has no word in it cannot be embedded, so it asks for nothing.
        query = self.query if text.words(self.query) else ""
        return memory.Recall(query=query, limit=self.limit, tags=self.tags, kinds=list(NOTES), max_tokens=ROOM)


class Entry(Result):
    """Something that was found."""

    id: str = Field(description="Its id")
    slug: str = Field(description="Its readable name: xerotier://memory/{slug}")
    type: str = Field(description="memory, document, artifact, decision or milestone")
    title: str | None = Field(None, description="Its title")
    content: str = Field(description="What it says; cut where it is long")
    category: str = Field(description="Its category")
    tags: list[str] | None = Field(None, description="Its tags")
    source: str | None = Field(None, description="Document, artifact, commit or file it came from")
    created_at: str = Field(description="When it happened, else was learned")
    trust: str = Field(description="How far its source is trusted")
    score: float | None = Field(None, description="How well it answers, 0 to 1")

    @classmethod
    def of(cls, hit: memory.Hit) -> "Entry":
        """A hit in the dialect's words."""
        found = hit.memory
        return cls(
            id=found.id,
            slug=found.slug,
            type=sort(found),
            title=found.title or None,
            content=text_of(found.text),
            category=found.category,
            tags=found.tags or None,
            source=found.document,
            created_at=found.happened_at or found.learned_at,
            trust=found.trust,
            score=hit.score or None,
        )


def text_of(told: str) -> str:
    """A text, cut where it is long."""
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}…"


def sort(found: models.Memory) -> str:
    """What the dialect calls a memory."""
    if found.kind in KNOWLEDGE:
        return "decision"
    if found.kind in ("milestone", "artifact"):
        return found.kind
    return "document" if found.document else "memory"


class Found(Gives):
    """Result of xerotier.memory.search and xerotier.memory.recall."""

    results: list[Entry] = Field(description="Best first, or newest first without a query; empty: nothing is known")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, memory.Recalled)
        kept: list[Entry] = []
        room = result.max_tokens
        for hit in result.hits:
            entry = Entry.of(hit)
            room -= text.cost(entry.content)
            if room < 0 and kept:
                break
            kept.append(entry)
        return cls(results=kept)


class Save(Takes):
    """Arguments of xerotier.memory.save."""

    content: Filled = Field(max_length=memory.LONGEST, description="What to remember, complete in itself")
    category: Clean = Field(
        "general",
        max_length=200,
        description="What it is about; decision, constraint, heuristic, rejected or milestone make it one",
    )
    title: Clean = Field("", max_length=300, description="A short title; its slug is made from it")
    tags: Tags = Field(default_factory=list, description="To filter by later")

    def to_core(self) -> Given:
        return memory.Retain(
            content=self.content, category=self.category or "general", title=self.title, tags=self.tags, whole=True
        )


class Saved(Gives):
    """Result of xerotier.memory.save."""

    status: str = Field(description="stored, or skipped: `note` says why")
    memory_id: str | None = Field(None, description="Its id")
    slug: str | None = Field(None, description="Its readable name")
    uri: str | None = Field(None, description="Its address as a resource")
    note: str | None = Field(None, description="Why nothing was stored")
    redacted: list[str] | None = Field(None, description="Kinds of secrets that were taken out")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, memory.Retained)
        uri = f"xerotier://memory/{quote(result.slug, safe='')}" if result.slug else None
        return cls(
            status=result.status,
            memory_id=result.id,
            slug=result.slug,
            uri=uri,
            note=result.note,
            redacted=result.redacted,
        )
