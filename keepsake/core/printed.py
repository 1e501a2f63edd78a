"""What a program prints, as it is kept: text, without secrets, in whole lines."""

import codecs
import re
from collections.abc import Sequence

from keepsake.core import secrets

#: A line that is longer is kept in pieces; what may still become a secret stays behind.
LONGEST_LINE, BEHIND = 16_384, 1_024
#: Shorter values of the environment are no secrets, but words.
SHORTEST_SECRET = 6
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BEGIN, _END = "-----BEGIN ", "-----END "
#: From this share of what is no text on, it is not shown as text.
_BINARY = 0.3


class Printed:
    """Takes bytes as they come, and gives text that can be kept."""

    def __init__(self, values: Sequence[str] = ()) -> None:
        """`values` are what the program was given to keep to itself."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._values = sorted((one for one in values if len(one) >= SHORTEST_SECRET), key=len, reverse=True)
        self._rest = ""

    def add(self, chunk: bytes) -> None:
        """Take what was printed."""
        self._rest += self._decoder.decode(chunk)

    def ready(self) -> str:
        """What is whole by now, without secrets."""
        cut = self._rest.rfind("\n") + 1
        if len(self._rest) - cut > LONGEST_LINE:
            cut = len(self._rest) - BEHIND
        begun = self._rest.rfind(_BEGIN, 0, cut)
        # A key has many lines, of which no single one looks like a secret.
        if begun >= 0 and _END not in self._rest[begun:cut] and cut - begun < LONGEST_LINE:
            cut = begun
        told, self._rest = self._rest[:cut], self._rest[cut:]
        return self._clean(told)

    def last(self) -> str:
        """All that is left."""
        told, self._rest = self._rest + self._decoder.decode(b"", True), ""
        return self._clean(told)

    def _clean(self, told: str) -> str:
        if not told:
            return ""
        for value in self._values:
            told = told.replace(value, "[redacted:env]")
        text = _CONTROL.sub("\ufffd", told.replace("\r\n", "\n").replace("\r", "\n"))
        if text.count("\ufffd") > _BINARY * len(text):
            return f"[{len(told):,} characters that are no text]\n"
        return secrets.redacted(text).text
