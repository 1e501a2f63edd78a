"""What commands print: one JSON document, or text for people, plain when no terminal reads it."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    from rich import box, console, table
else:
    box = lazy("rich.box")
    console = lazy("rich.console")
    table = lazy("rich.table")


def document(value: BaseModel | Mapping[str, object]) -> None:
    """Print one JSON document."""
    content = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    print(json.dumps(content, ensure_ascii=False, indent=2), flush=True)


def line(text: str = "") -> None:
    """Print a line, with nothing in it that could steer a terminal."""
    print("".join(letter if letter.isprintable() else "�" for letter in text), flush=True)


def rows(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Print a table; aligned text where no terminal draws it."""
    if sys.stdout.isatty():
        _drawn(columns, cells)
        return
    widths = [max(len(row[n]) for row in (columns, *cells)) for n in range(len(columns))]
    for row in (columns, *cells):
        line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _drawn(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    drawn = table.Table(*columns, box=box.SIMPLE_HEAD, header_style="bold")
    for row in cells:
        drawn.add_row(*(cell.replace("\x1b", "�").replace("[", "\\[") for cell in row))
    console.Console().print(drawn)
