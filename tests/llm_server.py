"""A language model for tests: speaks the OpenAI wire protocol over real HTTP and says what its script says."""

import asyncio
import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL = "scripted-1"
Json = dict[str, Any]


@dataclass(frozen=True)
class Fails:
    """Answers with this status."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "no"


@dataclass(frozen=True)
class Hangs:
    """Does not answer for this long."""

    seconds: float = 30.0


@dataclass(frozen=True)
class Raw:
    """Answers with a body that is no chat completion."""

    body: str


@dataclass(frozen=True)
class Says:
    """Answers with this text."""

    text: str
    finish: str = "stop"
    #: Whether the server tells what it cost.
    counts: bool = True
    #: Whether it answers in pieces where it is asked to.
    streams: bool = True


@dataclass(frozen=True)
class Streams:
    """Answers in these pieces, if need be with something else between them."""

    pieces: "tuple[str | Waits | Sends | Breaks, ...]"

    @property
    def text(self) -> str:
        return "".join(piece for piece in self.pieces if isinstance(piece, str))


@dataclass(frozen=True)
class Waits:
    """Says nothing until it is let go on."""

    gate: threading.Event


@dataclass(frozen=True)
class Sends:
    """Puts these very bytes into the stream."""

    body: str


@dataclass(frozen=True)
class Breaks:
    """Ends the stream: politely, or in the middle of what it promised to send."""

    is_polite: bool = False


@dataclass(frozen=True)
class Redirects:
    """Sends the caller elsewhere."""

    to: str


Line = str | Says | Streams | Fails | Hangs | Raw | Redirects | Callable[[Json], str]


@dataclass
class Script:
    """What the model will say, and what it was asked."""

    url: str
    lines: deque[Line] = field(default_factory=deque)
    asked: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def will(self, *lines: Line) -> None:
        """Say these next, one for each request; after the last one the server answers 500."""
        self.lines.extend(lines)

    def prompt(self, number: int = -1) -> str:
        """All that a request told the model."""
        return "\n".join(message["content"] for message in self.asked[number]["messages"])


def answered(script: Script, request: Json, line: Line) -> Response:
    if isinstance(line, Fails):
        return JSONResponse({"error": {"message": line.message}}, line.status, line.headers)
    if isinstance(line, Raw):
        return Response(line.body, media_type="application/json")
    if isinstance(line, Redirects):
        return RedirectResponse(line.to, 307)
    assert not isinstance(line, Hangs)
    if isinstance(line, Streams):
        return in_pieces(request, line, Says(line.text))
    said = line if isinstance(line, Says) else Says(line if isinstance(line, str) else line(request))
    if request.get("stream") and said.streams:
        return in_pieces(request, Streams(tuple(re.findall(r"(?s).{1,7}", said.text))), said)
    choice = {"index": 0, "finish_reason": said.finish, "message": {"role": "assistant", "content": said.text}}
    reply = {"id": "c-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    return JSONResponse(reply | ({"usage": usage(request, said)} if said.counts else {}))


def usage(request: Json, said: Says) -> Json:
    prompt, spoken = sum(len(m["content"]) for m in request["messages"]) // 4, len(said.text) // 4
    return {"prompt_tokens": prompt, "completion_tokens": spoken, "total_tokens": prompt + spoken}


def in_pieces(request: Json, line: Streams, said: Says) -> Response:
    """The answer as server-sent events, the way OpenAI's own server sends them."""

    def event(choices: list[Json], **more: object) -> str:
        told = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}
        return f"data: {json.dumps(told | more, ensure_ascii=False)}\n\n"

    async def events() -> AsyncIterator[str]:
        yield event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for piece in line.pieces:
            if isinstance(piece, Waits):
                while not piece.gate.is_set():
                    await asyncio.sleep(0.005)
            elif isinstance(piece, Sends):
                yield piece.body
            elif isinstance(piece, Breaks):
                if piece.is_polite:
                    return
                raise ConnectionError("broken off, as the script says")
            else:
                yield event([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
        yield event([{"index": 0, "delta": {}, "finish_reason": said.finish}])
        if said.counts and request.get("stream_options", {}).get("include_usage"):
            yield event([], usage=usage(request, said))
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


def application(script: Script) -> Starlette:
    async def completions(request: Request) -> Response:
        body = json.loads(await request.body())
        script.asked.append(body)
        script.headers.append(dict(request.headers))
        line = script.lines.popleft() if script.lines else Fails(500)
        if isinstance(line, Hangs):
            await asyncio.sleep(line.seconds)
            return JSONResponse({}, 500)
        return answered(script, body, line)

    return Starlette(routes=[Route("/v1/chat/completions", completions, methods=["POST"])])


@contextmanager
def serving() -> Iterator[Script]:
    """Serve a script from a thread of its own."""
    script = Script("")
    with served(application(script)) as url:
        script.url = f"{url}/v1"
        yield script


@contextmanager
def served(application: Starlette) -> Iterator[str]:
    """Serve an application from a thread of its own; gives its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
