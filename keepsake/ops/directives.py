"""Directives: list, create, delete."""

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, ids
from keepsake.core.errors import Conflict, NotFound
from keepsake.core.models import InBank, Receipt, Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import receipts
from keepsake.store import banks, directives
from keepsake.store.engine import Tx

#: More than any model would follow.
MOST = 1_000
LONGEST = 10_000
LARGEST_PRIORITY = 1_000_000


class Directive(Result):
    """An instruction that the bank's answers follow."""

    id: str = Field(description="Id of the directive.")
    name: str = Field(description="What it is called.")
    content: str = Field(description="The instruction.")
    priority: int = Field(description="Higher is more important.")
    is_active: bool = Field(description="Whether it is followed.")
    tags: list[str] = Field(description="Its tags; with any, it is followed only for questions that share one.")
    trust: str = Field(description="How far its author is trusted: owner or agent.")
    author: str = Field(description="Who made it.")
    created_at: str = Field(description="When it was made, ISO 8601.")


def _shown(directive: directives.Directive) -> Directive:
    return Directive(
        id=str(directive.id),
        name=directive.name,
        content=directive.content,
        priority=directive.priority,
        is_active=directive.is_active,
        tags=list(directive.tags),
        trust=directive.trust,
        author=directive.author,
        created_at=clock.iso(directive.created_at),
    )


class ListDirectives(InBank):
    """Which directives."""

    tags: Tags = Field(default_factory=list, description="Only directives with one of these tags.")
    active_only: bool = Field(True, description="Only directives that are followed.")


class Directives(Result):
    """Directives, the most important first."""

    directives: list[Directive] = Field(description="Highest priority first.")


@operation("directive.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListDirectives) -> Directives:
    """List the directives of a bank: instructions that its answers follow, highest priority first."""

    async def body(tx: Tx) -> list[directives.Directive]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        return await directives.listed(tx, ctx.org, bank.id) if bank else []

    return Directives(directives=[_shown(one) for one in await ctx.read(body) if _is_wanted(one, given)])


def _is_wanted(directive: directives.Directive, given: ListDirectives) -> bool:
    return (directive.is_active or not given.active_only) and (
        not given.tags or bool(set(given.tags) & set(directive.tags))
    )


class CreateDirective(InBank):
    """A new directive."""

    name: Filled = Field(max_length=200, description="Human-readable name for the directive.")
    content: Filled = Field(max_length=LONGEST, description="The instruction.")
    priority: int = Field(
        0, ge=-LARGEST_PRIORITY, le=LARGEST_PRIORITY, description="Priority level; higher is more important."
    )
    is_active: bool = Field(True, description="Whether it is followed.")
    tags: Tags = Field(default_factory=list, description="Tags; with any, it holds only for questions that share one.")


@operation("directive.create", effect=Effect.MUTATE, scope="memory:write")
async def create(ctx: Ctx, given: CreateDirective) -> Directive:
    """Create a directive: an instruction that the bank's answers follow from now on."""

    async def body(tx: Tx) -> Changed[Directive]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        await banks.step(tx, ctx.org, bank.id)
        if len(await directives.listed(tx, ctx.org, bank.id)) >= MOST:
            raise Conflict(f"The bank has {MOST:,} directives already. Delete some first.")
        made = directives.Directive(
            org=ctx.org,
            bank=bank.id,
            id=ctx.store.new_id(),
            name=given.name,
            content=given.content,
            priority=given.priority,
            is_active=given.is_active,
            tags=tuple(dict.fromkeys(given.tags)),
            trust=_trust(ctx),
            author=ctx.principal.name,
            created_at=ctx.now,
        )
        await directives.insert(tx, made)
        return Changed(_shown(made), bank.id, [made.id], given.model_dump_json())

    return await ctx.change(body)


def _trust(ctx: Ctx) -> str:
    """How far this principal is trusted: the owner speaks for the person, any other key for an agent."""
    return "owner" if "admin" in ctx.principal.scopes else "agent"


class OneDirective(InBank):
    """Which directive."""

    id: Clean = Field(min_length=1, max_length=64, description="The id of the directive.")


@operation("directive.delete", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def delete(ctx: Ctx, given: OneDirective) -> Receipt:
    """Permanently delete a directive by its id; leaves a receipt."""

    async def body(tx: Tx) -> Changed[Receipt]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is not None:
            await banks.step(tx, ctx.org, bank.id)
        id = ids.parse(given.id)
        if bank is None or id is None or not await directives.delete(tx, ctx.org, bank.id, id):
            raise NotFound(f"No directive {given.id!r} in this bank. Use list_directives to see the ids.")
        return Changed(await receipts.leave(tx, ctx, bank.id, {"directives": 1}, [id]), bank.id, [id])

    return await ctx.change(body)
