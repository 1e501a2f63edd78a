"""The child that reads what strangers wrote: it limits itself, reads one document from stdin, tells what it found."""

import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from keepsake.core.lazy import lazy
from keepsake.services import charset
from keepsake.services.extracted import Failed, Markup, Styles, Text

if TYPE_CHECKING:
    import resource

    from keepsake.services import looks, pages, pdf
else:
    resource = lazy("resource")
    looks = lazy("keepsake.services.looks")
    pages = lazy("keepsake.services.pages")
    pdf = lazy("keepsake.services.pdf")

#: Bytes of memory.
MEMORY = 1 << 30
READERS = {
    "text": (charset, "decoded"),
    "html": (pages, "read"),
    "pdf": (pdf, "read"),
    "markup": (looks, "made"),
    "styles": (looks, "styled"),
}


def limited(seconds: int) -> None:
    """Give up what is not needed; after that not even a bug can take it."""
    if sys.platform == "win32":
        # It has no such limits; there only the time is limited, by the parent.
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(kind: str, seconds: int) -> None:
    """Read the question and the document, and write the answer."""
    # Loaded before the limits, which let nothing be written: Python keeps what it compiled for the next time.
    getattr(*READERS[kind])
    limited(seconds)
    asked = json.loads(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()
    told = _pdf(body, int(asked["longest"]), seconds / 2) if kind == "pdf" else _told(kind, body, asked)
    sys.stdout.buffer.write(json.dumps(dataclasses.asdict(told)).encode())


def _told(kind: str, body: bytes, asked: dict[str, str]) -> Text | Markup | Styles:
    text, longest = charset.decoded(body, asked["charset"]), int(asked["longest"])
    if kind == "text":
        return _cut(Text("", text), longest)
    if kind == "html":
        return _cut(pages.read(text, asked["base"], asked["links"] == "yes"), longest)
    if kind == "markup":
        return looks.made(text, asked["base"])
    return looks.styled(text.split("\f"))


def _pdf(body: bytes, longest: int, seconds: float) -> Text | Failed:
    try:
        return _cut(pdf.read(body, longest, seconds), longest)
    except pdf.Unreadable as error:
        return Failed(str(error))


def _cut(read: Text, longest: int) -> Text:
    return Text(read.title, read.text[:longest], read.cut or len(read.text) > longest)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
