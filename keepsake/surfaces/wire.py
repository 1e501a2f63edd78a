"""The wire of a stdio client: lines in, lines out; mistakes are answered here, because the SDK keeps silent."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

import mcp_types as types
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from keepsake.surfaces import batches, bodies
from keepsake.surfaces.bodies import BadMessage, NotJson, TooLarge
from keepsake.surfaces.replies import rpc_error

Answer = dict[str, Any]
Complete = Callable[[types.JSONRPCRequest], types.JSONRPCRequest]


@dataclass(slots=True)
class Batch:
    """Answers of one 2025-03-26 batch, sent together once all are there."""

    missing: set[str] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)


class Wire:
    """Knows which requests are open, which belong together, and what the client may send."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, limit: int, complete: Complete | None = None) -> None:
        """Where lines come from and go to, how long one may be, and what an initialize is completed by."""
        self._source, self._sink, self._limit, self._complete = source, sink, limit, complete
        self._version = ""
        self._open: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._batches: list[Batch] = []

    async def messages(self) -> AsyncIterator[SessionMessage]:
        """Every message until the client closes its end."""
        lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        # A daemon, so that a client that says nothing more cannot hold up the end of the process.
        pump = partial(_pump, self._source, self._limit, lines, asyncio.get_running_loop())
        threading.Thread(target=pump, name="stdin", daemon=True).start()
        while line := await lines.get():
            if line.strip():
                for message in self._parsed(line):
                    yield message

    async def settled(self) -> None:
        """Wait until every request has its answer."""
        await self._idle.wait()

    def answer(self, message: types.JSONRPCMessage) -> None:
        """Send what the server says, answers of a batch together."""
        told = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._close(str(message.id), told)
        else:
            self._send(told)

    def _parsed(self, line: bytes) -> list[SessionMessage]:
        try:
            if len(line.rstrip()) > self._limit:
                raise TooLarge(self._limit)
            found = bodies.decoded(line)
            if isinstance(found, list):
                return self._batch(batches.parts(found, self._version or batches.VERSION))
            return [self._accepted(bodies.message(found))]
        except (TooLarge, NotJson) as error:
            self._send(rpc_error(error.rpc, str(error)))
        except BadMessage as error:
            self._send(_refusal(error))
        return []

    def _batch(self, parts: list[batches.Part]) -> list[SessionMessage]:
        batch, accepted = Batch(), []
        for part in parts:
            try:
                if isinstance(part, BadMessage):
                    raise part
                accepted.append(self._accepted(part))
                if isinstance(part, types.JSONRPCRequest):
                    batch.missing.add(str(part.id))
            except BadMessage as error:
                batch.answers.append(_refusal(error))
        if batch.missing:
            self._batches.append(batch)
        elif batch.answers:
            self._send(batch.answers)
        return accepted

    def _accepted(self, message: types.JSONRPCMessage) -> SessionMessage:
        if not isinstance(message, types.JSONRPCRequest):
            return SessionMessage(message)
        if str(message.id) in self._open:
            raise BadMessage("This request id is still in use. Use a new one.", message.id)
        if message.method == "initialize":
            message = self._complete(message) if self._complete else message
            self._begin(message)
        self._open.add(str(message.id))
        self._idle.clear()

        async def unanswered() -> None:
            self._close(str(message.id), None)

        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=unanswered))

    def _begin(self, message: types.JSONRPCRequest) -> None:
        if self._version:
            raise BadMessage("This connection is initialized already. Start a new one instead.", message.id)
        self._version = str(bodies.initialization(message).protocol_version)

    def _close(self, id: str, told: Answer | None) -> None:
        """A request has ended, with an answer or, when it was cancelled, without."""
        self._open.discard(id)
        if not self._open:
            self._idle.set()
        batch = next((batch for batch in self._batches if id in batch.missing), None)
        if batch is None:
            if told is not None:
                self._send(told)
            return
        batch.missing.discard(id)
        if told is not None:
            batch.answers.append(told)
        if not batch.missing:
            self._batches.remove(batch)
            if batch.answers:
                self._send(batch.answers)

    def _send(self, message: Answer | list[Answer]) -> None:
        line = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        # A client that has gone away is told nothing more.
        with suppress(BrokenPipeError):
            self._sink.write(line + b"\n")
            self._sink.flush()


def _refusal(error: BadMessage) -> Answer:
    return rpc_error(error.rpc, str(error), error.id)


def _pump(source: BinaryIO, limit: int, lines: "asyncio.Queue[bytes | None]", loop: asyncio.AbstractEventLoop) -> None:
    """Read lines in a thread; of one that is too long only so much is kept that this can be told."""
    # The loop may be gone by the time the client speaks again.
    with suppress(RuntimeError, CancelledError):
        while line := source.readline(limit + 2):
            if len(line) > limit and not line.endswith(b"\n"):
                while (rest := source.readline(limit)) and not rest.endswith(b"\n"):
                    pass
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()
