"""The kiro dialect: what coding sessions saw and did, as observations and summaries of projects."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from keepsake.core import clock, ids
from keepsake.core.models import Given, KnownBank, Result
from keepsake.core.text import Clean, Filled
from keepsake.ops import context, records, searching, timeline
from keepsake.ops.records import MOST, Record
from keepsake.tools.dialect import Dialect, Gives, Takes, Tool, Whole, table

#: Ids are whole numbers here.
ObservationId = Annotated[int, Field(ge=1, le=ids.LARGEST)]


def _ms(at: str) -> tuple[str, int]:
    """A moment as the dialect writes it, and in milliseconds since 1970."""
    moment = clock.parse(at)
    return clock.iso_ms(moment), moment // 1000


def _joined(parts: dict[str, object], name: str, between: str) -> str | None:
    """A part as one text; null when it says nothing."""
    told = parts.get(name)
    if isinstance(told, list):
        told = between.join(str(one) for one in told)
    return str(told) if told not in (None, "") else None


class Observation(Whole):
    """An observation."""

    id: int = Field(description="Id of the observation")
    type: str = Field(description="file-write, file-read, command, research, delegation, decision, …")
    title: str = Field(description="Title")
    subtitle: str | None = Field(description="What was done, in a few words")
    text: str | None = Field(description="What was told; null for what was observed")
    narrative: str | None = Field(description="What happened")
    facts: str | None = Field(description="Raw facts such as paths, commands or URLs, one a line")
    concepts: str | None = Field(description="What it is about, separated by commas")
    files_read: str | None = Field(description="Files that were read, separated by commas")
    files_modified: str | None = Field(description="Files that were changed, separated by commas")
    project: str = Field(description="Its project")
    created_at: str = Field(description="When it happened, ISO 8601")
    created_at_epoch: int = Field(description="The same in milliseconds since 1970")
    is_stale: int = Field(description="1 when one of its files has been changed since")
    discovery_tokens: int = Field(description="What it cost to find out, in tokens")

    @classmethod
    def of(cls, record: Record) -> "Observation":
        """A record as an observation."""
        created_at, epoch = _ms(record.at)
        parts = record.parts
        return cls(
            id=int(record.id),
            type=record.subtype or record.kind,
            title=record.title or _beginning(record.text),
            subtitle=_joined(parts, "subtitle", " "),
            text=None if record.kind == "observation" else record.text,
            narrative=record.text or None,
            facts=_joined(parts, "facts", "\n"),
            concepts=_joined(parts, "concepts", ", "),
            files_read=_joined(parts, "files_read", ", "),
            files_modified=_joined(parts, "files_modified", ", "),
            project=record.bank,
            created_at=created_at,
            created_at_epoch=epoch,
            is_stale=int(record.is_stale),
            discovery_tokens=record.tokens,
        )


#: Characters of a text that stand for a title.
_TITLE = 80


def _beginning(text: str) -> str:
    """The first line of a text that has no title, cut at a word."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _TITLE else line[:_TITLE].rpartition(" ")[0] + "…"


class Summary(Whole):
    """A summary of a session."""

    id: int = Field(description="Id of the summary")
    session_id: str = Field(description="The session")
    project: str = Field(description="Its project")
    request: str | None = Field(description="What was asked for")
    investigated: str | None = Field(description="What was looked at")
    learned: str | None = Field(description="What was learned")
    completed: str | None = Field(description="What was done")
    next_steps: str | None = Field(description="What is still to do")
    notes: str | None = Field(description="Anything else")
    created_at: str = Field(description="When, ISO 8601")
    created_at_epoch: int = Field(description="The same in milliseconds since 1970")

    @classmethod
    def of(cls, record: Record) -> "Summary":
        """A record as a summary; one that came as a single text is all notes."""
        created_at, epoch = _ms(record.at)
        told = {name: _joined(record.parts, name, "\n") for name in _PARTS}
        if not any(told.values()):
            told["notes"] = record.text or None
        return cls(
            id=int(record.id),
            session_id=record.session,
            project=record.bank,
            created_at=created_at,
            created_at_epoch=epoch,
            **told,
        )


_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


class Search(Takes):
    """Arguments of search."""

    query: Filled = Field(
        max_length=20_000,
        description='Search query: operators (AND, OR, NOT, "phrase", prefix*, title:word) or natural language',
    )
    project: KnownBank | None = Field(None, description="Only this project; all projects when left out")
    limit: int = Field(10, ge=1, le=MOST, description="Maximum number of results per category")

    def to_core(self) -> Given:
        named = [self.project] if self.project is not None else []
        return searching.Search(query=self.query, banks=named, limit=self.limit)


class Found(Gives):
    """Result of search."""

    observations: list[Observation] = Field(description="Best first")
    summaries: list[Summary] = Field(description="Best first")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, searching.Found)
        return cls(
            observations=[Observation.of(record) for record in result.memories],
            summaries=[Summary.of(record) for record in result.summaries],
        )


class Timeline(Takes):
    """Arguments of timeline."""

    anchor_id: ObservationId = Field(description="ID of the anchor observation")
    depth_before: int = Field(5, ge=0, le=MOST, description="Number of observations before the anchor")
    depth_after: int = Field(5, ge=0, le=MOST, description="Number of observations after the anchor")

    def to_core(self) -> Given:
        return timeline.Around(id=str(self.anchor_id), before=self.depth_before, after=self.depth_after)


class Moment(Whole):
    """An observation in the timeline."""

    id: int = Field(description="Id of the observation")
    type: str = Field(description="file-write, file-read, command, …")
    title: str = Field(description="Title")
    subtitle: str | None = Field(description="What was done, in a few words")
    narrative: str | None = Field(description="What happened")
    project: str = Field(description="Its project")
    created_at: str = Field(description="When it happened, ISO 8601")
    created_at_epoch: int = Field(description="The same in milliseconds since 1970")
    position: int = Field(description="Negative before the anchor, 0 for the anchor, positive after")


class Moments(Gives):
    """Result of timeline."""

    timeline: list[Moment] = Field(description="Oldest first")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, timeline.Timeline)
        return cls(timeline=[_moment(entry) for entry in result.entries])


def _moment(entry: timeline.Entry) -> Moment:
    told = Observation.of(entry.record)
    shared = {name: getattr(told, name) for name in Moment.model_fields if name != "position"}
    return Moment(**shared, position=entry.position)


class GetObservations(Takes):
    """Arguments of get_observations."""

    ids: list[ObservationId] = Field(
        min_length=1, max_length=MOST, description="Array of observation IDs to retrieve (max 50 per request)"
    )

    def to_core(self) -> Given:
        return records.GetRecords(ids=[str(id) for id in self.ids])


class Observations(Gives):
    """Result of get_observations."""

    observations: list[Observation] = Field(description="In the order asked for; unknown ids are left out")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, records.Records)
        return cls(observations=[Observation.of(record) for record in result.records])


class GetContext(Takes):
    """Arguments of get_context."""

    project: KnownBank = Field(description="Project name (usually the git repository basename, e.g. `my-api`)")
    token_budget: int = Field(2_000, ge=1, le=1_000_000, description="Maximum token budget for what is returned")
    query: Clean | None = Field(
        None, max_length=20_000, description="What the task is about; recency alone counts when left out"
    )

    def to_core(self) -> Given:
        return context.GetContext(token_budget=self.token_budget, query=self.query or "")


class Signals(Result):
    """Why an item is there."""

    semantic: float = Field(description="Cosine similarity to the query, 0 without one")
    fts5: float = Field(description="BM25 relevance to the query, 0 without one")
    recency: float = Field(description="Exponential decay from now, halved every 7 days")
    projectMatch: float = Field(description="1 for the same project, 0.5 for others")


class Item(Result):
    """An item of the context."""

    id: int = Field(description="Id of the observation")
    title: str = Field(description="Title")
    content: str = Field(description="What is remembered")
    type: str = Field(description="decision, constraint, file-write, command, …")
    project: str = Field(description="Its project")
    created_at: str = Field(description="When it happened, ISO 8601")
    created_at_epoch: int = Field(description="The same in milliseconds since 1970")
    score: float = Field(description="Composite score, 0 to 1")
    signals: Signals = Field(description="Why it is there")

    @classmethod
    def of(cls, item: context.ContextItem) -> "Item":
        """An item in the dialect's words."""
        created_at, epoch = _ms(item.at)
        return cls(
            id=int(item.id),
            title=item.title or _beginning(item.text),
            content=item.text,
            type=item.type,
            project=item.bank,
            created_at=created_at,
            created_at_epoch=epoch,
            score=item.score,
            signals=Signals(semantic=item.semantic, fts5=item.words, recency=item.recency, projectMatch=item.project),
        )


class Context(Gives):
    """Result of get_context."""

    project: str = Field(description="The project")
    items: list[Item] = Field(description="Decisions, constraints, heuristics and rejected ideas first, then by score")
    summaries: list[Summary] = Field(description="The last sessions, newest first")
    tokenBudget: int = Field(description="The budget that was given")
    tokensUsed: int = Field(description="What items and summaries cost together")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, context.ContextPack)
        return cls(
            project=result.bank,
            items=[Item.of(item) for item in result.items],
            summaries=[Summary.of(record) for record in result.summaries],
            tokenBudget=result.token_budget,
            tokensUsed=result.tokens_used,
        )


INSTRUCTIONS = (
    "Keepsake remembers what was seen, done and decided in earlier coding sessions of a project. Call `get_context` at"
    " the start of a session or task, `search` for anything done or decided before, `timeline` for what happened around"
    " an observation, and `get_observations` for all that is kept of those you found. Empty results mean that nothing"
    " is known; do not guess."
)
KIRO = Dialect(
    "kiro",
    "Keepsake (kiro)",
    INSTRUCTIONS,
    table(
        Tool(
            "search",
            searching.search_,
            Search,
            Found,
            "Use it before changing code that may have a history, and when the user refers to earlier work.",
            bank_argument="project",
        ),
        Tool("timeline", timeline.timeline, Timeline, Moments, "Use it to see what led to a change and what followed."),
        Tool(
            "get_observations",
            records.get,
            GetObservations,
            Observations,
            "Use it for the full content of what search or timeline found, facts included.",
        ),
        Tool(
            "get_context",
            context.context,
            GetContext,
            Context,
            "Use it at the start of a session, with the task as query where there is one.",
            bank_argument="project",
        ),
    ),
)
