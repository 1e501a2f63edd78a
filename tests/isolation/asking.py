"""Arguments for any operation or tool, made from its schema: the least that it takes, and the bank that is meant."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from keepsake.core.operation import AnyOperation
from keepsake.tools.dialect import Tool, schema
from tests.auth.conftest import Json
from tests.isolation.declared import CARRIED

#: Operations that are about the request's own bank and have no word for another.
IMPLIED = frozenset({"session.bind"})


def least(model: type[BaseModel], word: str) -> Json:
    """What is required and nothing else; every text is this word."""
    made: Json = _least(schema(model), word)
    return made


def _least(of: Mapping[str, Any], word: str) -> Any:
    if "anyOf" in of:
        return _least(of["anyOf"][0], word)
    if "const" in of or "enum" in of:
        return of.get("const", of.get("enum", [None])[0])
    if of.get("type") == "object":
        return {name: _least(of["properties"][name], word) for name in of.get("required", [])}
    if of.get("type") == "array":
        return [_least(of["items"], word)] * max(of.get("minItems", 1), 1)
    text = "2026-03-01T12:00:00Z" if of.get("format") == "date-time" else word
    return {"integer": of.get("minimum", 1), "number": of.get("minimum", 1), "boolean": False}.get(of["type"], text)


def over_rest(operation: AnyOperation, word: str, bank: str) -> tuple[Json, str | None]:
    """Arguments in an operation's own words, and the bank that they are about."""
    given = least(operation.given, word)
    fields = operation.given.model_fields
    if operation.id == "proposal.create":
        return carrying(word, bank), bank
    if "banks" in fields:
        return given | {"banks": [bank]}, bank
    if "bank" in fields:
        return given | {"bank": bank}, bank
    return given, bank if operation.id in IMPLIED else None


def over_mcp(tool: Tool, word: str, bank: str) -> tuple[Json, str | None]:
    """Arguments in a tool's words, and the bank that they, or the request by itself, are about."""
    if tool.operation.id == "proposal.create":
        return carrying(word, bank), bank
    given, fields = least(tool.arguments, word), schema(tool.arguments).get("properties", {})
    assert isinstance(fields, dict)
    if tool.bank_argument in fields:
        named = word if tool.operation.id == "bank.create" else bank
        is_list = "array" in str(fields[tool.bank_argument])
        return given | {tool.bank_argument: [named] if is_list else named}, named
    is_meant = not {"bank", "banks"}.isdisjoint(tool.operation.given.model_fields)
    return given, bank if is_meant or tool.operation.id in IMPLIED else None


def carrying(word: str, bank: str) -> Json:
    """A proposal of something that anyone who writes may do."""
    return {"operation": CARRIED, "arguments": {"content": f"{word}.", "bank": bank}}
