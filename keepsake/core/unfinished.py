"""A model's reply while it is made: what it has answered so far, and what of that may be read already."""

import json
import re
from collections.abc import Iterator

from keepsake.core import cite, markdown

#: How a reply in JSON begins; anything else is prose.
JSON = ("{", "```json", "```\n{")
_SPACE = re.compile(r"[ \t\r\n]*")
#: As much of a JSON string as is whole: no half of an escape, and nothing that JSON forbids.
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
#: Where a sentence ends: citations behind its full stop belong to it, those that have only begun too.
_END = re.compile(r"[.!?…][*_\"')]*(?:[ \t]*\[\d[\d,; ]*\])*(?=[ \t]+(?!\[(?:\d|\Z))\S)|\n")
_DECODER = json.JSONDecoder()


def answer(reply: str) -> str:
    """The answer in as much of a reply as has come; empty while it is not certain to be one."""
    said = reply.lstrip()
    if said.startswith(JSON):
        return _in_json(said[said.find("{") :]) if "{" in said else ""
    return "" if any(start.startswith(said) for start in JSON) else said


def _in_json(reply: str) -> str:
    """What the object's `answer` says; empty where it has not begun."""
    at = 1
    try:
        while True:
            name, at = _DECODER.raw_decode(reply, _past(reply, at))
            at = _past(reply, _past(reply, at) + 1)
            if name == "answer":
                return _string(reply, at)
            at = _past(reply, _DECODER.raw_decode(reply, at)[1]) + 1
    except (ValueError, RecursionError):
        return ""


def _past(reply: str, at: int) -> int:
    found = _SPACE.match(reply, at)
    return found.end() if found else at


def _string(reply: str, at: int) -> str:
    found = _STRING.match(reply, at)
    if found is None:
        return ""
    # Half of a pair is no sign yet, and a single one never will be.
    return _SURROGATE.split(json.loads(f'"{found[1]}"'))[0]


def ready(said: str, known: int) -> str:
    """The whole sentences and lines, up to the last that cites; none from where one cites what was not given."""
    # A run of ticks may still grow.
    said = said.rstrip("`")
    shown, done = markdown.prose(said), 0
    has_unknown = not _are_known(shown, known)
    for end in _ends(said):
        if has_unknown and not _are_known(shown[:end], known):
            break
        if cite.cited(shown[done:end]):
            done = end
    return said[:done].rstrip()


def _are_known(shown: str, known: int) -> bool:
    return all(0 < number <= known for number in cite.cited(shown))


def _ends(said: str) -> Iterator[int]:
    """Where sentences and lines end, before anything that may still turn out to be code."""
    shown = markdown.masked(said)
    last = said.rfind("\n") + 1
    most = last if said[last:].lstrip().startswith("~") else len(said)
    # Code within a line ends with its paragraph, or is none.
    tick = shown.find("`", said.rfind("\n\n") + 1)
    most = min(most, tick) if tick >= 0 else most
    yield from (found.end() for found in _END.finditer(shown) if found.end() <= most)
