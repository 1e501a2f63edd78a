"""The one door: every surface calls through here, and nothing runs that was not admitted."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from keepsake.auth import limits, policy
from keepsake.auth.limits import Allowance
from keepsake.context import Ctx
from keepsake.core import log, meter
from keepsake.core.errors import Broken, KeepsakeError, UnknownTool
from keepsake.core.intake import Arguments, cleaned, echoed, validated
from keepsake.core.lazy import lazy
from keepsake.core.operation import AnyOperation
from keepsake.ops import banks
from keepsake.tools.dialect import Dialect, Tool

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
        return policy.may(ctx.principal, tool.operation) and (tool.offers is None or bool(tool.offers(ctx.principal)))

    def tool(self, ctx: Ctx, name: str) -> Tool:
        """A tool of the table; the words are the same whatever the reason it is not there."""
        tool = self.dialect.tools.get(name) or gate.TOOLS.get(name)
        if tool is None or not policy.in_tier(ctx.principal, tool.operation):
            raise UnknownTool(f"Unknown tool: {echoed(name, 100)}. Use tools/list to see the tools that you may call.")
        return tool

    def admit(self, ctx: Ctx, tool: Tool, arguments: Arguments) -> None:
        """Ask everything that can be asked before any work, and whether the dialect runs such a thing at all."""
        admit(ctx, tool.operation, arguments, tool.bank_argument)
        if self.dialect.is_gated:
            policy.check_gate(tool.operation)


def admit(ctx: Ctx, operation: AnyOperation, arguments: Arguments, bank_argument: str = "bank") -> None:
    """Ask everything that can be asked before any work: scopes, bank, destructive right."""
    policy.check_scopes(ctx.principal, operation)
    acting = ctx.acting(operation.scopes)
    for named in _named(operation, arguments, bank_argument):
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


def _named(operation: AnyOperation, arguments: Arguments, bank_argument: str) -> list[str | None]:
    """The banks that a call names; None stands for the request's own."""
    named = arguments.get(bank_argument)
    several = named if isinstance(named, list) else arguments.get("banks")
    if isinstance(several, list) and several:
        return [one for one in several if isinstance(one, str)]
    if "bank" not in operation.given.model_fields and bank_argument not in arguments:
        return []
    return [named if isinstance(named, str) else None]


async def limit(ctx: Ctx, calls: int = 1) -> Allowance | None:
    """Count calls against the key's minute."""
    return await limits.count(ctx.store, ctx.principal, ctx.app.settings.rate_limit, ctx.now, calls)


async def call_tool(ctx: Ctx, door: Door, name: str, arguments: Arguments) -> BaseModel:
    """Run a tool of a dialect; the surface has counted the call already."""
    tool = door.tool(ctx, name)
    door.admit(ctx, tool, arguments)
    wire, found = cleaned(validated(tool.arguments, arguments, tool.name), tool.name)

    async def shaped(running: Ctx) -> BaseModel:
        return tool.from_core(await tool.operation(running, tool.to_core(wire)))

    return await _run(ctx.without(found), tool.operation, shaped)


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
