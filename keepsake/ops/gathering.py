"""What a brief on a topic, or on all of a project, is made from, and which section each piece belongs to."""

from keepsake.context import Ctx
from keepsake.core import clock, decision, inquiry, words
from keepsake.core.evidence import Evidence, Findings
from keepsake.ops import finding, lookups
from keepsake.ops.live import Project
from keepsake.store import artifacts, briefs, chats, graph, memories
from keepsake.store.engine import Tx
from keepsake.store.memories import Memory

#: Pieces of evidence of each sort where no topic chooses them, and messages of chats that are told, and looked at.
EACH, MESSAGES, READ = 8, 6, 60
#: What an agent made, and what a repository shows.
MADE, SHOWN = "artifact", "chunk"


async def gathered(ctx: Ctx, project: Project, topic: str) -> tuple[Findings, dict[str, str]]:
    """The evidence, and the section of each piece by its key."""
    found = await (_about(ctx, project, topic) if topic else _latest(ctx, project))
    said = await ctx.read(lambda tx: _said(tx, project, topic))
    sections = await ctx.read(lambda tx: _sections(tx, project, found.evidence))
    evidence = (*found.evidence, *said)
    return Findings(evidence=evidence), sections | {one.key: "Recent chats" for one in said}


async def _about(ctx: Ctx, project: Project, topic: str) -> Findings:
    return await finding.found(ctx, [project], inquiry.read(topic, ctx.now))


async def _latest(ctx: Ctx, project: Project) -> Findings:
    """The latest of every sort."""
    org, bank = project.bank.org, project.bank.id

    async def body(tx: Tx) -> list[Evidence]:
        told = await briefs.material(tx, org, bank, with_incidents=False)
        ids = [one.id for part in (told.decisions, told.milestones, told.memories) for one in part[:EACH]]
        ids += [one.id for one in told.blockers]
        ids += await artifacts.beginnings(tx, org, bank, EACH)
        ids += [one.id for one in await graph.newest(org, bank, SHOWN, EACH).of(tx) if not one.is_superseded]
        return await lookups.described(tx, ctx, project, ids)

    return Findings(evidence=tuple(await ctx.read(body)))


async def _said(tx: Tx, project: Project, topic: str) -> list[Evidence]:
    """What was said last in chats; with a topic, what shares a word with it."""
    wanted = set(words.asked(topic)) if topic else set()
    messages = await chats.recent(tx, project.bank.org, project.bank.id, READ)
    near = [one for one in messages if not wanted or wanted.intersection(words.lexemes(one.text))]
    return [
        Evidence(
            bank=project.bank.name,
            kind="chat",
            key=f"{one.chat}/{one.n}",
            title="Question" if one.role == "user" else "Answer",
            text=one.text,
            date=clock.iso(one.at),
            trust="agent",
        )
        for one in near
        if one.text != chats.REMOVED
    ][:MESSAGES]


async def _sections(tx: Tx, project: Project, found: tuple[Evidence, ...]) -> dict[str, str]:
    ids = [int(one.memory) for one in found if one.memory]
    held = await memories.fetched(tx, project.bank.org, project.bank.id, ids)
    return {one.key: _section(held[int(one.memory)]) for one in found if one.memory and int(one.memory) in held}


def _section(memory: Memory) -> str:
    if memory.kind in decision.KINDS:
        return "Decisions"
    if memory.kind == "milestone":
        return "Milestones"
    if memory.kind == MADE:
        return "Artifacts"
    is_read = memory.kind == SHOWN or (memory.source is not None and memory.kind in ("note", "fact"))
    return "Documents" if is_read else "Memories"
