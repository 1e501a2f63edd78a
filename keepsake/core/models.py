"""The shapes that operations take and give, whatever the surface."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from keepsake.core import bank_name, clock
from keepsake.core.text import Clean, cleaned

FactType = Literal["world", "experience", "opinion"]
Budget = Literal["low", "mid", "high"]
Kind = Literal[
    "note",
    "fact",
    "insight",
    "observation",
    "summary",
    "chunk",
    "decision",
    "constraint",
    "heuristic",
    "rejected",
    "milestone",
    "artifact",
]

#: Where memories come from; `told` is what someone said, without a source.
SourceKind = Literal[
    "told",
    "session",
    "document",
    "artifact",
    "commit",
    "pull",
    "issue",
    "readme",
    "file",
    "tag",
    "release",
    "url",
    "transcript",
]
Trust = Literal["owner", "agent", "outside"]


class Given(BaseModel):
    """What an operation is given; unknown arguments and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        # To JSON 5.0 is a whole number, and some clients write it so.
        return int(value) if isinstance(value, float) and value.is_integer() else value


class Result(BaseModel):
    """What an operation gives back."""

    model_config = ConfigDict(frozen=True, defer_build=True)


def _bank_name(name: str) -> str:
    return bank_name.checked(cleaned(name))


def _moment(text: str) -> str:
    try:
        clock.parse(text)
    except ValueError as error:
        raise ValueError("must be an ISO 8601 time such as 2026-03-01T12:00:00Z") from error
    return text


KnownBank = Annotated[str, Field(min_length=1, max_length=bank_name.LONGEST), AfterValidator(_bank_name)]
#: What a bank may be called; an argument that only names one is spared the pattern, which every reader pays for.
BankName = Annotated[KnownBank, Field(json_schema_extra={"pattern": bank_name.PATTERN})]
Moment = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"}), AfterValidator(_moment)]
Tag = Annotated[Clean, Field(min_length=1, max_length=200)]
Tags = Annotated[list[Tag], Field(max_length=100)]


class InBank(Given):
    """An operation on one bank."""

    bank: BankName | None = Field(None, description="Name of the bank; the request's own bank when left out.")


class Somewhere(Given):
    """An operation on what may be in any bank within reach; naming one narrows it."""

    bank: BankName | None = Field(None, description="Name of the bank, to look in no other.")


class Memory(Result):
    """One memory with where it came from."""

    id: str = Field(description="Id of the memory.")
    bank: str = Field(description="Name of its bank.")
    text: str = Field(description="What is remembered.")
    title: str = Field("", description="A short title, where there is one.")
    slug: str = Field("", description="A readable name by which it can be got, too.")
    kind: str = Field(description="note, fact, insight, observation, summary, decision, …")
    type: FactType = Field(description="world, experience or opinion.")
    category: str = Field(description="What the memory is about.")
    tags: list[str] = Field(description="Its tags.")
    metadata: dict[str, object] = Field(description="Key-value pairs given with it.")
    document: str | None = Field(None, description="Id of the document it came from.")
    happened_at: str | None = Field(None, description="When it happened, ISO 8601: the time given with it, else told.")
    speaks_from: str | None = Field(None, description="Start of the time that its text names, where it names one.")
    speaks_to: str | None = Field(None, description="End of that time, not included.")
    learned_at: str = Field(description="When it was stored, ISO 8601.")
    superseded_at: str | None = Field(None, description="When a newer memory took its place.")
    superseded_by: str | None = Field(None, description="Id of the memory that took its place.")
    author: str = Field(description="Who stored it.")
    trust: str = Field(description="How far its source is trusted.")
    proof: int = Field(description="How many times it was confirmed.")
    pinned: bool = Field(False, description="Whether every new session is told of it first.")


class Receipt(Result):
    """Proof of a deletion: what went, when, by whom; never what it said."""

    id: str = Field(description="Id of the receipt.")
    at: str = Field(description="When, ISO 8601.")
    principal: str = Field(description="Who asked for it.")
    operation: str = Field(description="Which operation did it.")
    memories: int = Field(description="How many memories were removed.")
    documents: int = Field(0, description="How many documents were removed.")
    digest: str = Field(description="Keyed digest of the removed ids.")
