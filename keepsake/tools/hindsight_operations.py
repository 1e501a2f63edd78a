"""What the hindsight dialect takes and gives for background operations."""

from typing import Any, Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given
from keepsake.core.text import Clean
from keepsake.ops import jobs
from keepsake.tools.dialect import Gives, Takes


class ListOperations(Takes):
    """Arguments of list_operations."""

    status: jobs.State | None = Field(None, description="Filter by status")
    limit: int = Field(100, ge=1, le=1_000, description="Maximum number of results")

    def to_core(self) -> Given:
        return jobs.ListJobs(state=self.status, limit=self.limit)


class Operation(Gives):
    """A background operation."""

    operation_id: str = Field(description="Id of the operation")
    type: str = Field(description="What kind of work it is")
    status: jobs.State = Field(description="Whether it waits, runs or has ended, and how")
    progress: float = Field(description="How much is done, 0 to 1")
    created_at: str = Field(description="When it was asked for")
    updated_at: str = Field(description="When it last changed")
    attempts: int = Field(description="How often it was tried")
    result: dict[str, object] | None = Field(None, description="What it has done so far: counts, and why rules did it")
    error: str | None = Field(None, description="What the last try failed of")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, jobs.JobStatus)
        return cls(**_operation(result))


def _operation(result: jobs.JobStatus) -> dict[str, Any]:
    return {
        "operation_id": result.id,
        "type": result.kind,
        "status": result.state,
        "progress": result.progress,
        "created_at": result.created_at,
        "updated_at": result.updated_at,
        "attempts": result.attempts,
        "result": result.result,
        "error": result.error,
    }


class Operations(Gives):
    """Result of list_operations."""

    operations: list[Operation] = Field(description="Newest first")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, jobs.Jobs)
        return cls(operations=[Operation.from_core(one) for one in result.jobs])


class OneOperation(Takes):
    """Arguments of get_operation and cancel_operation."""

    operation_id: Clean = Field(min_length=1, max_length=64, description="The ID of the operation")

    def to_core(self) -> Given:
        return jobs.OneJob(id=self.operation_id)


class CancelledOperation(Operation):
    """Result of cancel_operation."""

    note: str = Field(description="What was done, and why nothing was where it had ended before")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, jobs.Cancelled)
        return cls(**_operation(result), note=result.note)
