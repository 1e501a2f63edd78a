"""What the hindsight dialect takes and gives for mental models."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given, Receipt, Tags
from keepsake.core.text import Clean, Filled
from keepsake.ops import mental_models
from keepsake.ops.mental_models import MaxTokens, ModelId
from keepsake.tools.dialect import Gives, Takes


class CreateMentalModel(Takes):
    """Arguments of create_mental_model."""

    name: Filled = Field(max_length=200, description="Human-readable name for the mental model")
    source_query: Filled = Field(max_length=20_000, description="The query used to generate and refresh the model")
    mental_model_id: ModelId | None = Field(
        None, description="Custom ID (alphanumeric lowercase with hyphens); auto-generated if not provided"
    )
    tags: Tags | None = Field(None, description="Tags for organizing and filtering models")
    max_tokens: MaxTokens = Field(2048, description="Maximum tokens for model content")
    trigger_refresh_after_consolidation: bool = Field(
        False, description="Auto-refresh this model after memory consolidation"
    )

    def to_core(self) -> Given:
        return mental_models.CreateModel(
            name=self.name,
            source_query=self.source_query,
            id=self.mental_model_id,
            tags=self.tags or [],
            max_tokens=self.max_tokens,
            refresh_after_consolidation=self.trigger_refresh_after_consolidation,
        )


class MentalModelAsked(Gives):
    """Result of create_mental_model and refresh_mental_model."""

    mental_model_id: str = Field(description="ID of the mental model")
    operation_id: str = Field(description="ID of the operation that makes its content; see get_operation")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, mental_models.Asked)
        return cls(mental_model_id=result.id, operation_id=result.operation_id)


class ListMentalModels(Takes):
    """Arguments of list_mental_models."""

    tags: Tags | None = Field(None, description="Filter models by tags")

    def to_core(self) -> Given:
        return mental_models.ListModels(tags=self.tags or [])


class Based(Gives):
    """A sentence and what it rests on."""

    sentence: str = Field(description="The sentence")
    memory_ids: list[str] = Field(description="The memories it rests on")


class MentalModel(Gives):
    """A mental model."""

    mental_model_id: str = Field(description="ID of the mental model")
    name: str = Field(description="Its name")
    source_query: str = Field(description="The query it answers")
    tags: list[str] | None = Field(None, description="Its tags")
    max_tokens: int = Field(description="Maximum tokens of its content")
    trigger_refresh_after_consolidation: bool = Field(description="Whether consolidation refreshes it")
    created_at: str = Field(description="When it was created")
    updated_at: str = Field(description="When it last changed")
    made_at: str | None = Field(None, description="When its content was made; absent before the first")
    made_by: str | None = Field(None, description="The language model that made its content, or `rules`")
    is_stale: bool = Field(description="Whether memories have changed since, or it has no content yet")
    content: str | None = Field(None, description="Its content")
    versions: int | None = Field(None, description="How many versions of its content are kept")
    based_on: list[Based] | None = Field(None, description="What each sentence rests on")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, mental_models.Model)
        whole = result if isinstance(result, mental_models.ModelText) else None
        return cls(
            mental_model_id=result.id,
            name=result.name,
            source_query=result.source_query,
            tags=result.tags or None,
            max_tokens=result.max_tokens,
            trigger_refresh_after_consolidation=result.refresh_after_consolidation,
            created_at=result.created_at,
            updated_at=result.updated_at,
            made_at=result.made_at,
            made_by=result.made_by,
            is_stale=result.stale,
            content=whole.content if whole else None,
            versions=whole.versions if whole else None,
            based_on=[Based(sentence=one.sentence, memory_ids=one.memories) for one in whole.evidence]
            if whole
            else None,
        )


class MentalModels(Gives):
    """Result of list_mental_models."""

    mental_models: list[MentalModel] = Field(description="By ID, without their content")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, mental_models.Models)
        return cls(mental_models=[MentalModel.from_core(one) for one in result.models])


class OneMentalModel(Takes):
    """Arguments of get_mental_model, refresh_mental_model and delete_mental_model."""

    mental_model_id: Clean = Field(min_length=1, max_length=200, description="The ID of the mental model")

    def to_core(self) -> Given:
        return mental_models.OneModel(id=self.mental_model_id)


class UpdateMentalModel(Takes):
    """Arguments of update_mental_model."""

    mental_model_id: Clean = Field(min_length=1, max_length=200, description="The ID of the mental model to update")
    name: Filled | None = Field(None, max_length=200, description="New name")
    source_query: Filled | None = Field(None, max_length=20_000, description="New source query")
    tags: Tags | None = Field(None, description="New tags")
    max_tokens: MaxTokens | None = Field(None, description="New max tokens")
    trigger_refresh_after_consolidation: bool | None = Field(
        None, description="Auto-refresh after consolidation; only set when you want to change this setting"
    )

    def to_core(self) -> Given:
        return mental_models.UpdateModel(
            id=self.mental_model_id,
            name=self.name,
            source_query=self.source_query,
            tags=self.tags,
            max_tokens=self.max_tokens,
            refresh_after_consolidation=self.trigger_refresh_after_consolidation,
        )


class MentalModelDeleted(Gives):
    """Result of delete_mental_model."""

    status: Literal["deleted"] = Field("deleted", description="Done")
    receipt_id: str = Field(description="Receipt of the deletion")
    digest: str = Field(description="Keyed digest of what was removed")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, Receipt)
        return cls(receipt_id=result.id, digest=result.digest)
