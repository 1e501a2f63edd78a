"""Changes JSON as text, comments and all: what is not ours stays byte for byte as it was."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Path = Sequence[str]
_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DEEPEST = 200


class Unreadable(ValueError):
    """The text is no JSON, not even with comments."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands."""

    start: int
    end: int
    value: Json
    #: Of an object: its keys, where each begins, and its values.
    members: tuple[tuple[str, int, "Node"], ...] = ()
    items: tuple["Node", ...] = ()

    def parts(self) -> list[tuple[int, int]]:
        """Where each member or item begins and ends."""
        return [(at, node.end) for _, at, node in self.members] or [(node.start, node.end) for node in self.items]

    def child(self, key: str) -> "Node | None":
        """The value of a key; the last one counts, as for every reader."""
        return next((node for name, _, node in reversed(self.members) if name == key), None)


def parsed(text: str) -> Node:
    """Read a text; comments and commas at the end are allowed."""
    return _Reader(text).whole()


class _Reader:
    """Reads a text once, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def whole(self) -> Node:
        self.skip()
        node = self.value()
        self.skip()
        if self.at != len(self.text):
            raise self.wrong()
        return node

    def wrong(self) -> Unreadable:
        return Unreadable(f"line {self.text.count(chr(10), 0, self.at) + 1} is not JSON")

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def taken(self, letter: str) -> bool:
        """Whether the letter comes next, and step over it."""
        self.skip()
        if not self.text.startswith(letter, self.at):
            return False
        self.at += 1
        return True

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.wrong()
        self.at = found.end()
        try:
            return str(json.loads(found[0]))
        except ValueError as error:
            raise self.wrong() from error

    def value(self) -> Node:
        start = self.at
        if self.text.startswith('"', start):
            told = self.string()
            return Node(start, self.at, told)
        if self.text.startswith(("{", "["), start):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.wrong()
            self.at += 1
            node = self.object(start) if self.text[start] == "{" else self.array(start)
            self.depth -= 1
            return node
        found = _SCALAR.match(self.text, start)
        if found is None:
            raise self.wrong()
        self.at = found.end()
        return Node(start, self.at, json.loads(found[0]))

    def object(self, start: int) -> Node:
        members: list[tuple[str, int, Node]] = []
        while not self.taken("}"):
            if members and not self.comma():
                raise self.wrong()
            if members and self.taken("}"):
                break
            at, key = self.at, self.string()
            if not self.taken(":"):
                raise self.wrong()
            self.skip()
            members.append((key, at, self.value()))
        return Node(start, self.at, {key: node.value for key, _, node in members}, members=tuple(members))

    def array(self, start: int) -> Node:
        items: list[Node] = []
        while not self.taken("]"):
            if items and not self.comma():
                raise self.wrong()
            if items and self.taken("]"):
                break
            items.append(self.value())
        return Node(start, self.at, [node.value for node in items], items=tuple(items))

    def comma(self) -> bool:
        found = self.taken(",")
        self.skip()
        return found


def put(text: str, path: Path, value: Json) -> str:
    """The text with a value at a path of keys; what stood there is replaced."""
    root = parsed(text or "{}")
    text = text or "{}"
    node, made = root, list(path)
    while made and (child := node.child(made[0])) is not None:
        node = child
        made.pop(0)
    if not made:
        return text[: node.start] + _written(text, value, node.start) + text[node.end :]
    for key in reversed(made[1:]):
        value = {key: value}
    return _inserted(text, node, f"{json.dumps(made[0], ensure_ascii=False)}: ", value)


def append(text: str, path: Path, item: Json) -> str:
    """The text with one more item in the list at a path of keys."""
    node = found(parsed(text or "{}"), path)
    return put(text, path, [item]) if node is None else _inserted(text, node, "", item)


def found(root: Node, path: Path) -> Node | None:
    """What stands at a path of keys."""
    node: Node | None = root
    for key in path:
        node = node.child(key) if node is not None else None
    return node


def _inserted(text: str, node: Node, label: str, value: Json) -> str:
    """The text with one more part at the end of an object or a list."""
    newline = "\r\n" if "\r\n" in text else "\n"
    parts = node.parts()
    if parts and "\n" not in text[node.start : parts[0][0]]:
        return f"{text[: parts[-1][1]]}, {label}{json.dumps(value, ensure_ascii=False)}{text[parts[-1][1] :]}"
    outer = _indent(text, node.start)
    inner = _indent(text, parts[0][0]) if parts else outer + _unit(text)
    written = f"{newline}{inner}{label}{_dumped(text, value, inner)}"
    if parts:
        return f"{text[: parts[-1][1]]},{written}{text[parts[-1][1] :]}"
    rest = text[node.start + 1 : node.end - 1]
    tail = rest if rest.strip() else f"{newline}{outer}"
    return f"{text[: node.start + 1]}{written}{tail}{text[node.end - 1 :]}"


def _written(text: str, value: Json, at: int) -> str:
    return _dumped(text, value, _indent(text, at))


def _dumped(text: str, value: Json, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", f"{newline}{indent}")


def _indent(text: str, at: int) -> str:
    """What the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """How the file is indented."""
    first = re.search(r'\n([ \t]+)"', text)
    return first[1] if first else "  "


def dropped(text: str, path: Path, at: int) -> str:
    """The text without one part of the object or list at a path; its neighbours and their comments stay."""
    node = found(parsed(text), path)
    if node is None:
        return text
    parts = node.parts()
    start, end = parts[at]
    if len(parts) == 1:
        before, after = text[node.start + 1 : start], text[end : node.end - 1].lstrip().removeprefix(",")
        kept = f"{before}{after}"
        return text[: node.start + 1] + (kept if kept.strip() else "") + text[node.end - 1 :]
    if at == len(parts) - 1:
        last = parts[at - 1][1]
        gap = text[last:start]
        kept = _uncomma(gap).rstrip() if "/" in gap else ""
        # What follows must not become part of a comment that ends with its line.
        if "//" in kept and not text[end:].lstrip(" \t").startswith(("\r", "\n")):
            kept += "\n"
        return text[:last] + kept + text[end:]
    rest = text[end : parts[at + 1][0]]
    return text[:start] + _uncomma(rest).lstrip() + text[parts[at + 1][0] :]


def _uncomma(gap: str) -> str:
    """What stands between two parts, without the comma; one inside a comment is no separator."""
    kept = _SPACE.match(gap)
    at = kept.end() if kept else 0
    return gap[:at] + gap[at + 1 :]


def places(root: Node, path: Path) -> Iterator[tuple[int, Json]]:
    """The parts of the list or object at a path, the last first, so that they can be dropped one by one."""
    node = found(root, path)
    if node is None:
        return
    values = [child.value for _, _, child in node.members] or [child.value for child in node.items]
    yield from reversed(list(enumerate(values)))
