"""What a PDF says, page after page; run only where time and memory are limited."""

import io
import time

import pypdf
from pypdf.errors import PyPdfError

from keepsake.services.extracted import Text
from keepsake.services.pages import LONGEST_TITLE, squeezed

#: Pages that are read.
MOST_PAGES = 500


class Unreadable(ValueError):
    """No PDF, or one that cannot be read; the message says why."""


def read(body: bytes, longest: int, seconds: float) -> Text:
    """The text of a PDF, cut where it is too long or too much work."""
    try:
        reader = pypdf.PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is locked with a password")
        return _read(reader, longest, seconds)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        # A broken file makes the library stumble in many ways.
        if isinstance(error, Unreadable):
            raise
        raise Unreadable("The PDF is broken") from error


def _read(reader: pypdf.PdfReader, longest: int, seconds: float) -> Text:
    told = reader.metadata.title if reader.metadata else ""
    title = squeezed(str(told or ""))[:LONGEST_TITLE]
    count, began = len(reader.pages), time.process_time()
    said: list[str] = []
    for n in range(min(count, MOST_PAGES)):
        if sum(map(len, said)) > longest or time.process_time() - began > seconds:
            return Text(title, "\n\n".join(said), True)
        said.append(reader.pages[n].extract_text().strip())
    return Text(title, "\n\n".join(said).strip(), count > MOST_PAGES)
