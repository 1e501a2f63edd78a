"""When a name came into the contents of a project, or went: asked of the repository itself, for a short while."""

import asyncio
from typing import TYPE_CHECKING

from keepsake.context import Ctx
from keepsake.core.errors import KeepsakeError
from keepsake.core.evidence import Evidence
from keepsake.core.inquiry import Inquiry
from keepsake.core.when import EARLIEST
from keepsake.ops import live, lookups
from keepsake.ops.live import Project
from keepsake.ops.lookups import Looked

if TYPE_CHECKING:
    from keepsake.services.git import Commit, Git

#: Seconds that it may take: beyond them messages and files must tell.
PATIENCE_S = 6.0
#: Commits that are looked at; of a name with more, nobody can say which was the first.
MOST = 300


async def shown(ctx: Ctx, project: Project, inquiry: Inquiry, looked: Looked) -> list[Evidence]:
    """The commits whose contents show it: the first where something came, the last where it went, or all of them."""
    here = live.git_of(ctx, project)
    if here is None or not inquiry.identifiers or inquiry.kind in ("other", "why"):
        return []
    if inquiry.kind in ("who", "changed") and looked.paths:
        return []
    name = inquiry.identifiers[0]
    commits = await _searched(here, project, name, looked)
    if not commits and "." in name:
        commits = await _searched(here, project, name.rpartition(".")[2], looked)
    shas = [commit.sha for commit in commits]
    wanted = {"introduced": shas[-1:], "removed": shas[:1]}.get(inquiry.kind, shas)
    return await ctx.read(lambda tx: lookups.commits(tx, ctx, project, wanted)) if wanted else []


async def _searched(here: "Git", project: Project, name: str, looked: Looked) -> "list[Commit]":
    """The commits that brought or took a name, the latest first; none where there was no time to see them all."""
    window = looked.window
    since = window.start if window and window.start > max(EARLIEST, 0) else None
    try:
        asked = here.history(pickaxe=name, since=since, limit=MOST, revision=project.head)
        found = await asyncio.wait_for(asked, PATIENCE_S)
    except (TimeoutError, KeepsakeError):
        return []
    kept = [one for one in found if not window or one.at is None or window.start <= one.at < window.end]
    return kept if len(found) < MOST else []
