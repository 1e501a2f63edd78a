"""Enrolment: what an operator lets agents ask for, and who of them may ask for which."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import Changed, Ctx
from keepsake.core import clock, intake, secrets, template
from keepsake.core.enrolment import Enrolment
from keepsake.core.errors import BadInput, NotFound, UnknownTool
from keepsake.core.lazy import lazy
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.proposal import canonical
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.store import exec_tools, invocations
from keepsake.store.engine import Tx
from keepsake.store.exec_tools import ExecTool
from keepsake.store.invocations import End

if TYPE_CHECKING:
    import jsonschema
else:
    jsonschema = lazy("jsonschema")

#: Characters of all arguments together.
LONGEST = 100_000
#: Schemas are read where they stand: a reference could lead to another host.
_ELSEWHERE = ("$ref", "$dynamicRef", "$recursiveRef", "$id")
CHANGED = "The tool was changed or removed after this was asked for. Ask again."
Name = Clean


class Enrolled(Result):
    """A tool that agents may ask for."""

    name: str = Field(description="What agents call it.")
    version: str = Field(description="A hash over all that was enrolled; it changes with any of it.")
    enrolled_by: str = Field(description="Who enrolled it.")
    enrolled_at: str = Field(description="When, ISO 8601.")
    definition: dict[str, object] = Field(description="What was enrolled.")
    withdrawn: int = Field(0, description="How many that waited were ended, because they were asked of it as it was.")


def _shown(tool: ExecTool, withdrawn: int = 0) -> Enrolled:
    return Enrolled(
        name=tool.definition.name,
        version=tool.version,
        enrolled_by=tool.enrolled_by,
        enrolled_at=clock.iso(tool.enrolled_at),
        definition=tool.definition.model_dump(mode="json"),
        withdrawn=withdrawn,
    )


@operation("exec.enrol", effect=Effect.MUTATE, scope="admin")
async def enrol(ctx: Ctx, given: Enrolment) -> Enrolled:
    """Let agents ask for a command or HTTP call; a name that is enrolled again changes, and what waits ends."""
    policy.check_manager(ctx.principal, "enrols tools")
    if ctx.redacted:
        raise BadInput(
            f"The enrolment holds a secret ({', '.join(ctx.redacted)}). Put it into the server's environment, and name"
            " the variable in `env`; a header takes it by `{env.NAME}`."
        )
    check_schema(given)

    async def body(tx: Tx) -> Changed[Enrolled]:
        made = ExecTool(ctx.org, given, given.version, ctx.principal.name, ctx.now)
        await exec_tools.put(tx, made)
        gone = await _withdrawn(tx, ctx, given.name, given.version)
        kept = await exec_tools.named(tx, ctx.org, given.name) or made
        return Changed(_shown(kept, len(gone)), 0, gone, given.stored)

    return await ctx.change(body)


async def _withdrawn(tx: Tx, ctx: Ctx, name: str, version: str) -> list[int]:
    """End what waits for a tool as it is no more; tells which."""
    late = await invocations.stale(tx, ctx.org, name, version)
    return [row.id for row in late if await invocations.end(tx, row, End("expired", (row.state,), CHANGED), ctx.now)]


def check_schema(given: Enrolment) -> None:
    """Refuse a schema that is none, or that needs more than itself."""
    if found := set(template.texts(given.parameters)) & set(_ELSEWHERE):
        raise BadInput(f"exec.enrol: `parameters` must not use {', '.join(sorted(found))}; write the schema out.")
    try:
        jsonschema.Draft202012Validator.check_schema(given.parameters)
        for one in given.properties.values():
            if "default" in one:
                jsonschema.validate(one["default"], one, jsonschema.Draft202012Validator)
    except (jsonschema.SchemaError, jsonschema.ValidationError) as error:
        place = ".".join(map(str, error.path)) or "the schema"
        raise BadInput(f"exec.enrol: `parameters`: {place}: {intake.echoed(error.message, 300)}.") from error


class ListEnrolled(Given):
    """Nothing to say."""


class EnrolledTools(Result):
    """What is enrolled."""

    tools: list[Enrolled] = Field(description="By name.")


@operation("exec.tools", effect=Effect.READ, scope="admin")
async def list_(ctx: Ctx, given: ListEnrolled) -> EnrolledTools:
    """List the tools that are enrolled, with all that was said of each."""
    policy.check_manager(ctx.principal, "sees how its tools are enrolled")
    return EnrolledTools(tools=[_shown(tool) for tool in await ctx.read(lambda tx: exec_tools.listed(tx, ctx.org))])


class OneTool(Given):
    """Which tool."""

    name: Name = Field(min_length=1, max_length=64, description="The name of the tool.")


class Removed(Result):
    """What is enrolled no more."""

    name: str = Field(description="The name of the tool.")
    withdrawn: int = Field(description="How many that waited for it were ended.")


@operation("exec.remove", effect=Effect.MUTATE, scope="admin")
async def remove(ctx: Ctx, given: OneTool) -> Removed:
    """Strike a tool off: nobody may ask for it any more, and what waits for it ends; what runs goes on."""
    policy.check_manager(ctx.principal, "strikes tools off")

    async def body(tx: Tx) -> Changed[Removed]:
        if not await exec_tools.remove(tx, ctx.org, given.name):
            told = intake.echoed(given.name, 64)
            raise NotFound(f"No tool {told!r} is enrolled. `keepsake tool list` tells which are.")
        gone = await _withdrawn(tx, ctx, given.name, "")
        return Changed(Removed(name=given.name, withdrawn=len(gone)), 0, gone, given.name)

    return await ctx.change(body)


def is_visible(ctx: Ctx, tool: ExecTool, bank: str | None = None) -> bool:
    """Whether whoever asks may know of a tool, in the bank they work in."""
    definition = tool.definition
    if definition.effect == "destructive" and not ctx.principal.may_destroy:
        return False
    return not definition.banks or bank_ops.wanted(ctx, bank)[0] in definition.banks


async def choices(ctx: Ctx) -> Mapping[str, str]:
    """The tools that whoever asks may run, with the arguments of each."""
    found = await ctx.read(lambda tx: exec_tools.listed(tx, ctx.org))
    return {tool.definition.name: tool.definition.signature for tool in found if is_visible(ctx, tool)}


async def chosen(tx: Tx, ctx: Ctx, name: str, bank: str | None) -> ExecTool:
    """A tool that whoever asks may run; one that is hidden from them is as unknown as none."""
    tool = await exec_tools.named(tx, ctx.org, name)
    if tool is None or not is_visible(ctx, tool, bank):
        told = intake.echoed(name, 100)
        raise UnknownTool(f"Unknown tool: {told}. Use tools/list to see the tools that you may call.")
    return tool


def checked(tool: ExecTool, arguments: Mapping[str, object]) -> str:
    """Arguments as they will be used, written down; BadInput says what is wrong with them."""
    name, written = tool.definition.name, canonical(dict(arguments))
    if len(written) > LONGEST:
        raise BadInput(f"{name}: the arguments must have at most {LONGEST:,} characters.")
    validator = jsonschema.Draft202012Validator(tool.definition.parameters)
    if wrong := list(_problems(validator.iter_errors(dict(arguments)))):
        raise BadInput(f"{name}: {' '.join(wrong[:5])}")
    try:
        tool.definition.told(arguments)
    except ValueError as error:
        raise BadInput(f"{name}: {error}.") from error
    return written


def _problems(found: "Iterable[jsonschema.ValidationError]") -> Iterable[str]:
    for error in sorted(found, key=lambda one: str(one.path)):
        place = ".".join(map(str, error.path))
        where = f"`{intake.echoed(place, 100)}`: " if place else ""
        yield f"{where}{secrets.redacted(error.message[:2_000]).text[:300]}."
