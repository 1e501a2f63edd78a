"""The one door: every surface calls through here, and nothing runs that was not admitted."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from keepsake.auth import limits, policy
from keepsake.auth.limits import Allowance
from keepsake.context import Ctx
from keepsake.core import log, meter, secrets
from keepsake.core.errors import BadInput, Broken, KeepsakeError, UnknownTool
from keepsake.core.lazy import lazy
from keepsake.core.models import Given
from keepsake.core.operation import AnyOperation
from keepsake.ops import banks
from keepsake.tools.dialect import Dialect, Tool

if TYPE_CHECKING:
    from keepsake.ops import everything
else:
    everything = lazy("keepsake.ops.everything")

Arguments = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Door:
    """A dialect as one principal meets it."""

    dialect: Dialect

    def tools(self, ctx: Ctx) -> list[Tool]:
        """The tools that this principal may call."""
        return [tool for tool in self.dialect.tools.values() if policy.may(ctx.principal, tool.operation)]

    def tool(self, ctx: Ctx, name: str) -> Tool:
        """A tool of the table; the words are the same whatever the reason it is not there."""
        tool = self.dialect.tools.get(name)
        if tool is None or not policy.in_tier(ctx.principal, tool.operation):
            raise UnknownTool(f"Unknown tool: {_echoed(name, 100)}. Use tools/list to see the tools that you may call.")
        return tool


def admit(ctx: Ctx, operation: AnyOperation, arguments: Arguments, bank_argument: str = "bank") -> None:
    """Ask everything that can be asked before any work: scopes, bank, destructive right."""
    policy.check_scopes(ctx.principal, operation)
    if "bank" in operation.given.model_fields or bank_argument in arguments:
        named = arguments.get(bank_argument)
        name, _ = banks.wanted(ctx, named if isinstance(named, str) else None)
        if not banks.is_hidden(ctx, name):
            policy.check_bank(ctx.principal, name)
    policy.check_destructive(ctx.principal, operation)


async def limit(ctx: Ctx, calls: int = 1) -> Allowance | None:
    """Count calls against the key's minute."""
    return await limits.count(ctx.store, ctx.principal, ctx.app.settings.rate_limit, ctx.now, calls)


async def call_tool(ctx: Ctx, door: Door, name: str, arguments: Arguments) -> BaseModel:
    """Run a tool of a dialect; the surface has counted the call already."""
    tool = door.tool(ctx, name)
    admit(ctx, tool.operation, arguments, tool.bank_argument)
    wire, found = cleaned(validated(tool.arguments, arguments, tool.name), tool.name)

    async def shaped(running: Ctx) -> BaseModel:
        return tool.from_core(await tool.operation(running, tool.to_core(wire)))

    return await _run(ctx.without(found), tool.operation, shaped)


def admitted(ctx: Ctx, operation: str, arguments: Arguments) -> AnyOperation:
    """An operation by its id, if this principal may run it."""
    declared = everything.REGISTRY.get(operation)
    if declared is None or not policy.in_tier(ctx.principal, declared):
        raise UnknownTool(f"Unknown operation: {_echoed(operation, 100)}. The OpenAPI document lists them.")
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
        return await work(ctx.running(operation.id))
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


def validated(model: type[Given], arguments: Arguments, name: str) -> Given:
    """Arguments as the model wants them, or one sentence per mistake."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise BadInput(f"{name}: {_told(error, model)}") from error
    except RecursionError as error:
        raise BadInput(f"{name}: the arguments are nested too deeply.") from error


# Here and not in the operations: every call passes, reading or writing, so no operation can forget it.
def cleaned(given: Given, name: str) -> tuple[Given, tuple[str, ...]]:
    """What was given without its secrets, and the names of those; a field that must hold one is a `SecretStr`."""
    found: list[str] = []
    fields = {field: _clean(getattr(given, field), found) for field in given.model_fields_set}
    return (validated(type(given), fields, name), tuple(dict.fromkeys(found))) if found else (given, ())


def _clean(value: object, found: list[str]) -> object:
    """Names of our own fields say nothing; keys of a mapping that a caller chose do."""
    if isinstance(value, BaseModel):
        return {field: _clean(getattr(value, field), found) for field in value.model_fields_set}
    if isinstance(value, list):
        return [_clean(part, found) for part in value]
    if not isinstance(value, str | dict):
        return value
    made = secrets.redacted_json(value)
    found += made.found
    return made.value


def _echoed(text: str, most: int) -> str:
    """The beginning of what a caller said, safe to repeat."""
    return secrets.redacted(text[: 10 * most]).text[:most]


def _told(error: ValidationError, model: type[Given]) -> str:
    sentences = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        place = _echoed(".".join(str(part) for part in problem["loc"]), 200) or "the arguments"
        if problem["type"] == "extra_forbidden":
            known = ", ".join(model.model_fields) or "none"
            sentences.append(f"`{place}` is not an argument; the arguments are: {known}.")
        elif problem["type"] == "missing":
            sentences.append(f"`{place}` is required.")
        else:
            sentences.append(f"`{place}`: {problem['msg'].removeprefix('Value error, ')}.")
    return secrets.redacted(" ".join(sentences).encode("utf-8", "replace").decode()).text
