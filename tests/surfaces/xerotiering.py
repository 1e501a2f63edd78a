"""A xerotier endpoint with workspaces and keys, as its clients see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.surfaces import serving
from tests.surfaces.serving import Client, Json

OWNER = "owner-of-everything"
UNBOUND = "Workspace not bound. Call xerotier.session.init or set X-Xerotier-Workspace header."
HEADER = "X-Xerotier-Workspace"


@dataclass
class Place:
    """A server, and what was made on it."""

    address: str
    keys: dict[str, str] = field(default_factory=dict)
    workspaces: dict[str, Json] = field(default_factory=dict)

    def run(self, operation: str, **given: object) -> Any:
        """Run an operation as the owner."""
        headers = {"Authorization": f"Bearer {OWNER}"}
        told = httpx.post(f"{self.address}/v1/operations/{operation}", json=given, headers=headers, timeout=30)
        assert told.status_code == 200, told.text
        return told.json()

    def make(self, *names: str) -> None:
        """Make workspaces."""
        for name in names:
            self.workspaces[name] = self.run("bank.create", name=name)

    def key(self, name: str, **given: object) -> str:
        """A key, made where there is none of that name."""
        if name not in self.keys:
            self.keys[name] = self.run("key.create", name=name, **given)["secret"]
        return self.keys[name]

    def client(self, key: str = OWNER, workspace: str | None = None, path: str = "/v1/mcp") -> Client:
        """A client of the endpoint, with the header that names a workspace or says whatever else is given."""
        headers = {"Authorization": f"Bearer {key}"}
        if workspace is not None:
            known = self.workspaces.get(workspace)
            headers[HEADER] = known["workspace"] if known else workspace
        return Client(self.address + path, headers)


@contextmanager
def place(folder: Path, **settings: object) -> Iterator[Place]:
    """A server that everyone needs a key for."""
    with serving.serving(folder, tenant_api_key=OWNER, rate_limit=100_000, **settings) as address:
        yield Place(address)


def told(response: httpx.Response) -> Json:
    """The last message of an answer."""
    found: Json = serving.messages(response)[-1]
    return found


def result(response: httpx.Response) -> Json:
    """What a call gave."""
    message = told(response)
    assert "result" in message, message
    found: Json = message["result"]
    return found


def structure(response: httpx.Response) -> Json:
    """What a tool gave, which must have worked."""
    found = result(response)
    assert not found.get("isError"), found
    made: Json = found["structuredContent"]
    return made


def error(response: httpx.Response) -> tuple[int, str]:
    """What a call was refused with."""
    found = told(response)["error"]
    return found["code"], found["message"]
