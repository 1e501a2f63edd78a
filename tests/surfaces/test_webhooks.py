"""`/webhooks/github`: what GitHub signed is believed, and leads to a sync; everything else leads to nothing."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from keepsake import settings
from keepsake.context import App
from keepsake.core import log
from keepsake.ops.announced import DELETED
from keepsake.store import banks, jobs, repos
from keepsake.store.engine import Tx
from keepsake.store.repos import Repo
from keepsake.store.store import Store
from keepsake.surfaces.http import Site
from tests.github_server import dumped

pytestmark = pytest.mark.anyio
SECRET = "it's a secret to everybody"
ORG = 1
PUSH = {"ref": "refs/heads/main", "repository": {"id": 1, "full_name": "Octo/Keeper"}}


def signed(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@pytest.fixture
def app(store: Store, tmp_path: Path) -> App:
    return App(settings.load({"KEEPSAKE_WEBHOOK_SECRET": SECRET}, data_dir=tmp_path), store)


@pytest.fixture
async def keepers(app: App) -> list[int]:
    """Two banks that learn from the repository, and one that learns from another."""

    async def body(tx: Tx) -> list[int]:
        made = []
        for name, full_name in (("one", "octo/keeper"), ("two", "octo/Keeper"), ("other", "octo/other")):
            bank = await banks.create(tx, app.store, ORG, name)
            assert bank is not None
            await repos.put(tx, Repo(ORG, bank.id, f"https://github.com/{full_name}", 1, 1, full_name=full_name))
            made.append(bank.id)
        return made

    return await app.store.write(ORG, body)


@pytest.fixture
async def client(app: App) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(Site(app).asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def sent(
    client: httpx.AsyncClient, event: str, given: object = PUSH, signature: str | None = None, **headers: str
) -> httpx.Response:
    body = given if isinstance(given, bytes) else dumped(given)
    told = {"X-GitHub-Event": event, "X-Hub-Signature-256": signed(body) if signature is None else signature}
    told |= {"Content-Type": "application/json", "X-GitHub-Delivery": "72d3162e"} | headers
    return await client.post("/webhooks/github", content=body, headers=told)


async def asked_for(app: App, bank: int) -> int:
    """How many syncs of a bank wait."""
    found = await app.store.read(ORG, lambda tx: jobs.listed(tx, ORG, bank, ("pending",), 10))
    return len([one for one in found if one.kind == "sync"])


async def syncs(app: App, keepers: list[int]) -> list[int]:
    return [await asked_for(app, bank) for bank in keepers]


@pytest.mark.parametrize("event", ["push", "pull_request", "issues", "issue_comment", "pull_request_review", "release"])
async def test_a_change_asks_for_a_sync_of_every_bank_that_learns_from_it(
    client: httpx.AsyncClient, app: App, keepers: list[int], event: str
) -> None:
    answer = await sent(client, event)

    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    assert await syncs(app, keepers) == [1, 1, 0]


async def test_the_same_again_changes_nothing(client: httpx.AsyncClient, app: App, keepers: list[int]) -> None:
    for _ in range(3):
        assert (await sent(client, "push")).status_code == 202

    assert await syncs(app, keepers) == [1, 1, 0]


async def test_a_ping_is_answered(client: httpx.AsyncClient, app: App, keepers: list[int]) -> None:
    answer = await sent(client, "ping", {"zen": "Keep it logically awesome.", "hook_id": 1})

    assert (answer.status_code, answer.json()) == (200, {"message": "pong"})
    assert await syncs(app, keepers) == [0, 0, 0]


@pytest.mark.parametrize(
    ("event", "given"),
    [
        ("star", PUSH),
        ("", PUSH),
        ("push", {"repository": {"full_name": "octo/unknown"}}),
        ("push", {"repository": {"full_name": 7}}),
        ("push", {"repository": "octo/keeper"}),
        ("push", {}),
        ("push", []),
    ],
)
async def test_what_concerns_nobody_is_accepted_in_the_same_words(
    client: httpx.AsyncClient, app: App, keepers: list[int], event: str, given: object
) -> None:
    answer = await sent(client, event, given)

    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    assert await syncs(app, keepers) == [0, 0, 0]


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256=",
        signed(dumped(PUSH), "another secret"),
        signed(dumped(PUSH)).removeprefix("sha256="),
        signed(dumped(PUSH)).upper(),
        signed(dumped(PUSH) + b" "),
        "sha1=" + "0" * 40,
    ],
)
async def test_what_is_not_signed_with_the_secret_is_refused(
    client: httpx.AsyncClient, app: App, keepers: list[int], signature: str
) -> None:
    answer = await sent(client, "push", signature=signature)

    assert answer.status_code == 401
    assert "KEEPSAKE_WEBHOOK_SECRET" in answer.text and SECRET not in answer.text
    assert await syncs(app, keepers) == [0, 0, 0]


async def test_a_ping_must_be_signed_too(client: httpx.AsyncClient) -> None:
    assert (await sent(client, "ping", signature="sha256=")).status_code == 401


async def test_a_body_that_was_changed_on_its_way_is_refused(client: httpx.AsyncClient) -> None:
    answer = await sent(client, "push", {**PUSH, "more": 1}, signature=signed(dumped(PUSH)))

    assert answer.status_code == 401


async def test_without_a_secret_there_is_nothing_here(app: App) -> None:
    bare = replace(app, settings=settings.load({}, data_dir=app.settings.data_dir))
    transport = httpx.ASGITransport(Site(bare).asgi())

    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await sent(client, "push", signature=signed(dumped(PUSH), ""))
        nowhere = await client.post("/webhooks/nowhere")

    assert (answer.status_code, answer.json()) == (404, nowhere.json())


@pytest.mark.parametrize(
    ("given", "headers", "status"),
    [
        (b"{not json", {}, 400),
        (b'{"a":' * 100_000, {}, 400),
        (b"payload=%7B%7D", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b" " * 5_000_000, {}, 413),
    ],
)
async def test_what_cannot_be_read_is_refused_in_words(
    client: httpx.AsyncClient, given: bytes, headers: dict[str, str], status: int
) -> None:
    answer = await sent(client, "push", given, **headers)

    assert (answer.status_code, "message" in answer.json()["error"]) == (status, True)


async def test_a_deletion_is_remembered_until_it_was_looked_for(
    client: httpx.AsyncClient, app: App, keepers: list[int]
) -> None:
    await sent(client, "issues", {**PUSH, "action": "closed"})
    before = await app.store.read(ORG, lambda tx: repos.listed(tx, ORG))
    await sent(client, "issues", {**PUSH, "action": "deleted"})
    after = await app.store.read(ORG, lambda tx: repos.listed(tx, ORG))

    assert [before[bank].cursors for bank in keepers] == [{}, {}, {}]
    assert [after[bank].cursors for bank in keepers] == [{DELETED: True}, {DELETED: True}, {}]


@contextmanager
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    log.to(lambda level, event, fields: lines.append(f"{level} {event} {fields}"))
    yield lines
    log.to(lambda level, event, fields: None)


async def test_nothing_of_it_is_logged(client: httpx.AsyncClient, keepers: list[int]) -> None:
    with logged() as lines:
        await sent(client, "push", {**PUSH, "head_commit": {"message": "private matters"}})
        await sent(client, "push", b"{private matters")
        await sent(client, "push", {"private": "matters"}, signature="sha256=private")

    assert len(lines) == 1
    assert "private" not in "".join(lines) and "Keeper" not in "".join(lines)
