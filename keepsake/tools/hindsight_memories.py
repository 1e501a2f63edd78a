"""What the hindsight dialect takes and gives for memories and their tags."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from keepsake.core import models, text
from keepsake.core.models import Budget, FactType, Given, Moment, Receipt, Tags
from keepsake.core.text import Clean, CleanJson, Filled
from keepsake.ops import memory, purging, tags
from keepsake.tools.dialect import Gives, Takes

#: What a result costs besides its entries.
_FRAME = 20


class Retain(Takes):
    """Arguments of retain."""

    content: Filled = Field(max_length=memory.LONGEST, description="The fact or memory to store")
    context: Clean = Field("general", max_length=200, description="Category for the memory")
    timestamp: Moment | None = Field(None, description="ISO 8601 timestamp for when the event occurred")
    tags: Tags = Field(default_factory=list, description="Tags for organizing and filtering this memory")
    metadata: dict[Clean, CleanJson] = Field(
        default_factory=dict, max_length=200, description='Key-value metadata to attach, e.g. {"source": "slack"}'
    )
    document_id: Clean | None = Field(
        None, min_length=1, max_length=500, description="Document it belongs to; what that said before is replaced"
    )

    def to_core(self) -> Given:
        return memory.Retain(
            content=self.content,
            category=self.context,
            happened_at=self.timestamp,
            tags=self.tags,
            metadata=self.metadata,
            document=self.document_id,
        )


class Retained(Gives):
    """Result of retain."""

    status: Literal["stored", "skipped"] = Field(description="skipped: nothing was stored; note says why")
    memory_id: str | None = Field(None, description="Id of the memory")
    bank_id: str = Field(description="The bank it is in")
    note: str | None = Field(None, description="Why it was skipped")
    redacted: list[str] | None = Field(None, description="Kinds of secrets that were taken out before it was stored")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, memory.Retained)
        return cls(
            status=result.status,
            memory_id=result.id,
            bank_id=result.bank,
            note=result.note,
            redacted=result.redacted,
        )


class Recall(Takes):
    """Arguments of recall."""

    query: Filled = Field(max_length=20_000, description="Natural language search query")
    max_tokens: int = Field(4096, ge=1, le=1_000_000, description="Maximum tokens to return")
    budget: Budget = Field("high", description="Search thoroughness")
    types: list[FactType] | None = Field(None, max_length=10, description="Filter by fact type; all when left out")
    tags: Tags | None = Field(None, description="Filter memories by tags")
    tags_match: Literal["any", "all"] = Field("any", description="Tag matching mode")
    query_timestamp: Moment | None = Field(
        None, description="ISO 8601 timestamp: recall as if asking at this point in time"
    )

    def to_core(self) -> Given:
        return memory.Recall(
            query=self.query,
            max_tokens=self.max_tokens,
            budget=self.budget,
            types=self.types or [],
            tags=self.tags or [],
            tags_match=self.tags_match,
            as_of=self.query_timestamp,
        )


class Fact(Gives):
    """A memory."""

    id: str = Field(description="Id of the memory")
    text: str = Field(description="What is remembered")
    type: FactType = Field(description="Fact type")
    context: str = Field(description="Category")
    tags: list[str] | None = Field(None, description="Its tags")
    metadata: dict[str, object] | None = Field(None, description="Metadata given with it")
    document_id: str | None = Field(None, description="Document it came from")
    timestamp: str | None = Field(None, description="When it happened")
    created_at: str = Field(description="When it was stored")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, models.Memory)
        return cls.model_construct(**_fact(result))  # type: ignore[return-value]  # the plugin gives back the class, not Self


def _fact(result: models.Memory) -> dict[str, Any]:
    """The fields of a fact; they come from our own rows, so they are not validated again."""
    return {
        "id": result.id,
        "text": result.text,
        "type": result.type,
        "context": result.category,
        "tags": result.tags or None,
        "metadata": result.metadata or None,
        "document_id": result.document,
        "timestamp": result.happened_at,
        "created_at": result.learned_at,
    }


class RecalledFact(Fact):
    """A memory that answers, and why."""

    score: float = Field(0.0, description="How well it answers, 0 to 1")
    why: dict[str, float] = Field(default_factory=dict, description="Each signal's part of the score")

    @classmethod
    def answering(cls, hit: memory.Hit) -> Self:
        """A memory with why it was found."""
        fields = _fact(hit.memory) | {"score": hit.score, "why": hit.signals}
        return cls.model_construct(**fields)  # type: ignore[return-value]  # the plugin gives back the class, not Self


class Recalled(Gives):
    """Result of recall."""

    results: list[RecalledFact] = Field(description="Best first; empty when nothing relevant is known")
    note: str | None = Field(None, description="Said when there is nothing, or more than fits")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, memory.Recalled)
        room, kept = result.max_tokens - _FRAME, []
        for hit in result.hits:
            fact = RecalledFact.answering(hit)
            room -= text.cost(fact.model_dump_json(exclude_none=True)) + 1
            if room < 0:
                break
            kept.append(fact)
        if not result.hits:
            return cls(results=[], note="Nothing relevant is known.")
        return cls(results=kept, note=None if kept else "Raise max_tokens.")


class ListMemories(Takes):
    """Arguments of list_memories."""

    type: FactType | None = Field(None, description="Filter by fact type")
    q: Clean | None = Field(None, max_length=1_000, description="Search query to filter memories")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip for pagination")

    def to_core(self) -> Given:
        return memory.ListMemories(type=self.type, contains=self.q, limit=self.limit, offset=self.offset)


class Facts(Gives):
    """Result of list_memories."""

    memories: list[Fact] = Field(description="Newest first")
    total: int = Field(description="How many there are in all")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, memory.Memories)
        return cls(memories=[Fact.from_core(one) for one in result.memories], total=result.total)


class OneMemory(Takes):
    """Arguments of get_memory and delete_memory."""

    memory_id: Clean = Field(min_length=1, max_length=64, description="The ID of the memory")

    def to_core(self) -> Given:
        return memory.OneMemory(id=self.memory_id)


class ClearMemories(Takes):
    """Arguments of clear_memories."""

    type: FactType | None = Field(None, description="Fact type to clear; all when not specified")

    def to_core(self) -> Given:
        return purging.Clear(type=self.type)


class ListTags(Takes):
    """Arguments of list_tags."""

    q: Clean | None = Field(None, max_length=200, description="Glob pattern to filter tags, e.g. `project:*`")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results")

    def to_core(self) -> Given:
        return tags.ListTags(pattern=self.q, limit=self.limit)


class Deleted(Gives):
    """Result of a deletion."""

    status: Literal["deleted"] = Field("deleted", description="Done")
    deleted_memories: int = Field(description="How many memories were removed")
    deleted_documents: int = Field(0, description="How many documents were removed")
    receipt_id: str = Field(description="Receipt of the deletion")
    digest: str = Field(description="Keyed digest of what was removed")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, Receipt)
        return cls(
            deleted_memories=result.memories,
            deleted_documents=result.documents,
            receipt_id=result.id,
            digest=result.digest,
        )
