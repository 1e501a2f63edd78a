"""HTTP calls that were enrolled, to a real target; and the announcement of what waits."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from keepsake.context import App
from keepsake.ops import running
from tests.auth.conftest import opened
from tests.exec.executing import agent, ask, enrolled, invoked, looked, owner, ran, until
from tests.exec.targets import Target, target


@pytest.fixture
def there() -> Iterator[Target]:
    with target() as made:
        yield made


@pytest.fixture
async def app(tmp_path: Path, there: Target) -> AsyncIterator[App]:
    told = {"KEEPSAKE_APPROVAL_WEBHOOK": f"{there.url}/announced", "KEEPSAKE_APPROVAL_SECRET": "shared"}
    async with opened(tmp_path, KEEPSAKE_EXEC_HOSTS="127.0.0.1", **told) as app:
        yield app


async def test_a_call_is_sent_once_as_it_was_enrolled_and_secrets_stay_out_of_what_is_kept(
    app: App, there: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    http = {"url": f"{there.url}/deploy/{{text}}", "headers": {"X-Token": "{env.DEPLOY_TOKEN}"}, "body": ["{text}", 1]}
    schema = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
    await enrolled(app, "deploy", http=http, parameters=schema, env=["DEPLOY_TOKEN"])

    told = await ran(app, agent(app), "deploy", text="a/../b")
    [(method, path, headers, body)] = there.received

    assert (method, path, body) == ("POST", "/deploy/a%2F..%2Fb", b'["a/../b",1]')
    assert (headers["x-token"], headers["content-type"]) == ("correct-horse-battery", "application/json")
    assert (told["status"], told["exit_code"]) == ("succeeded", 200)
    assert told["output"] == 'took [redacted:env] and ["a/../b",1]\n'


async def test_what_goes_wrong_on_the_way_is_told(app: App, there: Target) -> None:
    wrong = {
        "/status/503": ("failed", "status 503"),
        "/moved": ("failed", "status 302"),
        "/slow": ("timed_out", "may have done it"),
    }
    for n, (path, (state, reason)) in enumerate(wrong.items()):
        await enrolled(app, f"call{n}", http={"method": "GET", "url": there.url + path}, timeout_s=1)

        told = await ran(app, agent(app), f"call{n}")

        assert (told["status"], reason in told["outcome"]) == (state, True), told
    assert there.at("/elsewhere") == []
    await enrolled(app, "gone", http={"url": "http://127.0.0.1:9/"})
    assert "cannot be reached" in (await ran(app, agent(app), "gone"))["outcome"]


async def test_a_large_answer_is_kept_within_its_limit(app: App, there: Target) -> None:
    await enrolled(app, "large", http={"method": "GET", "url": f"{there.url}/large"}, output_limit=1_000)

    told = await ran(app, agent(app), "large")

    assert (told["status"], len(told["output"])) == ("succeeded", 1_000)


async def test_hosts_that_the_operator_did_not_allow_are_not_reached(app: App, there: Target) -> None:
    port = there.url.rpartition(":")[2]
    refused = [f"http://localhost:{port}/", f"https://localhost:{port}/", "https://169.254.169.254/", "http://1.1.1.1/"]
    for n, url in enumerate(refused):
        await enrolled(app, f"call{n}", http={"url": url})

        told = await ran(app, agent(app), f"call{n}")

        assert (told["status"], "KEEPSAKE_EXEC_HOSTS" in told["outcome"]) == ("failed", True), told
    assert there.received == []


async def test_cancelling_breaks_a_call_off(app: App, there: Target) -> None:
    await enrolled(app, "slow", http={"url": f"{there.url}/slow"})
    made = await invoked(agent(app), "slow")
    stepping = asyncio.create_task(running.step(app))

    async def sent() -> bool:
        return bool(there.at("/slow"))

    await until(sent)
    await ask(agent(app), "exec.cancel", id=made["id"])
    await stepping

    assert (await looked(agent(app), made))["status"] == "cancelled"


async def test_what_waits_is_announced_once_signed_and_without_its_arguments(app: App, there: Target) -> None:
    await enrolled(app, "say", effect="mutate", approval="person")

    made = await invoked(agent(app), text="only for the approver")
    await invoked(agent(app), text="only for the approver")
    await app.later.done()

    [(_, _, headers, body)] = there.at("/announced")
    told = json.loads(body)
    signed = hmac.new(b"shared", body, hashlib.sha256).hexdigest()
    assert headers["x-keepsake-signature"] == f"sha256={signed}"
    assert (told["event"], told["id"], told["tool"]) == ("approval.requested", made["id"], "say")
    assert told["approval_url"] == made["approval_url"]
    assert b"only for" not in body
    assert (await ask(owner(app), "approval.count"))["invocations"] == 1
