"""A tool is a public name for one operation; a dialect is a table of tools."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Self
from urllib.parse import parse_qsl, quote, unquote

from pydantic import BaseModel, Field, SecretStr, create_model, model_serializer

from keepsake.core.models import Given, KnownBank, Result
from keepsake.core.operation import AnyOperation
from keepsake.core.principal import Principal
from keepsake.core.text import Clean

Schema = dict[str, object]


class Takes(Given):
    """A dialect's own arguments for an operation."""

    def to_core(self) -> Given:
        """The same in the operation's words."""
        raise TypeError(f"{type(self).__name__} does not say how it becomes the operation's input.")


class Proposable(Takes):
    """Arguments of what is proposed where its principal may ask for it, but not do it."""

    reason: Clean = Field("", max_length=2_000, description="Why; shown to whoever has to approve it")
    token: SecretStr | None = Field(None, max_length=200, description="From the earlier call, once it is approved")


class Gives(Result):
    """A dialect's own result of an operation."""

    @classmethod
    def from_core(cls, result: BaseModel) -> Self:
        """The operation's result in the dialect's words."""
        raise TypeError(f"{cls.__name__} does not say how it is made from the operation's result.")

    def told(self) -> str:
        """The result as text, for clients that read no structure."""
        return self.model_dump_json(exclude_none=True)


class Whole(Result):
    """A record whose fields are all there, null where nothing is known."""

    @model_serializer
    def _whole(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in type(self).model_fields}


class Array(Gives):
    """A result that is a list, in its field `result`: structure must be an object, while the text is the bare list."""

    def told(self) -> str:
        """The bare list."""
        bare = self.model_dump(mode="json", exclude_none=True)["result"]
        return json.dumps(bare, ensure_ascii=False, separators=(",", ":"))


class Text(Gives):
    """A result that is a text to be read, and has no structure."""

    text: str = Field(description="What to read, in Markdown")

    def told(self) -> str:
        """The text itself."""
        return self.text


@dataclass(frozen=True, slots=True)
class Tool:
    """A row of a dialect's table."""

    name: str
    operation: AnyOperation
    takes: type[Given] | None = None
    gives: type[Gives] | None = None
    #: Said to the model after what the operation says of itself.
    hint: str = ""
    #: The argument that names a bank, or a list of several.
    bank_argument: str = "bank"
    open_world: bool = False
    #: What it can be asked for, which depends on who asks, with a word on each; not listed where that is nothing.
    offers: Callable[[Principal], Mapping[str, str]] | None = None
    #: The argument that chooses among these.
    chooses: str = ""
    #: The same where only the store knows it: asked of a request, and listed even where that is nothing.
    choices: Callable[..., Awaitable[Mapping[str, str]]] | None = None
    #: Whether it works in a bank; where clients choose one themselves, they must have done so.
    needs_bank: bool = True
    #: Said to the model in place of what the operation says of itself.
    about: str = ""
    #: Whether the listing tells what it gives, which every reader pays for.
    tells_result: bool = True

    @property
    def arguments(self) -> type[Given]:
        """The model of what it takes."""
        return self.takes or self.operation.given

    @property
    def results(self) -> type[BaseModel]:
        """The model of what it gives."""
        return self.gives or self.operation.result

    @property
    def is_proposable(self) -> bool:
        """Whether a call is proposed where its principal may only ask for it."""
        return issubclass(self.arguments, Proposable)

    @property
    def description(self) -> str:
        """What a model reads before it calls."""
        return f"{self.about or self.operation.docs} {self.hint}".strip()

    def to_core(self, wire: Given) -> Given:
        """Arguments in the operation's words, with the banks that were named."""
        if not isinstance(wire, Takes):
            return wire
        given = wire.to_core()
        named = getattr(wire, self.bank_argument, None)
        place = "banks" if isinstance(named, list) else "bank"
        return given.model_copy(update={place: named}) if named is not None and hasattr(given, place) else given

    def from_core(self, result: BaseModel) -> BaseModel:
        """The result in the dialect's words."""
        return self.gives.from_core(result) if self.gives else result


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a person asks for to begin with, made by a tool that is not listed."""

    tool: Tool
    tier: str
    #: What is suggested for its arguments, by their names.
    suggests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to be read that has an address, made by a tool that is not listed."""

    #: The address; `{name}` stands for an argument, and `{?name,name}` at its end for those that may be left out.
    address: str
    title: str
    tool: Tool
    tier: str
    suggests: Mapping[str, str] = field(default_factory=dict)
    #: What lists the newest of its kind, where there are many.
    lists: Tool | None = None

    @property
    def plain(self) -> str:
        """The address without what may be left out."""
        return self.address.partition("{?")[0]

    @property
    def is_one(self) -> bool:
        """Whether there is just one, at a known address."""
        return "{" not in self.plain

    def arguments(self, uri: str) -> dict[str, str] | None:
        """What an address says; None when it is another's."""
        base, _, query = uri.partition("?")
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/?#]+)", re.escape(self.plain))
        found = re.fullmatch(pattern, base)
        if found is None:
            return None
        told = {name: unquote(value) for name, value in found.groupdict().items()}
        return told | dict(parse_qsl(query, keep_blank_values=True))

    def at(self, argument: str) -> str:
        """The address of one of many."""
        return re.sub(r"\{\w+\}", quote(argument, safe=""), self.plain)


class Listed(Gives):
    """The newest of a kind of resource."""

    entries: list[tuple[str, str, str]] = Field(description="Each one's argument, name and a line about it")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A set of tool names over the one engine."""

    name: str
    title: str
    instructions: str
    tools: Mapping[str, Tool] = field(repr=False)
    #: A call only reads; what changes something goes through a proposal.
    is_gated: bool = False
    #: Every request after `initialize` belongs to a session.
    needs_session: bool = False
    #: Who names no bank means the only one that their credential reaches.
    means_only_bank: bool = False
    #: A scope without which nobody is let in at all.
    admission: str = ""
    #: The header by which clients choose the bank they work in; else their session remembers it, and nothing else does.
    workspace: str = ""
    prompts: Mapping[str, Prompt] = field(default_factory=dict, repr=False)
    resources: Sequence[Resource] = field(default=(), repr=False)
    #: Callable by these names, and not listed.
    aliases: Mapping[str, Tool] = field(default_factory=dict, repr=False)


def table(*tools: Tool) -> dict[str, Tool]:
    """Tools by name, in order."""
    return {tool.name: tool for tool in tools}


def with_bank(takes: type[Takes], argument: str, description: str) -> type[Takes]:
    """The same arguments and an optional bank."""
    named = (KnownBank | None, Field(None, description=description))
    made: type[Takes] = create_model(f"{takes.__name__}InBank", __base__=takes, **{argument: named})  # type: ignore[call-overload]  # a computed field name
    made.__doc__ = takes.__doc__
    return made


class Here(Takes):
    """An operation's own arguments, where its bank is the request's own."""

    core: ClassVar[type[Given]] = Given

    def to_core(self) -> Given:
        """The same in the operation's words, with its defaults for what is left out."""
        return self.core.model_construct(**dict(self))


def within(given: type[Given], *left_out: str) -> type[Takes]:
    """What an operation is given, without a bank and without what is left out."""
    fields = {
        name: (field.annotation, field) for name, field in given.model_fields.items() if name not in ("bank", *left_out)
    }
    made: type[Here] = create_model(f"{given.__name__}Here", __base__=Here, **fields)  # type: ignore[call-overload]  # computed fields
    made.core, made.__doc__ = given, given.__doc__
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
