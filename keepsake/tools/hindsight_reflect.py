"""What the hindsight dialect takes and gives for reflect."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from keepsake.core.models import Budget, Given, Tags
from keepsake.core.text import Clean, CleanJson, Filled
from keepsake.ops import reflect
from keepsake.tools.dialect import Gives, Takes


class Reflect(Takes):
    """Arguments of reflect."""

    query: Filled = Field(max_length=20_000, description="The question or topic to reflect on")
    context: Clean | None = Field(None, max_length=20_000, description="Why this reflection is needed")
    budget: Budget = Field("low", description="Search thoroughness")
    max_tokens: int = Field(4096, ge=reflect.LEAST, le=100_000, description="Maximum tokens in the response")
    response_schema: dict[Clean, CleanJson] | None = Field(
        None, description="JSON Schema for structured output; the response then includes structured_output"
    )
    tags: Tags | None = Field(None, description="Filter memories by tags before reflecting")
    tags_match: Literal["any", "all"] = Field("any", description="Tag matching mode")

    def to_core(self) -> Given:
        return reflect.Reflect(
            query=self.query,
            context=self.context or "",
            budget=self.budget,
            max_tokens=self.max_tokens,
            response_schema=self.response_schema,
            tags=self.tags or [],
            tags_match=self.tags_match,
        )


class Source(Gives):
    """A memory that the answer rests on."""

    n: int = Field(description="Its number in the text: [n]")
    memory_id: str = Field(description="Id of the memory")
    date: str = Field(description="When it happened, else when it was stored")


class Reflected(Gives):
    """Result of reflect."""

    text: str = Field(description="The answer; [n] names the source of what stands before it")
    sources: list[Source] = Field(description="The memories it rests on")
    made_by: str = Field(description="The language model that made it, or `rules`: sentences taken from memories")
    structured_output: object | None = Field(None, description="The answer in the shape of response_schema")
    note: str | None = Field(None, description="Said when rules had to do what a language model was meant to")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, reflect.Reflected)
        return cls(
            text=result.text,
            sources=[Source(n=one.n, memory_id=one.id, date=one.date) for one in result.sources],
            made_by=result.made_by,
            structured_output=result.structured_output,
            note=result.note,
        )
