"""Workspaces in xerotier's words, and which of them a connection works in."""

from typing import Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given, InBank, Result
from keepsake.core.text import Clean
from keepsake.ops import banks, binding
from keepsake.tools.dialect import Gives, Takes


class ListWorkspaces(Takes):
    """No arguments."""

    def to_core(self) -> Given:
        return banks.ListBanks()


class Workspace(Result):
    """A workspace."""

    id: str | None = Field(None, description="ws_…, for the X-Xerotier-Workspace header and session.init")
    uuid: str | None = Field(None, description="Its other id")
    name: str = Field(description="Its name")
    title: str | None = Field(None, description="What people call it")
    mission: str | None = Field(None, description="What it is for")
    repository: str | None = Field(None, description="owner/name of the repository it learns from")
    created_at: str | None = Field(None, description="When it was made; absent before its first write")

    @classmethod
    def of(cls, bank: banks.Bank) -> "Workspace":
        """A bank as a workspace."""
        return cls(
            id=bank.workspace,
            uuid=bank.uuid,
            name=bank.name,
            title=bank.title if bank.title != bank.name else None,
            mission=bank.mission or None,
            repository=bank.repository.full_name if bank.repository else None,
            created_at=bank.created_at,
        )


class Workspaces(Gives):
    """Result of xerotier.workspace.list."""

    workspaces: list[Workspace] = Field(description="By name")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, banks.Banks)
        return cls(workspaces=[Workspace.of(bank) for bank in result.banks])


class GetWorkspace(Takes):
    """No arguments."""

    def to_core(self) -> Given:
        return InBank()


class ThisWorkspace(Gives):
    """Result of xerotier.workspace.get."""

    workspace: Workspace = Field(description="The one that this connection works in")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, banks.Bank)
        return cls(workspace=Workspace.of(result))


class Init(Takes):
    """Arguments of xerotier.session.init."""

    workspace: Clean | None = Field(
        None, min_length=1, max_length=200, description="ws_… id, UUID or name; needed unless there is only one"
    )

    def to_core(self) -> Given:
        return binding.Bind(workspace=self.workspace)


class Initialized(Gives):
    """Result of xerotier.session.init."""

    workspace: Workspace = Field(description="The one that this connection works in from now on")
    project: str = Field(description="Id of its project, proj_…")
    tier: str = Field(description="Which tools this key sees: core, exec, intel or all")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, binding.Bound)
        bound = result.workspace
        title = bound.title if bound.title != bound.name else None
        workspace = Workspace(id=bound.id, uuid=bound.uuid, name=bound.name, title=title)
        return cls(workspace=workspace, project=result.project, tier=result.tier)
