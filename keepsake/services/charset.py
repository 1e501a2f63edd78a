"""Bytes of a page as text, in the encoding that it has or claims; a wrong claim costs letters and nothing else."""

import codecs
import re
from typing import TYPE_CHECKING

from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    import webencodings
else:
    webencodings = lazy("webencodings")

#: A byte order mark says more than any claim.
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEADER = re.compile(r"""charset\s{0,9}=\s{0,9}["']?([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s{0,20}=\s{0,20}["']?\s{0,20}([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s{0,20}=\s{0,20}["']([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_CSS = re.compile(rb"""@charset "([A-Za-z0-9_:.-]{1,40})";""")


def kind_of(content_type: str) -> tuple[str, str]:
    """The kind of a document and the encoding that its header claims; both may be empty."""
    kind, _, more = content_type[:300].partition(";")
    claimed = _HEADER.search(more)
    return kind.strip().lower(), claimed[1] if claimed else ""


def decoded(body: bytes, claimed: str = "") -> str:
    """The text; what cannot be read is replaced."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    for label in (claimed, *_claims(body)):
        # The web's own list: the other codecs that Python knows are no encodings of pages, and some are costly.
        if found := webencodings.lookup(label):
            name = found.codec_info.name
            # Whoever could read such a claim did not need it.
            return body.decode("utf-8" if name.startswith("utf-16") and label != claimed else name, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _claims(body: bytes) -> list[str]:
    head = body[:4096]
    found = (_CSS.match(head), _META.search(head), _XML.match(head))
    return [claim[1].decode("ascii") for claim in found if claim]
