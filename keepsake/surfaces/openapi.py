"""The OpenAPI document, made from the declarations."""

from functools import lru_cache

from pydantic import BaseModel

from keepsake import __version__
from keepsake.core.operation import AnyOperation
from keepsake.ops.everything import REGISTRY
from keepsake.tools.dialect import schema

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
_REFUSALS = {
    "400": "The arguments do not fit; the message says what to change.",
    "401": "No credential, or one that is not valid.",
    "403": "The credential lacks a right.",
    "404": "Unknown operation, bank or id.",
    "409": "What is stored stands in the way.",
    "413": "The request is too large.",
    "429": "Too many calls in this minute; Retry-After says how long to wait.",
    "500": "A fault of the server; the message has a request id.",
    "503": "A part that the operation needs does not answer.",
}


@lru_cache(maxsize=1)
def document() -> dict[str, object]:
    """Every operation as a path."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Keepsake", "version": __version__, "description": "The memory server for AI agents."},
        "paths": {f"/v1/operations/{id}": {"post": _path(REGISTRY[id])} for id in sorted(REGISTRY)},
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _path(operation: AnyOperation) -> dict[str, object]:
    given: type[BaseModel] = operation.given
    result: type[BaseModel] = operation.result
    refusals = {
        status: {
            "description": meaning,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, meaning in _REFUSALS.items()
    }
    return {
        "operationId": operation.id,
        "summary": operation.docs.partition(".")[0],
        "description": operation.docs,
        "x-effect": operation.effect.value,
        "x-scopes": sorted(operation.named_scopes),
        "requestBody": {
            "required": bool(schema(given).get("required")),
            "content": {"application/json": {"schema": schema(given)}},
        },
        "responses": {
            "200": {
                "description": "Done.",
                "content": {"application/json": {"schema": schema(result)}},
            },
            **refusals,
        },
    }
