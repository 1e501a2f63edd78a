"""What an operation would change: the target as it is now, by which a proposal knows whether it still is so."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from keepsake.auth import policy
from keepsake.context import Ctx
from keepsake.core import diffing, ids
from keepsake.core.errors import NotFound
from keepsake.core.models import Given
from keepsake.core.operation import AnyOperation, Effect
from keepsake.core.proposal import canonical
from keepsake.ops import banks as bank_ops
from keepsake.ops import chosen
from keepsake.store import artifacts, banks, chats, directives, jobs, memories, mental_models, sources
from keepsake.store.engine import Tx

Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class Target:
    """What an operation would change, as it is now."""

    bank: banks.Bank | None
    #: As it is shown; named like the arguments that would replace it.
    shown: Fields = field(default_factory=dict)
    #: What must be the same when the change is made.
    version: object = None

    @property
    def chain(self) -> int:
        """The audit chain that the change belongs to: the bank's, or the org's for one that is still to be made."""
        return self.bank.id if self.bank else 0

    def digest(self, ctx: Ctx) -> str:
        """A keyed digest of the state that was seen."""
        return ctx.store.digest(canonical([self.chain, self.shown, self.version]))


async def of(tx: Tx, ctx: Ctx, operation: AnyOperation, given: Given) -> Target:
    """The target of an operation; refused where there is none."""
    look = _LOOKS.get(operation.id, _bank_alone)
    return await look(tx, ctx, given)


def diff(operation: AnyOperation, given: Given, target: Target, can_read: bool = True) -> str:
    """What the change would do, for people to read; what is there only for those who may read it."""
    arguments = given.model_dump(mode="json", exclude_unset=True, exclude={"bank"})
    head = f"{operation.id}{f' in bank {target.bank.name}' if target.bank else ''}: {operation.docs}"
    shown: Mapping[str, object] = target.shown if can_read else {}
    if operation.effect is Effect.DESTRUCTIVE:
        told = diffing.lines({**arguments, **shown}, {})
    else:
        told = diffing.lines({name: value for name, value in shown.items() if name in arguments}, arguments)
    return "\n".join([head, *told])


def may_read(ctx: Ctx, bank: banks.Bank | None) -> bool:
    """Whether a principal may read what a bank holds."""
    reading = ctx.principal.acting(frozenset({"memory:read"}))
    return "memory:read" in reading.scopes and (bank is None or reading.sees(bank.name))


async def _bank_alone(tx: Tx, ctx: Ctx, given: Given) -> Target:
    """What only adds to a bank changes nothing that is there."""
    if "bank" not in type(given).model_fields:
        return Target(None)
    return Target(await bank_ops.found(tx, ctx, _named(given)))


def _named(given: Given) -> str | None:
    return cast("str | None", getattr(given, "bank", None))


def _id(given: Given) -> str:
    return str(getattr(given, "id", ""))


async def _there(tx: Tx, ctx: Ctx, given: Given, what: str) -> banks.Bank:
    """The bank of something that must exist."""
    bank = await bank_ops.found(tx, ctx, _named(given))
    if bank is None:
        raise _unknown(given, what)
    return bank


def _unknown(given: Given, what: str) -> NotFound:
    return NotFound(f"No {what} {_id(given)!r} in this bank, so there is nothing to change. Look its id up first.")


async def _new_bank(tx: Tx, ctx: Ctx, given: Given) -> Target:
    name = str(getattr(given, "name", ""))
    policy.check_bank(ctx.principal, name)
    return Target(None, version=(await banks.named(tx, ctx.org, name)) is None)


async def _bank(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await bank_ops.found(tx, ctx, _named(given))
    shown: Fields = {"name": bank.name, "title": bank.title, "mission": bank.mission} if bank else {}
    return Target(bank, shown)


async def _whole_bank(tx: Tx, ctx: Ctx, given: Given) -> Target:
    """Everything in a bank, or all of one type: a memory more or less is another change."""
    bank = await bank_ops.found(tx, ctx, _named(given))
    if bank is None:
        raise NotFound("The bank has no data yet, so there is nothing to change.")
    kind = getattr(given, "type", None)
    held = await memories.of_types(tx, ctx.org, bank.id, [str(kind)] if kind else [])
    documents = await sources.count(tx, ctx.org, bank.id, "document")
    return Target(bank, {"memories": len(held), "documents": documents}, max(held, default=0))


async def _memory(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "memory")
    id = ids.parse(_id(given))
    found = await memories.fetched(tx, ctx.org, bank.id, [id]) if id else {}
    if not found:
        raise _unknown(given, "memory")
    memory = next(iter(found.values()))
    return Target(bank, {"content": memory.text}, [memory.id, memory.superseded_by])


async def _memories(tx: Tx, ctx: Ctx, given: Given) -> Target:
    named = cast("list[str]", getattr(given, "ids", []))
    bank, found = await chosen.these(tx, ctx, _named(given), named)
    shown: Fields = {"content": "\n".join(memory.text for memory in found), "memories": len(found)}
    return Target(bank, shown, [[memory.id, memory.superseded_by] for memory in found])


async def _document(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "document")
    source = await sources.current(tx, ctx.org, bank.id, "document", _id(given))
    if source is None:
        raise _unknown(given, "document")
    held = await memories.of_source(tx, ctx.org, bank.id, source.id)
    return Target(bank, {"text": source.text, "memories": len(held)}, [source.id, source.revision])


async def _directive(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "directive")
    id = ids.parse(_id(given))
    found = [one for one in await directives.listed(tx, ctx.org, bank.id) if one.id == id]
    if not found:
        raise _unknown(given, "directive")
    return Target(bank, {"name": found[0].name, "content": found[0].content}, id)


async def _model(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "mental model")
    model = await mental_models.get(tx, ctx.org, bank.id, _id(given))
    if model is None:
        raise _unknown(given, "mental model")
    names = ("name", "source_query", "max_tokens", "refresh_after_consolidation")
    shown: Fields = {"tags": list(model.tags), **{name: getattr(model, name) for name in names}}
    return Target(bank, shown, [model.id, model.created_at])


async def _artifact(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "artifact")
    id = ids.parse(_id(given))
    look = artifacts.get(tx, ctx.org, bank.id, id) if id else artifacts.named(tx, ctx.org, bank.id, _id(given))
    if (one := await look) is None:
        raise _unknown(given, "artifact")
    version = await artifacts.version(tx, one, one.version)
    held = await artifacts.content(tx, ctx.org, bank.id, version.source) if version else None
    shown: Fields = {"title": one.title, "artifact_type": one.type, "content": held.text if held else ""}
    return Target(bank, shown, [one.id, one.version])


async def _chat(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "chat")
    id = ids.parse(_id(given))
    one = await chats.get(tx, ctx.org, bank.id, id) if id else None
    if one is None:
        raise _unknown(given, "chat")
    return Target(bank, {"title": one.title, "messages": one.messages}, [one.id, one.messages])


async def _job(tx: Tx, ctx: Ctx, given: Given) -> Target:
    bank = await _there(tx, ctx, given, "operation")
    id = ids.parse(_id(given))
    record = await jobs.get(tx, ctx.org, bank.id, id) if id else None
    if record is None:
        raise _unknown(given, "operation")
    return Target(bank, {"kind": record.kind}, [id, record.state in ("pending", "running")])


_Look = Callable[[Tx, Ctx, Given], Awaitable[Target]]
_LOOKS: Mapping[str, _Look] = {
    "bank.create": _new_bank,
    "bank.update": _bank,
    "bank.alias": _bank,
    "bank.delete": _whole_bank,
    "memory.clear": _whole_bank,
    "memory.redact": _whole_bank,
    "memory.forget": _memory,
    "memory.correct": _memory,
    "memory.purge": _memories,
    "document.delete": _document,
    "artifact.update": _artifact,
    "artifact.delete": _artifact,
    "chat.delete": _chat,
    "directive.delete": _directive,
    "model.update": _model,
    "model.refresh": _model,
    "model.delete": _model,
    "job.cancel": _job,
}
