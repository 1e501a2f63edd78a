"""The one door: every surface calls through here, and nothing runs that was not admitted."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import BaseModel

from keepsake.auth import limits, policy
from keepsake.auth.limits import Allowance
from keepsake.context import Ctx
from keepsake.core import log, meter
from keepsake.core.errors import Broken, Forbidden, KeepsakeError, NotBound, NotFound, UnknownResource, UnknownTool
from keepsake.core.intake import Arguments, cleaned, echoed, validated
from keepsake.core.lazy import lazy
from keepsake.core.models import Somewhere
from keepsake.core.operation import AnyOperation, Effect
from keepsake.ops import banks
from keepsake.tools.dialect import Dialect, Prompt, Proposable, Resource, Tool

if TYPE_CHECKING:
    from keepsake.ops import everything, proposals
    from keepsake.tools import gate
else:
    everything = lazy("keepsake.ops.everything")
    proposals = lazy("keepsake.ops.proposals")
    gate = lazy("keepsake.tools.gate")

__all__ = ["Arguments", "cleaned", "validated"]


@dataclass(frozen=True, slots=True)
class Door:
    """A dialect as one principal meets it."""

    dialect: Dialect

    def tools(self, ctx: Ctx) -> list[Tool]:
        """The tools that this principal may call."""
        return [tool for tool in self.dialect.tools.values() if self._offers(ctx, tool)]

    def _offers(self, ctx: Ctx, tool: Tool) -> bool:
        if self.dialect.is_gated and not policy.is_open(tool.operation):
            return False
        may = policy.may(ctx.principal, tool.operation)
        if not may and tool.is_proposable:
            may = policy.may_propose(ctx.principal, tool.operation)
        return may and (tool.offers is None or bool(tool.offers(ctx.principal)))

    async def placed(self, ctx: Ctx) -> Ctx:
        """The request in the bank that it means where it names none."""
        if ctx.bank is not None or not self.dialect.means_only_bank:
            return ctx
        only = await banks.only(ctx)
        return ctx if only is None else replace(ctx, bank=only)

    def tool(self, ctx: Ctx, name: str) -> Tool:
        """A tool of the table; the words are the same whatever the reason it is not there."""
        tool = self.dialect.tools.get(name) or self.dialect.aliases.get(name) or gate.TOOLS.get(name)
        if tool is None or not policy.in_tier(ctx.principal, tool.operation):
            raise UnknownTool(f"Unknown tool: {echoed(name, 100)}. Use tools/list to see the tools that you may call.")
        return tool

    def guided(self, ctx: Ctx, error: NotFound) -> NotFound:
        """What is not there, with the tools that this principal can look with."""
        if not error.see:
            return error
        return NotFound(error.message, *(tool.name for tool in self.tools(ctx) if tool.operation.id in error.see))

    def admit(self, ctx: Ctx, tool: Tool, arguments: Arguments) -> None:
        """Ask everything that can be asked before any work, and whether the dialect runs such a thing at all."""
        if tool.needs_bank and self.is_unbound(ctx):
            # Which bank is meant is not known yet.
            policy.check_scopes(ctx.principal, tool.operation)
            policy.check_destructive(ctx.principal, tool.operation)
        elif not self.must_ask(ctx, tool, arguments):
            admit(ctx, tool.operation, arguments, tool.bank_argument)
        if self.dialect.is_gated:
            policy.check_gate(tool.operation)

    async def admit_stored(self, ctx: Ctx, tool: Tool, arguments: Arguments) -> None:
        """Ask what only the store knows: what a token stands for, and whether a write has a bank to go to."""
        await admit_token(ctx, tool.operation, arguments)
        if policy.may_make(ctx.principal) or self.is_unbound(ctx):
            return
        operation, given, argument = tool.operation, arguments, tool.bank_argument
        if operation.id == "proposal.create" and (carried := proposals.carried(arguments)):
            operation, given, argument = *carried, "bank"
        if operation.effect is Effect.MUTATE:
            for named in _named(ctx, operation, given, argument):
                await banks.check_there(ctx, named)

    def is_unbound(self, ctx: Ctx) -> bool:
        """Whether the client has yet to choose the bank that it works in."""
        return bool(self.dialect.workspace) and ctx.bank is None

    def prompts(self, ctx: Ctx) -> list[Prompt]:
        """The prompts that this principal may ask for."""
        return [one for one in self.dialect.prompts.values() if self._reads(ctx, one)]

    def prompt(self, ctx: Ctx, name: str) -> Prompt:
        """A prompt of the table; the words are the same whatever the reason it is not there."""
        prompt = self.dialect.prompts.get(name)
        if prompt is None or not policy.is_within(ctx.principal, prompt.tier):
            raise UnknownTool(f"Unknown prompt: {echoed(name, 100)}. Use prompts/list to see those that you may get.")
        return prompt

    def resources(self, ctx: Ctx) -> list[Resource]:
        """The kinds of resources that this principal may read."""
        return [one for one in self.dialect.resources if self._reads(ctx, one)]

    def resource(self, ctx: Ctx, uri: str) -> tuple[Resource, Arguments]:
        """The resource at an address, and what that says."""
        for one in self.dialect.resources:
            if policy.is_within(ctx.principal, one.tier) and (told := one.arguments(uri)) is not None:
                return one, dict(told)
        raise UnknownResource(uri)

    def _reads(self, ctx: Ctx, one: Prompt | Resource) -> bool:
        operation = one.tool.operation
        return policy.is_within(ctx.principal, one.tier) and operation.scopes <= ctx.principal.scopes

    def must_ask(self, ctx: Ctx, tool: Tool, arguments: Arguments) -> bool:
        """Whether a call is to be proposed, because its principal may ask for the change but not make it."""
        if not tool.is_proposable:
            return False
        try:
            admit(ctx, tool.operation, arguments, tool.bank_argument)
        except Forbidden:
            proposals.admit(ctx, proposals.create, {"operation": tool.operation.id, "arguments": arguments})
            return True
        return False


def admit(ctx: Ctx, operation: AnyOperation, arguments: Arguments, bank_argument: str = "bank") -> None:
    """Ask everything that can be asked before any work: scopes, bank, destructive right."""
    policy.check_scopes(ctx.principal, operation)
    policy.check_page(operation, ctx.signed_in_at is not None)
    acting = ctx.acting(operation.scopes)
    for named in _named(ctx, operation, arguments, bank_argument):
        name, _ = banks.wanted(acting, named)
        if not banks.is_hidden(acting, name):
            policy.check_bank(acting.principal, name)
    policy.check_destructive(acting.principal, operation)
    # They carry any operation, so all of them must be known.
    if operation.id in policy.GATE and everything.REGISTRY:
        proposals.admit(ctx, operation, arguments)


async def admit_token(ctx: Ctx, operation: AnyOperation, arguments: Arguments) -> None:
    """Ask about what a token stands for, which only the store knows."""
    if operation.id == "proposal.apply":
        await proposals.check_token(ctx, arguments)


def _named(ctx: Ctx, operation: AnyOperation, arguments: Arguments, bank_argument: str) -> list[str | None]:
    """The banks that a call names; None stands for the request's own."""
    named = arguments.get(bank_argument)
    several = named if isinstance(named, list) else arguments.get("banks")
    if isinstance(several, list) and several:
        return [one for one in several if isinstance(one, str)]
    is_free = issubclass(operation.given, Somewhere) and ctx.bank is None
    is_anywhere = "bank" not in operation.given.model_fields or is_free
    if is_anywhere and bank_argument not in arguments:
        return []
    return [named if isinstance(named, str) else None]


async def limit(ctx: Ctx, calls: int = 1) -> Allowance | None:
    """Count calls against the key's minute."""
    return await limits.count(ctx.store, ctx.principal, ctx.app.settings.rate_limit, ctx.now, calls)


async def call_tool(ctx: Ctx, door: Door, name: str, arguments: Arguments) -> BaseModel:
    """Run a tool of a dialect; the surface has counted the call already."""
    return await run_tool(ctx, door, door.tool(ctx, name), arguments)


async def run_tool(ctx: Ctx, door: Door, tool: Tool, arguments: Arguments) -> BaseModel:
    """Run a tool that the door knows, or that stands behind one of its prompts and resources."""
    door.admit(ctx, tool, arguments)
    if tool.needs_bank and door.is_unbound(ctx):
        raise NotBound
    wire, found = cleaned(validated(tool.arguments, arguments, tool.name), tool.name)

    ctx = ctx.without(found)
    if isinstance(wire, Proposable) and door.must_ask(ctx, tool, arguments):
        return await _asked(ctx, tool, wire)

    async def shaped(running: Ctx) -> BaseModel:
        try:
            return tool.from_core(await tool.operation(running, tool.to_core(wire)))
        except NotFound as error:
            raise door.guided(ctx, error) from error

    return await _run(ctx, tool.operation, shaped)


async def _asked(ctx: Ctx, tool: Tool, wire: Proposable) -> BaseModel:
    """Propose what a tool would do; with the token of an approved proposal, apply that."""
    target = tool.operation

    async def proposed(running: Ctx) -> BaseModel:
        carried = tool.to_core(wire).model_dump(mode="json", exclude_unset=True)
        given = proposals.Propose(operation=target.id, arguments=carried, reason=wire.reason)
        return tool.from_core(await proposals.create(running, given))

    async def applied(running: Ctx) -> BaseModel:
        assert wire.token is not None
        outcome = await proposals.apply(running, proposals.Apply(token=wire.token))
        return tool.from_core(target.result.model_validate(outcome.model_dump()))

    if wire.token is None:
        return await _run(ctx, proposals.create, proposed)
    await admit_token(ctx, proposals.apply, {"token": wire.token.get_secret_value()})
    return await _run(ctx, proposals.apply, applied)


def admitted(ctx: Ctx, operation: str, arguments: Arguments) -> AnyOperation:
    """An operation by its id, if this principal may run it."""
    declared = everything.REGISTRY.get(operation)
    if declared is None or not policy.in_tier(ctx.principal, declared):
        raise UnknownTool(f"Unknown operation: {echoed(operation, 100)}. The OpenAPI document lists them.")
    admit(ctx, declared, arguments)
    return declared


async def call(ctx: Ctx, operation: str, arguments: Arguments) -> BaseModel:
    """Run an operation by its id, in its own words."""
    declared = admitted(ctx, operation, arguments)
    given, found = cleaned(validated(declared.given, arguments, operation), operation)
    return await _run(ctx.without(found), declared, lambda running: declared(running, given))


async def attempted(work: Callable[[], Awaitable[None]]) -> None:
    """Do what nobody waits for: a refusal ends it, and a fault of ours is logged and ends nothing else."""
    try:
        await work()
    except KeepsakeError as refused:
        log.info("left", code=refused.code)
    except Exception as error:
        log.error("failed", error=type(error).__name__, trace=log.trace(error))


async def _run(ctx: Ctx, operation: AnyOperation, work: Callable[[Ctx], Awaitable[BaseModel]]) -> BaseModel:
    started, outcome = time.perf_counter(), "ok"
    try:
        # What carries other operations narrows to what those need, not to what needs nothing.
        acting = ctx if operation.id in policy.GATE else ctx.acting(operation.scopes)
        return await work(acting.running(operation.id))
    except KeepsakeError as refused:
        outcome = refused.code
        log.info("refused", operation=operation.id, code=refused.code, request=ctx.request_id)
        raise
    except Exception as error:
        outcome = "broken"
        fault = {"error": type(error).__name__, "trace": log.trace(error)}
        log.error("failed", operation=operation.id, request=ctx.request_id, **fault)
        raise Broken(ctx.request_id) from error
    finally:
        meter.observed(operation.id, outcome, time.perf_counter() - started)
