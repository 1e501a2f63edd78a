"""What GitHub tells of the code in a repository, in its shapes."""

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.github_server import Forge

Json = dict[str, Any]


def told(forge: "Forge", what: str) -> Json:
    """A repository, or the bytes of each of its languages."""
    if what == "languages":
        return {"Python": sum(len(body) for path, body in forge.files.items() if path.endswith(".py"))}
    told = {"id": 1, "full_name": forge.full_name, "private": False, "default_branch": "main"}
    return {**told, "html_url": f"https://github.com/{forge.full_name}", **forge.about}


def searched(forge: "Forge", query: dict[str, str], accept: str) -> Json | None:
    """Files that hold every word of a query; qualifiers narrow. None for what GitHub does not search for."""
    words = query["q"].split()
    told = dict(word.split(":", 1) for word in words if ":" in word)
    plain = [word for word in words if ":" not in word]
    if not plain or told.get("repo", forge.full_name) != forge.full_name:
        return None
    held = {path: body.decode("utf-8", "replace") for path, body in forge.files.items()}
    found = [path for path, text in held.items() if all(word in text for word in plain)]
    found = [path for path in found if path.startswith(told.get("path", "").strip('"'))]
    shown = [_file(forge, path, held[path]) for path in found[: int(query.get("per_page", "30"))]]
    if "text-match" in accept:
        for one in shown:
            one["text_matches"] = [{"fragment": held[one["path"]][:200], "property": "content"}]
    return {"total_count": len(found), "incomplete_results": False, "items": shown}


def _file(forge: "Forge", path: str, text: str) -> Json:
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": hashlib.sha1(text.encode()).hexdigest(),
        "html_url": f"https://github.com/{forge.full_name}/blob/main/{path}",
        "repository": {"id": 1, "full_name": forge.full_name, "private": False},
        "score": 1.0,
    }
