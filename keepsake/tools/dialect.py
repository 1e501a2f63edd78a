"""A tool is a public name for one operation; a dialect is a table of tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from pydantic import BaseModel, Field, create_model

from keepsake.core.models import Given, KnownBank, Result
from keepsake.core.operation import AnyOperation

Schema = dict[str, object]


class Takes(Given):
    """A dialect's own arguments for an operation."""

    def to_core(self) -> Given:
        """The same in the operation's words."""
        raise TypeError(f"{type(self).__name__} does not say how it becomes the operation's input.")


class Gives(Result):
    """A dialect's own result of an operation."""

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        """The operation's result in the dialect's words."""
        raise TypeError(f"{cls.__name__} does not say how it is made from the operation's result.")


@dataclass(frozen=True, slots=True)
class Tool:
    """A row of a dialect's table."""

    name: str
    operation: AnyOperation
    takes: type[Given] | None = None
    gives: type[Gives] | None = None
    #: Said to the model after what the operation says of itself.
    hint: str = ""
    #: The argument that names a bank.
    bank_argument: str = "bank"
    open_world: bool = False

    @property
    def arguments(self) -> type[Given]:
        """The model of what it takes."""
        return self.takes or self.operation.given

    @property
    def results(self) -> type[BaseModel]:
        """The model of what it gives."""
        return self.gives or self.operation.result

    @property
    def description(self) -> str:
        """What a model reads before it calls."""
        return f"{self.operation.docs} {self.hint}".strip()

    def to_core(self, wire: Given) -> Given:
        """Arguments in the operation's words, with the bank that was named."""
        if not isinstance(wire, Takes):
            return wire
        given = wire.to_core()
        named = getattr(wire, self.bank_argument, None)
        return given.model_copy(update={"bank": named}) if named is not None and hasattr(given, "bank") else given

    def from_core(self, result: BaseModel) -> BaseModel:
        """The result in the dialect's words."""
        return self.gives.from_core(result) if self.gives else result


@dataclass(frozen=True, slots=True)
class Dialect:
    """A set of tool names over the one engine."""

    name: str
    title: str
    instructions: str
    tools: Mapping[str, Tool] = field(repr=False)


def table(*tools: Tool) -> dict[str, Tool]:
    """Tools by name, in order."""
    return {tool.name: tool for tool in tools}


def with_bank(takes: type[Takes], argument: str, description: str) -> type[Takes]:
    """The same arguments and an optional bank."""
    named = (KnownBank | None, Field(None, description=description))
    made: type[Takes] = create_model(f"{takes.__name__}InBank", __base__=takes, **{argument: named})  # type: ignore[call-overload]  # a computed field name
    made.__doc__ = takes.__doc__
    return made


@lru_cache(maxsize=1024)
def schema(model: type[BaseModel]) -> Schema:
    """A model's JSON Schema without references and titles: clients choke on the one and pay for the other."""
    whole = model.model_json_schema()
    defs = whole.pop("$defs", {})

    def plain(part: object, is_properties: bool = False) -> object:
        if isinstance(part, list):
            return [plain(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            target = defs[str(part["$ref"]).rpartition("/")[2]]
            return plain({**target, **{key: value for key, value in part.items() if key != "$ref"}})
        return {
            key: plain(value, key == "properties")
            for key, value in part.items()
            if is_properties or key not in ("title", "default") or (key == "default" and value is not None)
        }

    flat = plain(whole)
    assert isinstance(flat, dict)
    flat.pop("description", None)
    return flat
