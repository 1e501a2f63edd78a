"""Artifacts in xerotier's words: create, update, read, list."""

from typing import Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given
from keepsake.core.text import Clean, Filled
from keepsake.ops import artifacts
from keepsake.ops.artifacts import LARGEST, LONGEST_IDENTIFIER, Number
from keepsake.tools.dialect import Gives, Takes, Tool, within


class OneArtifact(Takes):
    """Arguments that name an artifact."""

    artifact_id: Clean = Field(min_length=1, max_length=LONGEST_IDENTIFIER, description="Its id or identifier")


class Update(OneArtifact):
    """Arguments of xerotier.artifact.update."""

    content: Filled = Field(max_length=LARGEST, description="All of the new version")
    title: Filled | None = Field(None, max_length=300, description="A new title")
    expected_version: Number | None = Field(None, description="The version that you read; refused if it is older")
    note: Clean = Field("", max_length=1_000, description="What it changes")

    def to_core(self) -> Given:
        return artifacts.Update(
            id=self.artifact_id,
            content=self.content,
            title=self.title,
            expected_version=self.expected_version,
            note=self.note,
        )


class Read(OneArtifact):
    """Arguments of xerotier.artifact.read."""

    version: Number | None = Field(None, description="An earlier version")

    def to_core(self) -> Given:
        return artifacts.Get(id=self.artifact_id, version=self.version)


class Shown(Gives, artifacts.Listed):
    """Result of xerotier.artifact.read."""

    version: int = Field(description="The version that this is; pass it as expected_version")
    current_version: int = Field(description="Its current version")
    content: str | None = Field(None, description="What the version says; absent when it has more than 1 MiB")
    content_truncated: bool = Field(description="Whether the content was left out for its size")
    versions: list[artifacts.Described] = Field(description="Its versions, newest first; the last hundred of them")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, artifacts.Whole)
        told = result.model_dump(exclude={"version", "shown_version"})
        return cls(**told, version=result.shown_version, current_version=result.version)


TOOLS = (
    Tool(
        "xerotier.artifact.create",
        artifacts.create,
        within(artifacts.Create),
        about="Keep a document, page, diagram or piece of code in the workspace, with all its versions.",
        hint="Use it for what will be worked at again; for a single fact use memory.save.",
        tells_result=False,
    ),
    Tool(
        "xerotier.artifact.update",
        artifacts.update,
        Update,
        about="Write a new version of an artifact; earlier ones are kept.",
        hint="Read it first, and pass the version you read.",
        tells_result=False,
    ),
    Tool(
        "xerotier.artifact.read",
        artifacts.get,
        Read,
        Shown,
        about="Read one artifact. Over 1 MiB only what it is: `content_truncated`.",
        tells_result=False,
    ),
    Tool(
        "xerotier.artifact.list",
        artifacts.list_,
        within(artifacts.ListArtifacts),
        about="List artifacts, the last changed first, without their content.",
        hint="To find one by what it says, use memory.search.",
        tells_result=False,
    ),
)
