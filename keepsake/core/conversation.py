"""Conversations cut into sections: what someone opened with, then what was said to it, each under its name."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from keepsake.core import secrets

#: Characters of a section; one that is longer is cut at an empty line, else at a line, else anywhere.
ROOM = 1_600
#: Sections of one conversation.
MOST = 200
#: What forms leave behind, and nobody sees.
_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BREAKS = ("\n\n", "\n", " ")


@dataclass(frozen=True, slots=True)
class Said:
    """What one person said at one time, ISO 8601."""

    by: str
    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a conversation, when it began and who speaks in it."""

    text: str
    at: str
    names: tuple[str, ...]


def shown(body: str) -> str:
    """A text as its readers see it, and without secrets: cut in two, half of one would not be known for what it is."""
    return secrets.redacted(_UNSEEN.sub("", body.replace("\r\n", "\n")).strip()).text


def sections(title: str, opened: Said, answers: Iterable[Said]) -> list[Section]:
    """The sections in order: the opening under its title, then the answers, as many of them together as fit."""
    found = [Section(part, opened.at, (opened.by,)) for part in parts(f"{title}\n\n{shown(opened.text)}".strip())]
    held: list[Said] = []
    for answer in _cut(answers):
        if held and sum(len(one.text) + 2 for one in held) + len(answer.text) > ROOM:
            found.append(_joined(held))
            held = []
        held.append(answer)
    return [*found, *([_joined(held)] if held else [])][:MOST]


def _cut(answers: Iterable[Said]) -> Iterator[Said]:
    for answer in answers:
        for part in parts(shown(answer.text)):
            yield Said(answer.by, answer.at, f"{answer.by}: {part}")


def _joined(held: Sequence[Said]) -> Section:
    names = dict.fromkeys(one.by for one in held)
    return Section("\n\n".join(one.text for one in held), held[0].at, tuple(names))


def parts(text: str) -> Iterator[str]:
    """A text in parts that have room."""
    while len(text) > ROOM:
        end = next((at for mark in _BREAKS if (at := text.rfind(mark, ROOM // 2, ROOM)) > 0), ROOM)
        yield text[:end].strip()
        text = text[end:].strip()
    if text:
        yield text
