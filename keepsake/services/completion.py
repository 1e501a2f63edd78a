"""A server's answer to a chat: whole, or piece by piece while its model makes it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from keepsake.core.lazy import lazy
from keepsake.services.endpoint import BrokeOff

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncAPIResponse
    from openai.types.chat import ChatCompletion

    Response = AsyncAPIResponse[ChatCompletion]
else:
    httpx2 = lazy("httpx2")

#: Told all that was said so far; nothing when it is said anew.
Heard = Callable[[str], Awaitable[None]]
DONE = b"[DONE]"


class Answer(BaseModel):
    """A part of a server's answer; most processes never read one, so it is built when it is."""

    model_config = ConfigDict(defer_build=True)


class Said(Answer):
    """The message of a choice."""

    content: str | None = None


class Choice(Answer):
    """One of the answers; we ask for one."""

    message: Said
    finish_reason: str | None = None


class Used(Answer):
    """What the server counted."""

    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)


class Completion(Answer):
    """The part of a server's answer that we read."""

    choices: list[Choice] = Field(min_length=1)
    usage: Used | None = None


class Piece(Answer):
    """What came of a choice."""

    delta: Said | None = None
    finish_reason: str | None = None


class Chunk(Answer):
    """A piece of an answer; the last one tells what it cost."""

    choices: list[Piece] = Field(default_factory=list)
    usage: Used | None = None
    error: object = None


def is_stream(response: "Response") -> bool:
    """Whether an answer comes in pieces, as it was asked to."""
    return "json" not in response.headers.get("content-type", "")


async def read(response: "Response", heard: Heard) -> Completion:
    """The whole answer, told while it comes where it comes in pieces; BrokeOff when it ends in the middle."""
    if not is_stream(response):
        return Completion.model_validate_json(b"".join([part async for part in _parts(response)]))
    said, finish, used, is_whole = "", None, None, False
    async for event in _events(response):
        if event == DONE:
            is_whole = True
            break
        chunk = Chunk.model_validate_json(event)
        if chunk.error:
            raise BrokeOff
        used = chunk.usage or used
        for piece in chunk.choices[:1]:
            finish = piece.finish_reason or finish
            if piece.delta and piece.delta.content:
                said += piece.delta.content
                await heard(said)
    if not (is_whole or finish):
        raise BrokeOff
    return Completion(choices=[Choice(message=Said(content=said), finish_reason=finish)], usage=used)


async def _events(response: "Response") -> AsyncIterator[bytes]:
    """The data of each event; servers send it on one line, in which there may be any sign but a line feed."""
    left = b""
    async for part in _parts(response):
        *lines, left = (left + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if left.startswith(b"data:"):
        yield left[5:].strip()


async def _parts(response: "Response") -> AsyncIterator[bytes]:
    try:
        async for part in response.iter_bytes():
            yield part
    except (httpx2.RequestError, OSError) as error:
        raise BrokeOff from error
