"""Brings htmx into the package when it is built: two files of a pinned release, checked by their hashes."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIER = "django-htmx==1.29.0"
STATIC = "keepsake/surfaces/pages/static"
#: Ours, theirs, and the hash of its bytes.
FILES = (
    ("htmx.js", "htmx-4.min.js", "28fae7bbe8e8142b702debb9d5234a9a436d9435a4b5165b195aa1a7ed840d25"),
    ("htmx-sse.js", "ext/hx-sse-4.min.js", "d3aeb71073552b253eaee99badebd60607003b1c25ac567ab88187d6887ab522"),
)


class Hook(BuildHookInterface):
    """Copies what is missing into the source tree, where git does not look and every kind of build finds it."""

    def dependencies(self) -> list[str]:
        """What the build needs; nothing once the files are there, so that a source archive builds without an index."""
        return [] if all(self._is_there(ours, sha256) for ours, _, sha256 in FILES) else [CARRIER]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the files; without them the console is plain links and forms."""
        for ours, theirs, sha256 in FILES:
            if self._is_there(ours, sha256):
                continue
            body = _carried(theirs)
            if body is None:
                self.app.display_warning(f"{CARRIER} is not there, so the console will do without scripts of htmx.")
                return
            if hashlib.sha256(body).hexdigest() != sha256:
                raise RuntimeError(f"{theirs} of {CARRIER} is not the file that we know. Nothing was built.")
            Path(self.root, STATIC, ours).write_bytes(body)

    def _is_there(self, name: str, sha256: str) -> bool:
        file = Path(self.root, STATIC, name)
        return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256


def _carried(name: str) -> bytes | None:
    """A file of the package that carries htmx; only looked at, never imported."""
    found = importlib.util.find_spec("django_htmx")
    places = list(found.submodule_search_locations or ()) if found else []
    file = Path(places[0], "static", "django_htmx", name) if places else None
    return file.read_bytes() if file is not None and file.is_file() else None
