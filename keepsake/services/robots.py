"""What a site asks of robots: read by the same careful reader as its pages, and remembered for a while."""

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepsake.core.errors import Unavailable
from keepsake.core.lazy import lazy
from keepsake.core.target import Target
from keepsake.services.safefetch import Answer, Reader

if TYPE_CHECKING:
    import protego
else:
    protego = lazy("protego")

#: Bytes that are read; RFC 9309 wants no more.
LARGEST = 500 * 1024
#: Sites that are remembered, and seconds: for what they said, and for having said nothing sensible.
MOST, FRESH_S, BROKEN_S = 256, 600.0, 60.0
NAME = "keepsake"
_AGENT = re.compile(r"\s*user[- ]?agent\s*:?\s*(?P<name>[^#]*)", re.IGNORECASE)


class Forbidden(Unavailable):
    """The site asks robots not to read this."""


@dataclass(slots=True)
class Robots:
    """The rules of the sites that were asked lately."""

    _known: "dict[str, tuple[float, protego.Protego | bool]]" = field(default_factory=dict)

    async def check(self, reader: Reader, target: Target) -> None:
        """Refuse what a site does not want to be read."""
        origin = f"{target.scheme}://{target.authority}"
        rules = await self._rules(reader, origin)
        may = rules if isinstance(rules, bool) else rules.can_fetch(f"{origin}{target.path}", NAME)
        if may:
            return
        why = "its robots.txt cannot be read now" if rules is False else "its robots.txt asks robots not to read this"
        raise Forbidden(f"{target.host} is not read: {why}.")

    async def _rules(self, reader: Reader, origin: str) -> "protego.Protego | bool":
        until, rules = self._known.get(origin, (0.0, True))
        if time.monotonic() < until:
            return rules
        answer = await reader.read(f"{origin}/robots.txt", LARGEST)
        rules = await _said(answer)
        self._known.pop(origin, None)
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[origin] = (time.monotonic() + (BROKEN_S if rules is False else FRESH_S), rules)
        return rules


async def _said(answer: Answer) -> "protego.Protego | bool":
    """The rules; everything is allowed where there are none, and nothing while the site is broken or overrun."""
    if answer.status >= 500 or answer.status == 429:
        return False
    if not 200 <= answer.status < 300:
        return True
    body = answer.body if answer.is_whole else answer.body[: answer.body.rfind(b"\n") + 1]
    return await asyncio.to_thread(lambda: protego.Protego.parse(ours(body.decode("utf-8-sig", "replace"))))


def ours(text: str) -> str:
    """The same with all other robots under one name: rules are kept once for each name, which could be millions."""
    return "\n".join(_renamed(found) if (found := _AGENT.match(line)) else line for line in text.splitlines())


def _renamed(found: re.Match[str]) -> str:
    name = found["name"].strip().lower()
    return f"User-agent: {name}" if name and NAME.startswith(name.replace("*", "")) else "User-agent: another"
