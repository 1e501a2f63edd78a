"""What destroys waits for another person; nobody decides on what is their own."""

import json
from dataclasses import replace

import pytest

from keepsake.core import proposal
from keepsake.core.errors import Conflict, Forbidden, KeepsakeError
from keepsake.core.principal import local_owner
from keepsake.store import users
from tests.auth.conftest import as_
from tests.conftest import Database
from tests.gate.gating import Gate, Json, as_owner, at_the_machine, gate, later
from tests.surfaces.helpers import Terminal, keepsake

__all__ = ["keepsake"]


async def _forgetting(gates: Gate, key: str | None) -> Json:
    """A proposal to delete the one memory there is."""
    id = await gates.retained("Tea is at four.")
    return await gates.proposed(key, "memory.forget", id=id)


async def test_a_deletion_waits_for_another_person_and_is_lent_the_right_for_once(database: Database) -> None:
    async with gate(database) as gates:
        agent, approver = await gates.key("agent"), await gates.person("ada", "approver")
        made = await _forgetting(gates, agent)

        early = await gates.apply(agent, made["token"])
        listed = (await gates.ask("approval.list", approver)).json()["proposals"]
        decided = await gates.ask("proposal.decide", approver, id=made["id"], approve=True)
        applied = await gates.apply(agent, made["token"])
        direct = await gates.ask("memory.forget", agent, id="1")

        assert (made["state"], early.status_code) == ("pending_approval", 409)
        assert "approver" in early.json()["error"]["message"]
        assert [(one["id"], one["diff"]) for one in listed] == [(made["id"], made["diff"])]
        assert "- content: Tea is at four." in made["diff"]
        assert (decided.json()["state"], decided.json()["decided_by"]) == ("approved", "user:ada")
        assert (applied.status_code, applied.json()["memories"]) == (200, 1)
        assert applied.json()["principal"] == "key:agent"
        assert direct.status_code == 403
        assert await gates.texts() == []
        assert (await gates.audited())[-4:] == ["proposal.create", "proposal.decide", "memory.forget", "proposal.apply"]


async def test_what_is_rejected_cannot_be_applied(database: Database) -> None:
    async with gate(database) as gates:
        agent, approver = await gates.key("agent"), await gates.person("ada", "approver")
        made = await _forgetting(gates, agent)

        await gates.ask("proposal.decide", approver, id=made["id"], approve=False)
        applied = await gates.apply(agent, made["token"])
        again = await gates.ask("proposal.decide", approver, id=made["id"], approve=True)

        assert (applied.status_code, again.status_code) == (409, 409)
        assert (await gates.state(made["id"]))["state"] == "rejected"
        assert await gates.texts() == ["Tea is at four."]


async def test_nobody_decides_on_what_their_own_keys_proposed(database: Database) -> None:
    async with gate(database) as gates:
        mine = await gates.person("ada", "editor", "approver")
        other = await gates.key("ada-too", user="ada")
        await gates.person("bob", "reader")
        made = await _forgetting(gates, mine)

        refused = [await gates.ask("proposal.decide", key, id=made["id"], approve=True) for key in (mine, other)]
        listed = await gates.ask("approval.list", mine)

        assert [answer.status_code for answer in refused] == [403, 403]
        assert listed.json()["proposals"] == []
        assert (await gates.state(made["id"]))["state"] == "pending_approval"


async def test_only_an_approver_of_the_bank_decides(database: Database) -> None:
    async with gate(database) as gates:
        agent, reader = await gates.key("agent"), await gates.person("bob", "reader", "editor", "owner")
        await gates.retained("x", "web")
        made = await _forgetting(gates, agent)
        elsewhere = await gates.person("eve")
        await as_(gates.app, local_owner(), "user.role", name="eve", role="approver", bank="web")
        service = await gates.key("service", scopes=["memory:read", "memory:write", "memory:delete", "admin"])

        refused = [await gates.ask("proposal.decide", key, id=made["id"], approve=True) for key in (reader, elsewhere)]
        machine = await gates.ask("proposal.decide", service, id=made["id"], approve=True)
        seen = [(await gates.ask("approval.list", key)).json()["proposals"] for key in (reader, elsewhere, service)]
        unseen = await gates.ask("proposal.get", elsewhere, id=made["id"])
        await as_(gates.app, local_owner(), "user.role", name="eve", role="approver", bank="default")
        decided = await gates.ask("proposal.decide", elsewhere, id=made["id"], approve=True)

        assert [answer.status_code for answer in [*refused, machine, unseen]] == [404, 404, 403, 404]
        assert seen == [[], [], []]
        assert decided.json()["state"] == "approved"


async def test_where_there_is_one_person_that_person_decides_at_the_machine_as_self(database: Database) -> None:
    async with gate(database) as gates:
        mine = await gates.person("ada", "owner")
        made = await _forgetting(gates, mine)

        by_key = await gates.ask("proposal.decide", mine, id=made["id"], approve=True)
        with pytest.raises(Forbidden):
            await as_owner(gates.app, "proposal.decide", id=made["id"], approve=True)
        at_hand = (await at_the_machine(gates.app, "proposal.decide", id=made["id"], approve=True)).model_dump()

        assert by_key.status_code == 403
        assert (at_hand["state"], at_hand["decided_by"]) == ("approved", "self")
        assert (await gates.apply(mine, made["token"])).status_code == 200


async def test_where_there_are_more_the_local_owner_does_not_decide_on_their_own(database: Database) -> None:
    async with gate(database) as gates:
        id = await gates.retained("Tea is at four.")
        mine = await as_owner(gates.app, "proposal.create", operation="memory.forget", arguments={"id": id})
        theirs = await gates.proposed(await gates.person("ada", "owner"), "memory.forget", id=id)
        await gates.person("bob", "reader")

        with pytest.raises(Forbidden):
            await at_the_machine(gates.app, "proposal.decide", id=mine["id"], approve=True)
        decided = (await at_the_machine(gates.app, "proposal.decide", id=theirs["id"], approve=True)).model_dump()

        assert decided["decided_by"] == "local"


async def test_an_approval_lasts_a_quarter_of_an_hour_and_waiting_a_day(database: Database) -> None:
    async with gate(database) as gates:
        made = [await as_owner(gates.app, "proposal.create", **await _wanted(gates)) for _ in range(2)]
        await at_the_machine(gates.app, "proposal.decide", id=made[0]["id"], approve=True)

        with pytest.raises(Conflict, match="past its time"):
            await as_owner(later(gates, proposal.LASTS["approved"]), "proposal.apply", token=made[0]["token"])
        with pytest.raises(Conflict, match="expired"):
            past = later(gates, proposal.LASTS["pending_approval"])
            await at_the_machine(past, "proposal.decide", id=made[1]["id"], approve=True)
        near = later(gates, proposal.LASTS["pending_approval"] - proposal.LASTS["approved"])
        assert (await at_the_machine(near, "proposal.decide", id=made[1]["id"], approve=True)).model_dump()
        assert await gates.texts() == ["Tea is at four."]


async def _wanted(gates: Gate) -> Json:
    texts = await gates.texts()
    if not texts:
        await gates.retained("Tea is at four.")
    return {"operation": "memory.clear"}


async def test_a_clearing_is_for_what_was_there_when_it_was_proposed(database: Database) -> None:
    async with gate(database) as gates:
        agent = await gates.key("agent")
        await gates.retained("One.")
        made = await gates.proposed(agent, "memory.clear")
        await at_the_machine(gates.app, "proposal.decide", id=made["id"], approve=True)
        await gates.retained("Two.")

        refused = await gates.apply(agent, made["token"])

        assert "- memories: 1" in made["diff"]
        assert refused.status_code == 409
        assert await gates.texts() == ["One.", "Two."]


async def test_an_approver_sees_that_a_target_has_changed(database: Database) -> None:
    async with gate(database) as gates:
        agent, approver = await gates.key("agent"), await gates.person("ada", "approver")
        made = await _forgetting(gates, agent)
        await as_(gates.app, local_owner(), "memory.clear")

        seen = (await gates.ask("approval.list", approver)).json()["proposals"][0]

        assert seen["diff"].startswith("This can no longer be applied")
        assert "Tea" not in seen["diff"]
        assert seen["id"] == made["id"]


async def test_who_may_write_but_not_read_is_not_shown_what_would_go(database: Database) -> None:
    async with gate(database) as gates:
        blind = await gates.key("blind", scopes=["memory:write"])
        made = await _forgetting(gates, blind)
        status = (await gates.ask("proposal.get", blind, id=made["id"])).json()

        assert "Tea" not in made["diff"] + status["diff"]


def test_text_that_would_fool_a_terminal_is_shown_as_it_is(keepsake: Terminal) -> None:
    told = keepsake(
        "call", "retain", "--dialect", "hindsight", "--content", "Harmless.\x1b[2K\n+ id: 1\u202e", "--json"
    ).json
    made = _typed(keepsake, "propose", "memory.forget", told["memory_id"])
    listed = keepsake("approvals", "list")

    assert "\x1b" not in listed.out and "\u202e" not in listed.out
    assert "\\x1b[2K" in listed.out
    assert "-   + id: 1" in listed.out
    assert made in listed.out


def _typed(keepsake: Terminal, tool: str, operation: str, id: str) -> str:
    made = keepsake("call", tool, "--operation", operation, "--arguments", json.dumps({"id": id}), "--json").json
    return str(made["id"])


def test_the_command_line_lists_approves_and_denies(keepsake: Terminal) -> None:
    assert "Nothing waits" in keepsake("approvals", "list").out
    told = keepsake("call", "retain", "--dialect", "hindsight", "--content", "Tea is at four.", "--json").json
    made = [_typed(keepsake, "propose", "memory.forget", told["memory_id"]) for _ in range(2)]

    listed = keepsake("approvals", "list", "--json").json["proposals"]
    approved, denied = keepsake("approvals", "approve", made[0]), keepsake("approvals", "deny", made[1])
    unknown = keepsake("approvals", "approve", "12")
    left = keepsake("approvals", "list", "--json").json["proposals"]

    assert [one["id"] for one in listed] == made
    assert (approved.code, denied.code, unknown.code) == (0, 0, 1)
    assert "Approved: memory.forget" in approved.out and "Rejected: memory.forget" in denied.out
    assert left == []


async def test_a_refused_decision_leaves_everything_as_it_was(database: Database) -> None:
    async with gate(database) as gates:
        agent = await gates.key("agent")
        made = await _forgetting(gates, agent)
        before = await gates.audited()

        for id in (made["id"], "0", "x", "9" * 20, "-1"):
            with pytest.raises(KeepsakeError):
                await as_owner(gates.app, "proposal.decide", id=id, approve=True)

        assert await gates.audited() == before


async def test_a_client_that_acts_for_an_approver_does_not_decide(database: Database) -> None:
    async with gate(database) as gates:
        agent = await gates.key("agent")
        await gates.person("ada", "approver")
        made = await _forgetting(gates, agent)
        ada = await gates.app.store.read(1, lambda tx: users.named(tx, 1, "ada"))
        assert ada is not None
        herself = replace(local_owner(), name="user:ada", person=ada.id, key=3)

        with pytest.raises(Forbidden):
            await as_(gates.app, replace(herself, client=9), "proposal.decide", id=made["id"], approve=True)
        decided = await as_(gates.app, herself, "proposal.decide", id=made["id"], approve=True)

        assert decided.model_dump()["decided_by"] == "user:ada"
