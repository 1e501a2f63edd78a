"""Asked for, agreed to, run once: on both stores, with real programs."""

import asyncio
import json
from dataclasses import replace

import pytest

from keepsake.context import App
from keepsake.core.clock import DAY, MINUTE, SECOND
from keepsake.core.errors import BadInput, Conflict
from keepsake.ops import running
from keepsake.store import invocations
from tests.exec.executing import (
    agent,
    ask,
    enrolled,
    invoked,
    later,
    looked,
    needs_sandbox,
    owner,
    person,
    ran,
    until,
    waiting,
)


@needs_sandbox
async def test_what_reads_is_run_and_its_outcome_is_remembered_and_audited(app: App) -> None:
    await enrolled(app, "say", description="Says something.")

    told = await ran(app, agent(app), text="hi; $(id) `id` | & > < * ' \" \\ \n--next")
    held = (await ask(owner(app), "memory.list"))["memories"]
    audited = await ask(owner(app), "audit.list")

    assert (told["status"], told["exit_code"]) == ("succeeded", 0)
    assert told["output"] == "hi; $(id) `id` | & > < * ' \" \\ \n--next\n"
    assert [(one["kind"], one["trust"], one["title"]) for one in held] == [("observation", "outside", "say: succeeded")]
    assert "hi; $(id)" in held[0]["text"] and held[0]["metadata"]["invocation"] == told["id"]
    done = [one["operation"] for one in audited["entries"]]
    assert set(done) >= {"exec.enrol", "exec.invoke", "exec.start", "exec.end"}
    assert (await ask(owner(app), "audit.verify"))["ok"]


async def test_the_same_request_within_its_window_is_the_same_invocation(app: App) -> None:
    first = await waiting(app)
    later_on = later(app, 9 * MINUTE)

    same = await invoked(agent(later_on), text="x")
    others = [
        await invoked(agent(app), text="y"),
        await invoked(agent(app, key=8), text="x"),
        await invoked(replace(agent(app), bank="other"), text="x"),
        await invoked(agent(later(app, 10 * MINUTE + SECOND)), text="x"),
    ]

    assert same["id"] == first["id"]
    assert len({first["id"], *(one["id"] for one in others)}) == 5


async def test_of_many_equal_requests_at_once_one_is_made(app: App) -> None:
    await enrolled(app)

    made = await asyncio.gather(*(invoked(agent(app), text="race") for _ in range(20)))

    assert len({one["id"] for one in made}) == 1


async def test_a_person_agrees_and_it_runs_as_it_was_asked(app: App) -> None:
    made = await waiting(app, approval="person")
    assert made["status"] == "awaiting_approval"
    assert made["approval_url"] == f"http://127.0.0.1:8888/console/approve/{made['id']}"
    assert await running.step(app) == 0

    ada = await person(app, "ada", "approver")
    await person(app, "bob", "editor")
    listed = (await ask(ada, "approval.list"))["invocations"]
    said = await ask(ada, "approval.decide", id=made["id"], approve=True, reason="fine")
    await running.step(app)
    done = await looked(agent(app), made)

    assert [(one["id"], one["does"], one["decide_as"]) for one in listed] == [(made["id"], '["echo","x"]', "user:ada")]
    assert said["state"] == "queued"
    assert done["status"] in ("succeeded", "failed")
    assert [(one["by"], one["how"], one["reason"]) for one in done["decisions"]] == [("user:ada", "person", "fine")]
    with pytest.raises(Conflict, match=done["status"]):
        await ask(ada, "approval.decide", id=made["id"], approve=True)


async def test_of_approvers_at_once_none_is_lost(app: App) -> None:
    made = await waiting(app, approval="two-persons")
    several = [await person(app, name, "approver") for name in ("ada", "bob", "eve")]

    told = await asyncio.gather(
        *(ask(one, "approval.decide", id=made["id"], approve=True) for one in several), return_exceptions=True
    )
    done = [one for one in told if isinstance(one, dict)]
    state = await looked(agent(app), made)

    assert len(state["decisions"]) == len(done) <= 2
    assert state["status"] == ("queued" if len(done) == 2 else "awaiting_approval")
    assert all(isinstance(one, dict | Conflict) for one in told)


async def test_what_waits_too_long_expires_and_cannot_be_agreed_to(app: App) -> None:
    made = await waiting(app)
    ada = await person(app, "ada", "approver")
    await person(app, "bob", "reader")
    late = later(app, DAY)

    with pytest.raises(Conflict, match="expired"):
        await ask(replace(ada, app=late), "approval.decide", id=made["id"], approve=True)
    seen = await looked(agent(late), made)
    await running.step(late)
    written = await looked(agent(app), made)

    assert (seen["status"], written["status"]) == ("expired", "expired")


async def test_an_approval_is_good_for_a_while_and_for_a_key_that_still_holds(app: App) -> None:
    made = [await waiting(app), await invoked(agent(app), text="y")]
    await ask(owner(app), "key.create", name="real")
    [key] = await app.store.read(1, lambda tx: tx.all("SELECT id FROM api_keys"))
    held = agent(app, key=key["id"])
    made.append(await invoked(held, text="z"))
    for one in made:
        await ask(owner(app), "approval.decide", id=one["id"], approve=True)
    await ask(agent(app), "exec.cancel", id=made[1]["id"])
    await ask(owner(app), "key.revoke", name="real")

    await running.step(later(app, 16 * MINUTE))
    shut_out = await looked(held, made[2])
    states = [(await looked(agent(app), one))["status"] for one in made[:2]]

    assert states == ["expired", "cancelled"]
    assert shut_out["status"] == "expired"


@needs_sandbox
async def test_cancelling_ends_what_runs_and_doing_so_again_changes_nothing(app: App) -> None:
    await enrolled(app, "wait", "sleep", "1000")
    made = await invoked(agent(app), "wait")
    stepping = asyncio.create_task(running.step(app))

    async def runs() -> bool:
        return bool((await looked(agent(app), made))["status"] == "running")

    await until(runs)
    first = await ask(agent(app), "exec.cancel", id=made["id"])
    await stepping
    again = await ask(agent(app), "exec.cancel", id=made["id"])

    assert (first["status"], again["status"]) == ("running", "cancelled")
    assert "ended" in again["outcome"]


@needs_sandbox
async def test_as_many_run_at_once_as_the_enrolment_says(app: App) -> None:
    await enrolled(app, "slow", "sh", "-c", "sleep 1; echo {text}", concurrency=2)
    made = [await invoked(agent(app), "slow", text=f"n{n}") for n in range(3)]

    counts = await asyncio.gather(*(running.step(app) for _ in range(4)))
    states = [(await looked(agent(app), one))["status"] for one in made]

    assert sum(counts) == 2
    assert sorted(states) == ["queued", "succeeded", "succeeded"]
    assert await running.step(app) == 1


@needs_sandbox
async def test_whoever_races_to_run_it_runs_it_once(app: App) -> None:
    await enrolled(app, "say", concurrency=100)
    made = [await invoked(agent(app), text=f"n{n}") for n in range(10)]

    counts = await asyncio.gather(*(running.step(app) for _ in range(5)))
    outputs = [(await looked(agent(app), one))["output"] for one in made]

    assert sum(counts) == 10
    assert outputs == [f"n{n}\n" for n in range(10)]


async def test_a_runner_that_died_leaves_unknown_and_an_operator_settles_it(app: App) -> None:
    await enrolled(app)
    made = await invoked(agent(app), text="x")
    [due] = await app.store.engine.look(lambda tx: invocations.due(tx, app.now(), 10))
    assert await running._started(app, due, set()) is not None

    with pytest.raises(Conflict, match="running"):
        await ask(owner(app), "invocation.settle", id=made["id"], status="succeeded")
    later_on = later(app, MINUTE)
    seen = await looked(agent(later_on), made)
    assert await running.step(later_on) == 0
    written = await looked(agent(app), made)
    again = await invoked(agent(app), text="x")
    settled = await ask(owner(app), "invocation.settle", id=made["id"], status="failed", note="I looked.")

    assert (seen["status"], written["status"], again["id"]) == ("unknown", "unknown", made["id"])
    assert (settled["status"], settled["settled_by"], settled["outcome"]) == ("failed", "local", "I looked.")
    with pytest.raises(Conflict):
        await ask(owner(app), "invocation.settle", id=made["id"], status="succeeded")


@needs_sandbox
async def test_what_is_printed_is_kept_without_secrets_and_as_text(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA\n" * 3 + "-----END RSA PRIVATE KEY-----"
    await enrolled(app, "env", "sh", "-c", "echo token $DEPLOY_TOKEN", env=["DEPLOY_TOKEN"])
    await enrolled(app, "key", "printf", "%s\\n", "{text}")
    await enrolled(app, "binary", "head", "-c", "5000", "/dev/urandom")
    await enrolled(app, "mixed", "printf", "one\\0two\\033[31m\\r\\nthree\\377\\n")

    outputs = {name: (await ran(app, agent(app), name))["output"] for name in ("env", "binary", "mixed")}
    with pytest.raises(BadInput):
        await ran(app, agent(app), "key", text=key)
    stored = await app.store.read(1, lambda tx: tx.all("SELECT text FROM exec_output"))

    assert outputs["env"] == "token [redacted:env]\n"
    assert "no text" in outputs["binary"] and len(outputs["binary"]) < 200
    assert outputs["mixed"] == "one\ufffdtwo\ufffd[31m\nthree\ufffd\n"
    assert "horse" not in json.dumps([dict(row) for row in stored])


@needs_sandbox
async def test_what_is_forgotten_is_forgotten_here_too_and_what_is_old_goes(app: App) -> None:
    await enrolled(app, "say", concurrency=9)
    made = [await ran(app, agent(app), text=f"a secret plan {n}") for n in range(2)]
    other = await ran(app, replace(agent(app), bank="other"), text="a secret plan elsewhere")

    held = (await ask(owner(app), "memory.list"))["memories"]
    first = next(one for one in held if one["metadata"]["invocation"] == made[0]["id"])
    await ask(replace(owner(app), surface="mcp"), "memory.forget", id=first["id"])
    await ask(owner(app), "bank.delete", bank="other")
    left = [await looked(agent(app), one) for one in (*made, other)]
    kept = await running.clear_away(later(app, 89 * DAY))
    dropped = await running.clear_away(later(app, 91 * DAY))

    assert [(one["status"], one["output"], one["arguments"]) for one in left] == [
        ("succeeded", "", {}),
        ("succeeded", "a secret plan 1\n", {"text": "a secret plan 1"}),
        ("succeeded", "", {}),
    ]
    assert (kept, dropped) == (0, 3)
    assert await app.store.read(1, lambda tx: tx.all("SELECT n FROM exec_output")) == []
