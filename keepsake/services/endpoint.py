"""An endpoint that the user configured: asked with patience, followed nowhere else, told nothing of the environment."""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from keepsake.core import log, meter
from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    import ssl

    import httpx
    import openai
else:
    httpx = lazy("httpx")
    openai = lazy("openai")

T = TypeVar("T")
Json = dict[str, Any]
#: Tries for one answer; what failed for good is not tried again.
MOST_TRIES = 3
LONGEST_PAUSE_S = 10.0


class Failed(Unavailable):
    """The endpoint gave no answer; whether it may have worked for nothing decides what is charged."""

    def __init__(self, reason: str, may_have_spent: bool = False, status: int = 0) -> None:
        super().__init__(reason)
        self.may_have_spent = may_have_spent
        #: The last status that it answered with; 0 when it did not get that far.
        self.status = status


class BrokeOff(Exception):
    """A server ended its answer in the middle."""


@dataclass(slots=True)
class Endpoint:
    """A model behind an address that speaks the OpenAI protocol, or one of its cousins."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    timeout: float = 60.0
    #: The first pause before trying again; it doubles.
    pause_s: float = 0.5
    #: How long it is left alone, after it failed, by those who can do without it.
    rest_s: float = field(default=30.0, compare=False)
    _rests_until: float = field(default=0.0, compare=False)

    @property
    def told(self) -> str:
        """What messages call it."""
        return f"The model {self.model}" if self.model else f"The model at {self.base_url}"

    async def asked(self, once: "Callable[[openai.AsyncOpenAI], Awaitable[T]]", patience: float = 1.0) -> T:
        """Ask, and try again for a while when the server is busy or away; patience stretches the time it may take."""
        # Loading the client takes a second, which the event loop cannot spare.
        await asyncio.to_thread(getattr, openai, "AsyncOpenAI")
        seconds = self.timeout * patience
        try:
            async with asyncio.timeout(seconds), self._client(seconds) as client:
                return await self._tried(client, once)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise Failed(f"{self.told} did not answer within {seconds:g} s.", True) from error

    async def attempted(self, name: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """What comes of asking; None, logged and counted, when nothing does, and at once for a while after that."""
        if time.monotonic() < self._rests_until:
            meter.observed(name, "resting", 0.0)
            return None
        started, outcome = time.perf_counter(), "ok"
        try:
            return await work()
        except Failed as error:
            outcome, self._rests_until = error.code, time.monotonic() + self.rest_s
            log.warning("done without an endpoint", service=name, reason=str(error))
            return None
        finally:
            meter.observed(name, outcome, time.perf_counter() - started)

    async def _tried(self, client: "openai.AsyncOpenAI", once: "Callable[[openai.AsyncOpenAI], Awaitable[T]]") -> T:
        has_worked = False
        for attempt in range(1, MOST_TRIES + 1):
            status = 0
            try:
                return await once(client)
            except openai.APITimeoutError:
                raise
            except openai.APIConnectionError as error:
                fault, after = f"cannot be reached ({type(error).__name__})", 0.0
            except BrokeOff:
                fault, after, has_worked = "broke off its answer", 0.0, True
            except openai.APIStatusError as error:
                status = error.status_code
                if status != 429 and status < 500:
                    raise Failed(f"{self.told} refused with status {status}.", has_worked, status) from None
                fault, after = f"answered with status {status}", _after(error)
            except (openai.APIError, ValueError):
                raise Failed(f"{self.told} answered with something that is no answer.", True) from None
            if attempt < MOST_TRIES:
                backoff = self.pause_s * 2 ** (attempt - 1) * (0.75 + random.random() / 2)
                await asyncio.sleep(min(LONGEST_PAUSE_S, max(after, backoff)))
        # Without the cause: its text may quote what was sent.
        raise Failed(f"{self.told} {fault}, {MOST_TRIES} times.", has_worked, status) from None

    async def _posted(self, client: "openai.AsyncOpenAI", path: str, body: Json) -> bytes:
        """The bytes of an answer to a request that the client has no words for, or that we read ourselves."""
        made = await client.post(path, cast_to=httpx.Response, body=body, options={"headers": self._keyless()})
        return made.content

    def _keyless(self) -> Json:
        """The header that an endpoint without a key must not get."""
        return {} if self.api_key else {"Authorization": openai.Omit()}

    def _client(self, seconds: float) -> "openai.AsyncOpenAI":
        """A client for one conversation: calls are rare and slow, and a pool would outlive its event loop."""
        # The environment's OPENAI_… is not for this host, and a redirect must not carry memories to another one.
        absent = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        return openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self.api_key or "none",
            max_retries=0,
            timeout=seconds,
            default_headers=absent,  # type: ignore[arg-type]  # Omit is how the client says "no header"
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=seconds, verify=certificates()),
        )


@cache
def certificates() -> "ssl.SSLContext":
    """The certificates to trust; reading them takes 50 ms, so once is enough."""
    return httpx.create_ssl_context()


def _after(error: "openai.APIStatusError") -> float:
    told = error.response.headers.get("retry-after", "")
    return float(told) if re.fullmatch(r"\d{1,4}(\.\d+)?", told) else 0.0
