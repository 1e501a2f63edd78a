"""What approvers see of invocations: whose they are, which wait for them, and what became of those that did."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsake.context import App, Ctx
from keepsake.core.clock import DAY
from keepsake.store import keys
from tests.auth.conftest import at, opened
from tests.exec.executing import agent, ask, enrolled, invoked, owner, person


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as app:
        yield app


async def ids(ctx: Ctx, state: str) -> list[str]:
    return [one["id"] for one in (await ask(ctx, "approval.list", state=state))["invocations"]]


async def test_what_was_decided_or_ran_out_is_found_by_how_it_ended(app: App) -> None:
    ada = await person(app, "ada", "approver")
    await enrolled(app, "free")
    await enrolled(app, effect="mutate", approval="person")
    await invoked(agent(app), "free", text="nobody has to agree")
    yes, no, late = [(await invoked(agent(app), text=text))["id"] for text in ("yes", "no", "late")]
    await ask(ada, "approval.decide", id=yes, approve=True)
    await ask(ada, "approval.decide", id=no, approve=False, reason="Not today.")

    assert await ids(ada, "waiting") == [late]
    assert (await ids(ada, "approved"), await ids(ada, "denied"), await ids(ada, "expired")) == ([yes], [no], [])
    tomorrow = await person(at(app, app.now() + DAY), "eve", "approver")
    assert (await ids(tomorrow, "waiting"), await ids(tomorrow, "denied")) == ([], [no])
    assert set(await ids(tomorrow, "expired")) == {yes, late}
    bob = await person(app, "bob", "editor")
    assert [await ids(bob, state) for state in ("waiting", "approved", "denied", "expired")] == [[]] * 4


async def test_who_has_agreed_is_not_asked_again_and_the_asker_is_named(app: App) -> None:
    ada, eve = await person(app, "ada", "approver"), await person(app, "eve", "approver")
    await ask(owner(app), "key.create", name="cursor")
    [key] = await app.store.read(1, lambda tx: keys.listed(tx, 1))
    asker = agent(app, name="key:cursor", key=key.id)
    await enrolled(app, effect="mutate", approval="two-persons")
    one = (await invoked(asker, text="x"))["id"]

    told = await ask(ada, "approval.get", id=one)
    assert (told["needed"], told["client"], told["bank"], told["decide_as"]) == (2, "cursor", "default", "user:ada")
    await ask(ada, "approval.decide", id=one, approve=True)
    told = await ask(ada, "approval.get", id=one)
    assert (told["needed"], told["decide_as"], told["status"]) == (1, None, "awaiting_approval")
    assert (await ids(ada, "waiting"), await ids(eve, "waiting")) == ([], [one])
    assert (await ask(ada, "approval.count"))["invocations"] == 0
