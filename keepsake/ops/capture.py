"""Hooks over HTTP: what a client tells is kept, and what it should know is told, within what its credential reaches."""

from collections.abc import Sequence
from dataclasses import replace

from keepsake.context import Ctx
from keepsake.core.brief import Brief
from keepsake.core.errors import Forbidden
from keepsake.core.project import Project
from keepsake.hooks import clients, context
from keepsake.hooks.reading import Json
from keepsake.ops import handed_out
from keepsake.services import repository
from keepsake.store import events, memories
from keepsake.store.engine import Tx
from keepsake.store.events import Event


def parsed(line: str) -> Event:
    """An event as another process of ours sends it, cleaned again: nobody vouches for it. Raises ValueError."""
    event = events.parsed(line)
    return Event(clients.cleaned(event.envelope), event.project)


def told(client: str, event: str, given: Json, now: int) -> list[Event]:
    """The events of a client's own JSON, with the project that its folder belongs to."""
    found = clients.read(client, event, given, now)
    return [Event(envelope, repository.project_of(envelope.cwd)) for envelope in found]


async def keep(ctx: Ctx, found: Sequence[Event]) -> list[Event]:
    """Put events into the inbox, and give them back as they are filed; refuses banks beyond the credential."""
    if "memory:write" not in ctx.principal.scopes:
        raise Forbidden("this credential lacks the scope memory:write. Ask its owner for a key that has it.")
    ctx = ctx.acting(frozenset({"memory:write"}))
    # A key's holder may be a program; only an owner's client speaks for the person.
    trust = "owner" if "admin" in ctx.principal.scopes else "agent"

    async def body(tx: Tx) -> list[Event]:
        projects = {event.project.identity: await _placed(tx, ctx, event.project) for event in found}
        placed = [_filed(event, projects[event.project.identity], trust) for event in found]
        await events.put(tx, ctx.org, placed, ctx.now)
        return placed

    placed = await ctx.store.write(ctx.org, body)
    ctx.app.work.set()
    return placed


def _filed(event: Event, project: Project, trust: str) -> Event:
    extra = {name: part for name, part in event.envelope.extra.items() if name != "handed"}
    return Event(replace(event.envelope, extra=extra | {"trust": trust}), project)


async def _placed(tx: Tx, ctx: Ctx, project: Project) -> Project:
    """Where a project's events go: the bank that the request names, the project's own, or the key's only one."""
    reach = ctx.principal.banks
    if ctx.bank is not None:
        project = replace(project, identity=ctx.bank, name=ctx.bank)
    found = await events.bank_of(tx, ctx.org, project)
    name = found[1] if found else project.name
    if reach is not None and name not in reach:
        if ctx.bank is not None or len(reach) != 1:
            raise Forbidden("this credential does not reach the project's bank. Name one that it reaches in X-Bank-Id.")
        name = next(iter(reach))
        project = replace(project, identity=name, name=name)
        found = await events.bank_of(tx, ctx.org, project)
    if found is None and "bank:admin" not in ctx.principal.scopes:
        raise Forbidden("this credential may not make the project's bank. Make it first, or use a key with bank:admin.")
    return project


async def context_of(ctx: Ctx, event: Event) -> str:
    """What to inject after an event; it is known again when someone brings it back."""
    ctx = ctx.acting(frozenset({"memory:read"}))
    if "memory:read" not in ctx.principal.scopes:
        return ""

    async def body(tx: Tx) -> tuple[Brief, dict[int, str]]:
        brief = await context.text(tx, ctx.org, event, ctx.now)
        place = await events.bank_of(tx, ctx.org, event.project) if brief.ids else None
        if place and not ctx.principal.sees(place[1]):
            return Brief(), {}
        rows = await memories.fetched(tx, ctx.org, place[0], brief.ids) if place else {}
        return brief, {id: row.text for id, row in rows.items()}

    brief, texts = await ctx.read(body)
    if texts:
        handed_out.given(ctx.app, ctx.org, ctx.principal.name, texts)
    return brief.text
