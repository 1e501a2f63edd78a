"""Blocks between two marks, in files that know comments: only what stands between them is ours."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """How a block begins and ends in one kind of file."""

    begin: str
    end: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """A block with the blank line before it."""
        return re.compile(
            rf"(?:(?<=\n)\r?\n|\A)?{re.escape(self.begin)}.*?{re.escape(self.end)}(?:\r?\n|\Z)", re.DOTALL
        )


TOML = Marks("# keepsake: begin (`keepsake connect` wrote this, `keepsake disconnect` removes it)", "# keepsake: end")
#: The settings of npm, which know the same comments as TOML and are none.
NPM = Marks(TOML.begin, TOML.end)
MARKDOWN = Marks(
    "<!-- keepsake: begin (`keepsake connect` wrote this, `keepsake disconnect` removes it) -->",
    "<!-- keepsake: end -->",
)


def block(text: str, marks: Marks) -> str | None:
    """What stands between the marks; None without them."""
    match = marks.pattern.search(text)
    if match is None:
        return None
    inside = match[0].partition(marks.begin)[2].rpartition(marks.end)[0]
    return inside.replace("\r\n", "\n").strip("\n")


def put(text: str, marks: Marks, content: str) -> str:
    """The text with the block in it, where it was or at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    written = f"{marks.begin}\n{content}\n{marks.end}\n".replace("\n", newline)
    if match := marks.pattern.search(text):
        lead = match[0][: match[0].index(marks.begin)]
        return text[: match.start()] + lead + written + text[match.end() :]
    if not text:
        return written
    return f"{text}{'' if text.endswith(chr(10)) else newline}{newline}{written}"


def dropped(text: str, marks: Marks) -> str:
    """The text without the block."""
    return marks.pattern.sub("", text)
