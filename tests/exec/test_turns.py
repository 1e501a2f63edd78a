"""Waiting for a turn: how long a yes is good for, and what is said when it was not enough."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsake.context import App
from keepsake.core.clock import DAY, HOUR, MINUTE, iso
from keepsake.ops import running
from keepsake.store.invocations import Due
from tests.auth.conftest import opened
from tests.exec.executing import Json, agent, ask, enrolled, invoked, later, looked, owner, waiting


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[App]:
    """An application over one store, for what is the same on both."""
    async with opened(tmp_path) as app:
        yield app


async def agreed(app: App, **more: object) -> Json:
    """Something that a person has said yes to."""
    made = await waiting(app, None, **more)
    await ask(owner(app), "approval.decide", id=made["id"], approve=True)
    return made


async def test_a_yes_is_good_for_as_long_as_the_enrolment_says(alone: App) -> None:
    usual, patient = await agreed(alone), await agreed(alone, name="slow", queue_s=7_200)

    until = [(await looked(agent(alone), one))["expires_at"] for one in (usual, patient)]
    now = alone.now()
    seen = [
        [(await looked(agent(later(alone, by)), one))["status"] for by in (14 * MINUTE, 16 * MINUTE, 121 * MINUTE)]
        for one in (usual, patient)
    ]

    assert seen == [["queued", "expired", "expired"], ["queued", "queued", "expired"]]
    assert until[0] <= iso(now + 15 * MINUTE) < until[1] <= iso(now + 2 * HOUR)


async def test_whoever_asked_and_whoever_agreed_are_told_that_no_worker_came(alone: App) -> None:
    made, late = await agreed(alone), later(alone, 16 * MINUTE)

    seen = await looked(agent(late), made)
    await running.step(late)
    written = await looked(agent(alone), made)
    shown = await ask(owner(alone), "approval.get", id=made["id"])
    audited = await ask(owner(alone), "audit.list")

    assert seen["status"] == written["status"] == "expired"
    told = "It was agreed to, but its turn did not come within 900 s{}. Ask again; `queue_s` of its enrolment lets it"
    assert seen["outcome"] == f"{told.format('')} wait longer."
    assert written["outcome"] == shown["outcome"] == f"{told.format(': no worker took it')} wait longer."
    assert "exec.expire" in [one["operation"] for one in audited["entries"]]


async def test_what_nobody_agreed_to_says_so(alone: App) -> None:
    made, late = await waiting(alone), later(alone, DAY)

    seen = (await looked(agent(late), made))["outcome"]
    await running.step(late)

    assert (await looked(agent(alone), made))["outcome"] == seen == "Nobody agreed in time. Ask again."


async def test_a_tool_whose_turns_are_taken_holds_up_nothing_else_and_may_be_asked_for_again(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepsake.ops.running.LOOKED_AT", 2)
    first = await agreed(app, window_s=86_400)
    behind = [await invoked(agent(app), text=text) for text in ("y", "z")]
    for one in behind:
        await ask(owner(app), "approval.decide", id=one["id"], approve=True)
    await enrolled(app, "quick", "echo", "{text}", sandbox={"kind": "none"})
    # Someone runs the first for hours.
    assert await running._started(app, Due(1, int(first["id"]), "say", "queued", 0), set())
    await app.store.write(1, lambda tx: tx.run("UPDATE invocations SET lease_until = :far", far=app.now() + DAY))
    late = later(app, 16 * MINUTE)
    other = await invoked(agent(late), "quick", text="x")

    for _ in range(2):
        await running.step(late)
    told = [await looked(agent(late), one) for one in behind]
    again = [await invoked(agent(late), text="y") for _ in range(2)]

    assert [one["status"] for one in told] == ["expired", "expired"]
    assert all("within 900 s: as many of the tool ran as may (1)." in one["outcome"] for one in told)
    assert (await looked(agent(late), other))["status"] == "succeeded"
    assert [one["status"] for one in again] == ["awaiting_approval", "awaiting_approval"]
    assert again[0]["id"] == again[1]["id"] != behind[0]["id"]
