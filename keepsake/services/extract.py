"""Reading what strangers wrote, in a child of its own: limited in time, work and memory, and ended for certain."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from keepsake.core.errors import Unavailable
from keepsake.services.extracted import Failed, Markup, Styles, Text
from keepsake.services.subprocess_git import ended

#: Seconds that reading may take, seconds of work in them, and readings at once in this process.
SECONDS, WORK_S, MOST_AT_ONCE = 12.0, 6, 8
Kind = Literal["html", "text", "pdf", "markup", "styles"]
TEXT: TypeAdapter[Text | Failed] = TypeAdapter(Text | Failed)
MARKUP, STYLES = TypeAdapter(Markup), TypeAdapter(Styles)


@dataclass(frozen=True, slots=True)
class Document:
    """What is to be read, and how."""

    kind: Kind
    body: bytes
    charset: str = ""
    #: Where it was, for the links in it.
    base: str = ""
    with_links: bool = False
    #: Characters that are wanted.
    longest: int = 200_000

    @property
    def given(self) -> bytes:
        """What the child reads."""
        asked = {"charset": self.charset, "base": self.base, "longest": str(self.longest)}
        return json.dumps(asked | {"links": "yes" if self.with_links else "no"}).encode() + b"\n" + self.body


async def text(document: Document) -> Text:
    """The text of a page, a plain text or a PDF."""
    told = TEXT.validate_json(await _told(document))
    if isinstance(told, Failed):
        raise Unavailable(f"{told.error}.")
    return told


async def markup(document: Document) -> Markup:
    """The structure of a page."""
    return MARKUP.validate_json(await _told(document))


async def styles(sheets: list[str]) -> Styles:
    """What the sheets of a page say."""
    # A form feed is a blank to CSS, so it can stand between two of them.
    body = "\f".join(sheet.replace("\f", " ") for sheet in sheets)
    return STYLES.validate_json(await _told(Document("styles", body.encode("utf-8", "replace"), "utf-8")))


_running: set[asyncio.subprocess.Process] = set()


async def _told(document: Document) -> bytes:
    if len(_running) >= MOST_AT_ONCE:
        raise Unavailable("Too many pages are being read at once. Try again in a moment.")
    process = await _started(document.kind)
    _running.add(process)
    try:
        async with asyncio.timeout(SECONDS):
            told, _ = await process.communicate(document.given)
    except TimeoutError as error:
        raise Unavailable(f"The page took more than {SECONDS:g} s to read and was given up.") from error
    finally:
        await ended(process)
        _running.discard(process)
    if process.returncode:
        raise Unavailable("The page cannot be read within the limits of time and memory.")
    return told


async def _started(kind: Kind) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-S", "-m", "keepsake.services.extracting", kind, str(WORK_S)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Nothing of our own environment, where secrets are.
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
    except OSError as error:
        raise Unavailable("No process could be started to read the page. Try again in a moment.") from error
