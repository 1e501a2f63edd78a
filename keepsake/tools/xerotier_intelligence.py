"""What a project knows of itself, in xerotier's words: brief, decisions, milestones, graph."""

from typing import Self

from pydantic import BaseModel, Field

from keepsake.core.models import Given, Moment, Result, Tags
from keepsake.core.text import Clean, Filled
from keepsake.ops import analyze, ask, brief, decisions, graph, milestones
from keepsake.tools.dialect import Gives, Takes, Text, Tool, within


class Timeline(Takes):
    """Arguments of xerotier.intelligence.timeline."""

    milestone_type: Clean = Field("", max_length=60, description="Only of this sort, such as release")
    since: Moment | None = Field(None, description="From then on, ISO 8601")
    until: Moment | None = Field(None, description="Before then, ISO 8601")
    related_decision: Clean | None = Field(
        None, min_length=1, max_length=200, description="Only what carries out the decision of this id or slug"
    )
    limit: int = Field(20, ge=1, le=100, description="Milestones at most")
    offset: int = Field(0, ge=0, le=10_000_000, description="How many to skip")

    def to_core(self) -> Given:
        return milestones.ListMilestones(
            type=self.milestone_type,
            since=self.since,
            until=self.until,
            related_decision=self.related_decision,
            limit=self.limit,
            offset=self.offset,
        )


class TrackMilestone(Takes):
    """Arguments of xerotier.intelligence.track_milestone."""

    title: Filled = Field(max_length=300, description="What was reached, in one line")
    description: Clean = Field("", max_length=20_000, description="What belongs to it")
    milestone_type: Clean = Field("", max_length=60, description="A word: release, launch, migration, …")
    happened_at: Moment | None = Field(None, description="When, ISO 8601; now when left out")
    related_decisions: list[Clean] = Field(
        default_factory=list, max_length=50, description="Ids or slugs of decisions that it carries out"
    )
    tags: Tags = Field(default_factory=list, description="To filter by later")

    def to_core(self) -> Given:
        return milestones.RecordMilestone(
            title=self.title,
            description=self.description,
            type=self.milestone_type,
            happened_at=self.happened_at,
            related_decisions=self.related_decisions,
            tags=self.tags,
        )


class Milestone(Result):
    """A milestone as it is kept."""

    id: str = Field(description="Its id; it is a memory like any other")
    slug: str = Field(description="Its readable name: xerotier://memory/{slug}")
    bank: str = Field(description="Name of its workspace")
    title: str = Field(description="What was reached, in one line")
    description: str = Field(description="What belongs to it")
    milestone_type: str = Field(description="Its sort; empty where nobody said so")
    happened_at: str = Field(description="When it was reached, ISO 8601")
    learned_at: str = Field(description="When it was recorded, ISO 8601")
    related_decisions: list[str] = Field(description="Ids of the decisions that it is related to")
    tags: list[str] = Field(description="Its tags")
    author: str = Field(description="Who recorded it")
    trust: str = Field(description="How far its source is trusted")

    @classmethod
    def of(cls, kept: milestones.Milestone) -> "Milestone":
        """A milestone in the dialect's words."""
        return cls(milestone_type=kept.type, **kept.model_dump(exclude={"type"}))


class Tracked(Gives):
    """Result of xerotier.intelligence.track_milestone."""

    outcome: str = Field(description="stored; known: it was recorded before; skipped: `note` says why")
    milestone: Milestone | None = Field(None, description="The milestone as it is kept now")
    note: str | None = Field(None, description="Why it was skipped")
    redacted: list[str] | None = Field(None, description="Kinds of secrets that were taken out")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, milestones.RecordedMilestone)
        kept = Milestone.of(result.milestone) if result.milestone else None
        return cls(outcome=result.outcome, milestone=kept, note=result.note, redacted=result.redacted)


class Milestones(Gives):
    """Result of xerotier.intelligence.timeline."""

    milestones: list[Milestone] = Field(description="The latest first")
    total: int = Field(description="How many there are in all")

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, milestones.Milestones)
        return cls(milestones=[Milestone.of(one) for one in result.milestones], total=result.total)


class Analyzed(Text):
    """Result of xerotier.intelligence.analyze."""

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        assert isinstance(result, ask.Answered)
        return cls(text=ask.with_maker(result))


TOOLS = (
    Tool(
        "xerotier.intelligence.brief",
        brief.get,
        within(brief.GetBrief),
        about="How the project stands now: decisions, blockers, milestones, connections, recent memories.",
        hint="Use it when a session begins or the user asks where things are.",
        tells_result=False,
    ),
    Tool(
        "xerotier.intelligence.timeline",
        milestones.list_,
        Timeline,
        Milestones,
        about="List milestones, the latest first, by sort, time or the decision they carry out.",
        hint="For what was decided use intelligence.decisions.",
        tells_result=False,
    ),
    Tool(
        "xerotier.intelligence.decisions",
        decisions.list_,
        within(decisions.ListDecisions, "tags"),
        about="Find decisions, constraints and rejected options: by meaning with a query, else the newest first.",
        hint="Use it before you propose or redo something that may have been decided.",
        tells_result=False,
    ),
    Tool(
        "xerotier.intelligence.analyze",
        analyze.analyze,
        within(analyze.Analyze),
        Analyzed,
        about="Write a cited Markdown brief from documents, memories, artifacts and recent chats.",
        hint="Use it for an overview to read; for single facts memory.search is quicker.",
    ),
    Tool(
        "xerotier.intelligence.graph",
        graph.get,
        within(graph.GetGraph, "types"),
        about="Show decisions, milestones, artifacts and entities as nodes, their relations as edges.",
        hint="Use it to see what depends on what.",
        tells_result=False,
    ),
    Tool(
        "xerotier.intelligence.relate",
        graph.relate,
        within(graph.Relate),
        about="Relate two things that exist in the workspace, by a typed edge.",
        tells_result=False,
    ),
    Tool(
        "xerotier.intelligence.track_decision",
        decisions.record,
        within(decisions.RecordDecision, "happened_at"),
        about="Record a decision, constraint, heuristic or rejected option, with why and instead of what.",
        hint="Use it when something is settled that later work depends on; not for plain facts (memory.save).",
        tells_result=False,
    ),
    Tool(
        "xerotier.intelligence.track_milestone",
        milestones.record,
        TrackMilestone,
        Tracked,
        about="Record a milestone that was reached.",
        hint="Use it when something is done, not when it is planned.",
        tells_result=False,
    ),
)
