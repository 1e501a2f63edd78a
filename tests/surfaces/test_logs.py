"""Logs: on stderr, in JSON or for people, without content and without keys."""

import json
import logging
import sys
from pathlib import Path

from keepsake.surfaces import logs
from tests.surfaces.helpers import typed

KEY = "ks_live_" + "0123456789abcdef" * 4
REFUSED = ("call", "delete_memory", "--dialect", "hindsight", "--memory_id", "999")


def test_a_line_has_fields_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    ran = typed(tmp_path, *REFUSED, log_level="info", log_format="json")

    line, sentence = ran.err.splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], told["operation"], told["code"]) == (
        "refused",
        "info",
        "memory.forget",
        "not_found",
    )
    assert "999" not in line
    assert sentence.startswith("keepsake: No memory '999'")


def test_lines_for_people_have_no_colour_where_no_terminal_is(tmp_path: Path) -> None:
    ran = typed(tmp_path, *REFUSED, log_level="info", log_format="pretty")

    assert "refused" in ran.err and "\x1b" not in ran.err


def test_a_library_is_heard_without_what_it_quotes() -> None:
    heard: list[tuple[str, str, dict[str, object]]] = []
    handler = logs.Libraries(lambda level, event, fields: heard.append((level, event, fields)))
    try:
        raise ValueError(f"Ada likes tea {KEY}")
    except ValueError:
        record = logging.LogRecord("mcp.server", logging.ERROR, "/x/runner.py", 7, "bad %s", (KEY,), sys.exc_info())

    handler.handle(record)

    level, event, fields = heard[0]
    assert (level, event, fields["logger"], fields["where"], fields["error"]) == (
        "error",
        "library",
        "mcp.server",
        "runner.py:7",
        "ValueError",
    )
    assert "tea" not in str(fields) and KEY not in str(fields)


def test_a_key_that_gets_into_a_field_is_cut() -> None:
    line = logs.without_keys(None, "info", {"event": "x", "where": f"header {KEY}", "count": 3})

    assert line == {"event": "x", "where": "header [redacted:keepsake-key]", "count": 3}
