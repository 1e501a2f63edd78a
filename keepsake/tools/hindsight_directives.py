"""What the hindsight dialect takes and gives for directives."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given, Receipt, Tags
from keepsake.core.text import Clean, Filled
from keepsake.ops import directives
from keepsake.ops.directives import LARGEST_PRIORITY, LONGEST
from keepsake.tools.dialect import Gives, Takes


class ListDirectives(Takes):
    """Arguments of list_directives."""

    tags: Tags | None = Field(None, description="Filter directives by tags")
    active_only: bool = Field(True, description="Only return active directives")

    def to_core(self) -> Given:
        return directives.ListDirectives(tags=self.tags or [], active_only=self.active_only)


class CreateDirective(Takes):
    """Arguments of create_directive."""

    name: Filled = Field(max_length=200, description="Human-readable name for the directive")
    content: Filled = Field(max_length=LONGEST, description="The directive content/instruction")
    priority: int = Field(
        0, ge=-LARGEST_PRIORITY, le=LARGEST_PRIORITY, description="Priority level (higher = more important)"
    )
    is_active: bool = Field(True, description="Whether the directive is active")
    tags: Tags = Field(
        default_factory=list, description="Tags; with any, it holds only where a question shares one of them"
    )

    def to_core(self) -> Given:
        return directives.CreateDirective(
            name=self.name, content=self.content, priority=self.priority, is_active=self.is_active, tags=self.tags
        )


class Directive(Gives):
    """A directive."""

    directive_id: str = Field(description="Id of the directive")
    name: str = Field(description="Human-readable name")
    content: str = Field(description="The directive content/instruction")
    priority: int = Field(description="Higher = more important")
    is_active: bool = Field(description="Whether it is followed")
    tags: list[str] = Field(description="Its tags")
    trust: str = Field(description="How far its author is trusted: owner or agent")
    created_at: str = Field(description="When it was made")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, directives.Directive)
        return cls(
            directive_id=result.id,
            name=result.name,
            content=result.content,
            priority=result.priority,
            is_active=result.is_active,
            tags=result.tags,
            trust=result.trust,
            created_at=result.created_at,
        )


class Directives(Gives):
    """Result of list_directives."""

    directives: list[Directive] = Field(description="Highest priority first")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, directives.Directives)
        return cls(directives=[Directive.from_core(one) for one in result.directives])


class OneDirective(Takes):
    """Arguments of delete_directive."""

    directive_id: Clean = Field(min_length=1, max_length=64, description="The ID of the directive to delete")

    def to_core(self) -> Given:
        return directives.OneDirective(id=self.directive_id)


class DeletedDirective(Gives):
    """Result of delete_directive."""

    status: Literal["deleted"] = Field("deleted", description="Done")
    receipt_id: str = Field(description="Receipt of the deletion")
    digest: str = Field(description="Keyed digest of what was removed")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, Receipt)
        return cls(receipt_id=result.id, digest=result.digest)
