"""Citations are checked against the store and the repository before an answer leaves."""

from collections.abc import Sequence

from keepsake.context import Ctx
from keepsake.core import ids
from keepsake.core.evidence import DEEDS, DOCUMENTS, Evidence
from keepsake.ops import live, retrieve
from keepsake.ops.live import Project
from keepsake.store import chats, history, memories, repos
from keepsake.store.engine import Tx


async def gone(ctx: Ctx, projects: Sequence[Project], cited: Sequence[Evidence]) -> list[Evidence]:
    """Those of these that do not exist as they are cited."""
    lost: list[Evidence] = []
    for project in projects:
        own = [one for one in cited if one.bank == project.bank.name]
        held = await ctx.read(lambda tx: _held(tx, ctx, project, own))  # noqa: B023
        known = [one for one in own if one.identity in held and await _is_there(ctx, project, one)]
        lost += [one for one in own if one not in known]
    return lost


Identity = tuple[str, str, str, int, int]


async def _held(tx: Tx, ctx: Ctx, project: Project, cited: Sequence[Evidence]) -> set[Identity]:
    """Those that the store still holds: what a repository told, files of the synced revision, memories that hold."""
    scope, held = project.scope(ctx.now), set[Identity]()
    for kind in (*sorted(DEEDS), "tree"):
        own = [one for one in cited if one.kind == kind]
        source = "file" if kind == "tree" else kind
        keys = await history.cited(tx, scope, source, [one.key for one in own]) if own else set()
        held |= {one.identity for one in own if one.key in keys}
    for one in (one for one in cited if one.kind in DOCUMENTS):
        file = await repos.file(tx, ctx.org, project.bank.id, one.path)
        if file and file.kind == "file" and one.blob in ("", file.blob):
            held.add(one.identity)
    for one in (one for one in cited if one.kind == "chat"):
        if await _is_said(tx, ctx, project, one):
            held.add(one.identity)
    others = {ids.parse(one.key): one for one in cited if one.kind == "memory"}
    rows = await memories.fetched(tx, ctx.org, project.bank.id, [id for id in others if id])
    return held | {others[id].identity for id, row in rows.items() if retrieve.held(row, ctx.now)}


async def _is_said(tx: Tx, ctx: Ctx, project: Project, one: Evidence) -> bool:
    """Whether a message of a chat still says what it said."""
    chat, _, n = one.key.partition("/")
    said = await chats.messages(tx, ctx.org, project.bank.id, int(chat), 1, int(n) + 1)
    return [message.text for message in said] == [one.text]


async def _is_there(ctx: Ctx, project: Project, one: Evidence) -> bool:
    """Whether the repository itself, where it is on this machine, has the commit, or the file so many lines."""
    here = live.git_of(ctx, project)
    if here is None:
        return True
    if one.kind == "commit":
        return bool(await here.exists(one.key))
    if one.kind not in DOCUMENTS or not one.end:
        return True
    try:
        return (await live.read(ctx, project, one.path, 1, live.WHOLE)).total >= one.end
    except live.Unreadable:
        return False
