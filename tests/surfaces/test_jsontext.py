"""JSON changed as text: what is not ours stays byte for byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from keepsake.surfaces.connect import jsontext

VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = some.dictionaries(some.text(max_size=3), VALUES, max_size=4)
INDENTS = some.sampled_from([None, 0, 2, 4, "\t"])


@given(OBJECTS, INDENTS)
def test_a_text_is_read_as_json_reads_it(value: dict[str, object], indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent)

    assert jsontext.parsed(text).value == json.loads(text)


@given(OBJECTS, INDENTS, some.lists(some.text(max_size=3), min_size=1, max_size=3), VALUES)
def test_a_value_comes_to_its_place_and_goes_again(
    value: dict[str, object], indent: int | str | None, path: list[str], new: object
) -> None:
    text = json.dumps(value, indent=indent)
    node = jsontext.parsed(text)
    if any(
        (there := jsontext.found(node, path[:depth])) is not None and not isinstance(there.value, dict)
        for depth in range(1, len(path))
    ):
        return

    after = jsontext.put(text, path, json.loads(json.dumps(new)))

    placed = jsontext.found(jsontext.parsed(after), path)
    assert placed is not None and placed.value == new
    assert json.loads(after) == jsontext.parsed(after).value
    parent = jsontext.found(jsontext.parsed(after), path[:-1])
    assert parent is not None
    at = [name for name, _, _ in parent.members].index(path[-1])
    gone = jsontext.parsed(jsontext.dropped(after, path[:-1], at)).value
    assert jsontext.found(jsontext.parsed(json.dumps(gone)), path) is None


COMMENTED = """// mine
{
    /* fonts, "quoted", {braces} */
    "size": 12, // "not": a key
    "servers": { "one": 1, }, // last
    "url": "http://x//y", // tail, with comma
}
"""


def test_comments_stay_where_they_are() -> None:
    after = jsontext.put(COMMENTED, ("servers", "keepsake"), {"command": "x"})

    assert after == COMMENTED.replace('"one": 1, }', '"one": 1, "keepsake": {"command": "x"}, }')
    assert jsontext.dropped(after, ("servers",), 1) == COMMENTED


def test_a_new_key_stands_as_the_others_do() -> None:
    after = jsontext.put(COMMENTED, ("context_servers", "keepsake"), {"command": "x"})

    assert '"url": "http://x//y",\n    "context_servers": {\n        "keepsake": {\n            "command": "x"' in after
    assert jsontext.dropped(after, (), 3) == COMMENTED


@pytest.mark.parametrize("at", [0, 1, 2])
def test_each_part_can_go_with_its_comma(at: int) -> None:
    gone = jsontext.parsed(jsontext.dropped(COMMENTED, (), at)).value
    whole = jsontext.parsed(COMMENTED).value

    assert isinstance(gone, dict) and isinstance(whole, dict)
    assert gone == {key: value for n, (key, value) in enumerate(whole.items()) if n != at}


def test_windows_lines_stay_windows_lines() -> None:
    after = jsontext.put('{\r\n\t"a": 1\r\n}\r\n', ("b",), {"c": [1]})

    assert after == '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": [\r\n\t\t\t1\r\n\t\t]\r\n\t}\r\n}\r\n'


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", '{"a" 1}', '{"a": 1 "b": 2}', "[1,,2]", "{} x", '{"a": \x01}', "[" * 500, "nul", "{,}"],
)
def test_what_is_no_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(jsontext.Unreadable, match="^line 1 is not JSON$"):
        jsontext.parsed(text)
