"""JSON lines of any size and state, one at a time."""

from pathlib import Path

import pytest

from keepsake.importers import lines


def read(path: Path, content: bytes) -> list[tuple[int, bool, int]]:
    path.write_bytes(content)
    return [(line.number, line.entry is not None, line.end) for line in lines.read(path)]


def test_blank_lines_are_passed_over_and_broken_ones_told(tmp_path: Path) -> None:
    assert read(tmp_path / "a", b'{"a":1}\n\n  \nnot json\n\xff\xfe\n{"b":2}') == [
        (1, True, 8),
        (4, False, 21),
        (5, False, 24),
        (6, True, 31),
    ]


def test_a_line_beyond_the_limit_is_skipped_and_the_next_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 16)

    told = read(tmp_path / "a", b'{"a":"' + b"x" * 100 + b'"}\n{"b":2}\n')

    assert told == [(1, False, 109), (2, True, 117)]


def test_a_last_line_that_is_exactly_as_long_as_the_limit_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 7)

    assert read(tmp_path / "a", b'{"b":2}') == [(1, True, 7)]
