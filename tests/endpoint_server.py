"""Embeddings and reranking for tests: speaks both wire protocols over real HTTP, well or as badly as it is told."""

import asyncio
import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.llm_server import Fails, Hangs, Raw, Redirects, served

Json = dict[str, Any]
#: Takes the place of one answer; a function makes the whole body from the request.
Line = Fails | Hangs | Raw | Redirects | Callable[[Json], object]


@dataclass
class Models:
    """What the server holds, what it will do next, and what it was asked."""

    url: str
    dim: int = 64
    #: Texts longer than this are refused, as llama.cpp does it.
    longest: int = 1_000_000
    counts: bool = True
    is_down: bool = False
    #: Whether another model answers, whatever name is asked for.
    is_other: bool = False
    lines: deque[Line] = field(default_factory=deque)
    asked: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def will(self, *lines: Line) -> None:
        """Do these next, one for each request; after the last one the server answers well."""
        self.lines.extend(lines)

    @property
    def texts(self) -> list[str]:
        """Every text that was to be embedded."""
        return [told for body in self.asked for told in body.get("input", [])]


def vector(text: str, dim: int) -> list[float]:
    """A bag of words: texts that share words are near each other, so that what is found can be told apart."""
    numbers = [0.0] * dim
    for word in re.findall(r"\w+", text.lower()):
        numbers[int(hashlib.sha256(word[:4].encode()).hexdigest(), 16) % dim] += 3.0
    return numbers if any(numbers) else [1.0] * dim


def embedded(models: Models, body: Json) -> Response:
    if any(len(text) > models.longest for text in body["input"]):
        return JSONResponse({"error": {"message": "input is too large to process"}}, 500)
    dim = body.get("dimensions") or models.dim
    # Last first: the index says which is which.
    made = vector if not models.is_other else (lambda text, dim: vector(text[::-1] + text, dim))
    told = [{"index": n, "embedding": made(text, dim)} for n, text in enumerate(body["input"])][::-1]
    tokens = sum(len(text) // 4 for text in body["input"])
    return JSONResponse({"data": told} | ({"usage": {"prompt_tokens": tokens}} if models.counts else {}))


def reranked(models: Models, body: Json) -> Response:
    wanted = vector(body["query"], 512)
    scores = [sum(a * b for a, b in zip(wanted, vector(text, 512), strict=True)) for text in body["documents"]]
    best = max(scores) or 1.0
    told = [{"index": n, "relevance_score": score / best} for n, score in enumerate(scores)]
    return JSONResponse({"results": sorted(told, key=lambda one: -one["relevance_score"])})


def application(models: Models) -> Starlette:
    async def answered(request: Request) -> Response:
        body = json.loads(await request.body())
        models.asked.append(body)
        models.headers.append(dict(request.headers))
        line = Fails(503) if models.is_down else models.lines.popleft() if models.lines else None
        if isinstance(line, Hangs):
            await asyncio.sleep(line.seconds)
            return JSONResponse({}, 500)
        if isinstance(line, Fails):
            return JSONResponse({"error": {"message": line.message}}, line.status, line.headers)
        if isinstance(line, Redirects):
            return RedirectResponse(line.to, 307)
        if isinstance(line, Raw):
            return Response(line.body, media_type="application/json")
        if line is not None:
            return Response(json.dumps(line(body)), media_type="application/json")
        return (reranked if request.url.path.endswith("/rerank") else embedded)(models, body)

    paths = ("/v1/embeddings", "/v1/rerank")
    return Starlette(routes=[Route(path, answered, methods=["POST"]) for path in paths])


@contextmanager
def serving() -> Iterator[Models]:
    """Serve the models from a thread of their own."""
    models = Models("")
    with served(application(models)) as url:
        models.url = f"{url}/v1"
        yield models


def vectors(*rows: object) -> Callable[[Json], object]:
    """Answer with these vectors, whatever was asked."""
    return lambda body: {"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]}


NAN = math.nan
