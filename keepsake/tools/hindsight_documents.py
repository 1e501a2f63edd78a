"""What the hindsight dialect takes and gives for documents."""

from typing import Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given
from keepsake.core.text import Clean
from keepsake.ops import documents
from keepsake.tools.dialect import Gives, Takes


class ListDocuments(Takes):
    """Arguments of list_documents."""

    q: Clean | None = Field(None, max_length=1_000, description="Search query to filter documents")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results")

    def to_core(self) -> Given:
        return documents.ListDocuments(contains=self.q, limit=self.limit)


class Document(Gives):
    """A document."""

    document_id: str = Field(description="Id of the document")
    created_at: str = Field(description="When its newest revision was stored")
    memory_count: int = Field(description="How many memories rest on it")
    characters: int = Field(description="Length of its text")
    metadata: dict[str, object] | None = Field(None, description="Metadata given with it")
    text: str | None = Field(None, description="Its text")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, documents.Document)
        return cls(
            document_id=result.id,
            created_at=result.created_at,
            memory_count=result.memories,
            characters=result.characters,
            metadata=result.metadata or None,
            text=result.text if isinstance(result, documents.DocumentText) else None,
        )


class Documents(Gives):
    """Result of list_documents."""

    documents: list[Document] = Field(description="Newest first")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, documents.Documents)
        return cls(documents=[Document.from_core(one) for one in result.documents])


class OneDocument(Takes):
    """Arguments of get_document and delete_document."""

    document_id: Clean = Field(min_length=1, max_length=500, description="The ID of the document")

    def to_core(self) -> Given:
        return documents.OneDocument(id=self.document_id)
