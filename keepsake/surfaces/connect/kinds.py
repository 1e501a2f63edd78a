"""Our part of one file, by the kind of file: what of it is there, how it gets in, how it gets out."""

import copy
import json
import tomllib
from dataclasses import dataclass, field
from typing import Protocol

from keepsake.core.errors import BadInput
from keepsake.surfaces.connect import jsontext, marked
from keepsake.surfaces.connect.clients import NAME
from keepsake.surfaces.connect.jsontext import Json, Node
from keepsake.surfaces.connect.marked import Marks

#: What VS Code asks the user for, instead of a key in a file.
INPUT = "keepsake-key"


@dataclass(frozen=True, slots=True)
class Part:
    """What of a file is ours."""

    server: Json = None
    hooks: dict[str, list[Json]] = field(default_factory=dict)
    inputs: list[Json] = field(default_factory=list)
    #: A block between marks, or the whole file.
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.server or self.hooks or self.inputs or self.text)


class Kind(Protocol):
    """How our part stands in a file; all raise BadInput for a file that cannot be understood."""

    def held(self, text: str) -> Part: ...

    def applied(self, text: str, part: Part) -> str: ...

    def without(self, text: str, saved: str) -> str:
        """The text without our part; what was there before, as saved, stays even when it is empty."""
        ...

    def shown(self, part: Part) -> str:
        """Exactly what is written, for people."""
        ...


@dataclass(frozen=True, slots=True)
class JsonFile:
    """Keys in a JSON file, with or without comments."""

    #: Key of the servers; empty when the file has hooks only.
    key: str = ""
    has_hooks: bool = False
    #: What the file says of its own version, where it must.
    version: int | None = None

    def held(self, text: str) -> Part:
        root = _root(text)
        for path in (("hooks",), *(("hooks", name) for name in _keys(root, "hooks"))) if self.has_hooks else ():
            _checked(root, path, list if len(path) > 1 else dict)
        server = _checked(root, (self.key, NAME), dict) if _checked(root, (self.key,), dict) is not None else None
        hooks = {name: _ours(root, ("hooks", name)) for name in _keys(root, "hooks")} if self.has_hooks else {}
        inputs = _ours(root, ("inputs",)) if self.key == "servers" else []
        return Part(server, {name: items for name, items in hooks.items() if items}, inputs)

    def applied(self, text: str, part: Part) -> str:
        text = text if text.strip("\ufeff \t\r\n") else "{}\n"
        if self.version is not None and _root(text).child("version") is None:
            text = jsontext.put(text, ("version",), self.version)
        if part.server is not None:
            text = jsontext.put(text, (self.key, NAME), part.server)
        lists = {("hooks", name): items for name, items in part.hooks.items()} | {("inputs",): part.inputs}
        for path in {("hooks", name) for name in _keys(_root(text), "hooks")} | {("inputs",)}:
            if _ours(_root(text), path) != lists.get(path, []):
                text = _dropped(text, path)
        for path, items in lists.items():
            for item in items if not _ours(_root(text), path) else ():
                text = jsontext.append(text, path, item)
        return text

    def without(self, text: str, saved: str) -> str:
        before = _root(saved or "{}")
        root = _root(text)
        if self.key and jsontext.found(root, (self.key, NAME)) is not None:
            text = jsontext.dropped(text, (self.key,), _keys(root, self.key).index(NAME))
            text = _pruned(text, (self.key,), before)
        if self.has_hooks:
            for name in _keys(root, "hooks"):
                if _ours(root, ("hooks", name)):
                    text = _pruned(_dropped(text, ("hooks", name)), ("hooks", name), before)
            text = _pruned(text, ("hooks",), before)
        if self.key == "servers":
            text = _pruned(_dropped(text, ("inputs",)), ("inputs",), before)
        if self.version is not None and _root(text).value == {"version": self.version} and not saved:
            return "{}\n"
        return text

    def shown(self, part: Part) -> str:
        told: dict[str, Json] = {self.key: {NAME: part.server}} if part.server is not None else {}
        told |= {"inputs": [*part.inputs]} if part.inputs else {}
        told |= {"hooks": {name: [*items] for name, items in part.hooks.items()}} if part.hooks else {}
        return json.dumps(told, ensure_ascii=False, indent=2)


def _root(text: str) -> Node:
    try:
        root = jsontext.parsed(text) if text.strip("\ufeff \t\r\n") else jsontext.parsed("{}")
    except jsontext.Unreadable as error:
        raise BadInput(f"{error}. Mend it, or put the lines there by hand.") from error
    if not isinstance(root.value, dict):
        raise BadInput("it holds no JSON object. Mend it, or put the lines there by hand.")
    return root


def _checked(root: Node, path: tuple[str, ...], wanted: type) -> Json:
    node = jsontext.found(root, path)
    if node is not None and not isinstance(node.value, wanted):
        raise BadInput(f"its `{'.'.join(path)}` is not what the client takes. Mend it, or put the lines there by hand.")
    return None if node is None else node.value


def _keys(root: Node, key: str) -> list[str]:
    node = root.child(key)
    return [] if node is None else [name for name, _, _ in node.members]


def is_ours(item: Json) -> bool:
    """Whether an item of a list is one that connect wrote."""
    if isinstance(item, dict) and item.get("id") == INPUT:
        return True
    told = json.dumps(item)
    return "keepsake" in told and "hook" in told and "--client" in told


def _ours(root: Node, path: tuple[str, ...]) -> list[Json]:
    return [item for _, item in reversed(list(jsontext.places(root, path))) if is_ours(item)]


def _dropped(text: str, path: tuple[str, ...]) -> str:
    for at, item in jsontext.places(_root(text), path):
        if is_ours(item):
            text = jsontext.dropped(text, path, at)
    return text


def _pruned(text: str, path: tuple[str, ...], before: Node) -> str:
    """The text without an object or a list that we made and that is empty now."""
    node = jsontext.found(_root(text), path)
    if node is None or node.value or jsontext.found(before, path) is not None:
        return text
    parent = jsontext.found(_root(text), path[:-1])
    assert parent is not None
    return jsontext.dropped(text, path[:-1], [name for name, _, _ in parent.members].index(path[-1]))


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A block between marks; in TOML the file must stay readable, and say what it said."""

    marks: Marks

    def held(self, text: str) -> Part:
        if self.marks is marked.TOML:
            _toml(text)
        return Part(text=marked.block(text, self.marks) or "")

    def applied(self, text: str, part: Part) -> str:
        after = marked.put(text, self.marks, part.text)
        if self.marks is marked.TOML and _others(after) != _others(marked.dropped(text, self.marks)):
            raise BadInput(f"it has a server {NAME!r} of its own. Remove that one, or put the lines there by hand.")
        return after

    def without(self, text: str, saved: str) -> str:
        return marked.dropped(text, self.marks)

    def shown(self, part: Part) -> str:
        return marked.put("", self.marks, part.text).rstrip("\n")


def _toml(text: str) -> dict[str, Json]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if "mcp_servers" in str(error) or "already" in str(error) or "Cannot" in str(error):
            told = f"it has a server {NAME!r} of its own, or says something twice ({error})"
        else:
            told = f"it is not TOML ({error})"
        raise BadInput(f"{told}. Mend it, or put the lines there by hand.") from error


def _others(text: str) -> dict[str, Json]:
    told = copy.deepcopy(_toml(text))
    servers = told.get("mcp_servers")
    if isinstance(servers, dict) and marked.block(text, marked.TOML) is not None:
        servers.pop(NAME, None)
    return {name: value for name, value in told.items() if value != {}}


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours from its first letter to its last."""

    def held(self, text: str) -> Part:
        if text and "keepsake" not in text:
            raise BadInput("it is there already, and not from Keepsake. Move it away, or add our lines to it by hand.")
        return Part(text=text)

    def applied(self, text: str, part: Part) -> str:
        return part.text

    def without(self, text: str, saved: str) -> str:
        return ""

    def shown(self, part: Part) -> str:
        return part.text.rstrip("\n")
