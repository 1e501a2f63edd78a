"""What the hindsight dialect takes and gives for banks."""

from typing import Self

from pydantic import BaseModel, Field

from keepsake.core import models
from keepsake.core.models import BankName, Given
from keepsake.core.text import Clean
from keepsake.ops import banks
from keepsake.tools.dialect import Gives, Takes


class GetBank(Takes):
    """Arguments of get_bank, get_bank_stats and delete_bank."""

    def to_core(self) -> Given:
        return models.InBank()


class ListBanks(Takes):
    """No arguments."""

    def to_core(self) -> Given:
        return banks.ListBanks()


class CreateBank(Takes):
    """Arguments of create_bank."""

    bank_id: BankName = Field(description="The ID for the new bank")
    name: Clean = Field("", max_length=200, description="Human-friendly name for the bank")
    mission: Clean = Field("", max_length=10_000, description="Who the agent is and what they're trying to accomplish")

    def to_core(self) -> Given:
        return banks.CreateBank(name=self.bank_id, title=self.name, mission=self.mission)


class UpdateBank(Takes):
    """Arguments of update_bank."""

    name: Clean | None = Field(None, max_length=200, description="New human-friendly name for the bank")
    mission: Clean | None = Field(None, max_length=10_000, description="New mission of the bank")

    def to_core(self) -> Given:
        return banks.UpdateBank(title=self.name, mission=self.mission)


class Bank(Gives):
    """A bank."""

    bank_id: str = Field(description="The bank's ID")
    name: str = Field(description="Human-friendly name")
    mission: str = Field(description="Who the agent is and what they're trying to accomplish")
    disposition: dict[str, int] = Field(description="Skepticism, literalism and empathy, 1 to 5")
    created_at: str | None = Field(None, description="When it was made; absent before its first write")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, banks.Bank)
        return cls(
            bank_id=result.name,
            name=result.title,
            mission=result.mission,
            disposition=result.disposition,
            created_at=result.created_at,
        )


class Banks(Gives):
    """Result of list_banks."""

    banks: list[Bank] = Field(description="By ID")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, banks.Banks)
        return cls(banks=[Bank.from_core(one) for one in result.banks])


class BankStats(Gives):
    """Result of get_bank_stats."""

    bank_id: str = Field(description="The bank's ID")
    total_nodes: int = Field(description="Memories that hold now")
    total_links: int = Field(description="Links between memories")
    total_documents: int = Field(description="Documents")
    total_tags: int = Field(description="Distinct tags")
    nodes_by_fact_type: dict[str, int] = Field(description="Memories by fact type")
    links_by_link_type: dict[str, int] = Field(description="Links by reason")
    pending_embeddings: int = Field(description="Memories whose sharper vector is still to come")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, banks.Stats)
        return cls(
            bank_id=result.bank,
            total_nodes=result.memories,
            total_links=result.links,
            total_documents=result.documents,
            total_tags=result.tags,
            nodes_by_fact_type=result.by_type,
            links_by_link_type=result.by_link,
            pending_embeddings=result.unsharpened,
        )
