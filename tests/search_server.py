"""Search engines for tests: speak the wire formats of SearXNG, Brave and Tavily over real HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.llm_server import served

KEY = "search-key-1"


@dataclass
class Engines:
    """What they were asked, and what they will do next."""

    url: str = ""
    status: int = 200
    raw: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def instead(self) -> Response | None:
        if self.status in (301, 302):
            return RedirectResponse("/elsewhere", self.status)
        if self.status != 200 or self.raw:
            return Response(self.raw or "no", self.status)
        return None


def application(engines: Engines) -> Starlette:
    async def searxng(request: Request) -> Response:
        if request.method == "POST":
            return await tavily(request)
        engines.asked.append(dict(request.query_params))
        if request.query_params.get("format") != "json":
            return Response("<html>", 200)
        found = [
            {
                "url": "https://a.example/1",
                "title": "First &amp; best",
                "content": "One <b>bold</b> word.",
                "engine": "x",
            },
            {"url": "ftp://a.example/2", "title": "no page", "content": "", "engine": "x"},
            {"url": "https://b.example/", "title": "Second", "content": None, "score": 0.5},
        ]
        return engines.instead() or JSONResponse({"query": "q", "number_of_results": 0, "results": found})

    async def brave(request: Request) -> Response:
        engines.asked.append(dict(request.query_params))
        if request.headers.get("x-subscription-token") != KEY:
            return JSONResponse({"type": "ErrorResponse"}, 422)
        if request.query_params["q"] == "nothing":
            return JSONResponse({"type": "search", "query": {}})
        found = [{"url": "https://a.example/1", "title": "First", "description": "One <strong>word</strong>."}]
        return engines.instead() or JSONResponse({"type": "search", "web": {"type": "search", "results": found}})

    async def tavily(request: Request) -> Response:
        engines.asked.append(await request.json())
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return JSONResponse({"detail": {"error": "Unauthorized"}}, 401)
        found = [
            {"url": "https://a.example/1", "title": "First", "content": "One word.", "score": 0.9, "raw_content": None}
        ]
        return engines.instead() or JSONResponse({"query": "q", "results": found, "response_time": 1.0})

    return Starlette(
        routes=[Route("/search", searxng, methods=["GET", "POST"]), Route("/res/v1/web/search", brave, methods=["GET"])]
    )


@contextmanager
def serving() -> Iterator[Engines]:
    """All three behind one address."""
    engines = Engines()
    with served(application(engines)) as url:
        engines.url = url
        yield engines
