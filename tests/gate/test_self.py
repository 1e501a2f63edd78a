"""The one person of an org decides on what their own agent asks, right after giving their password, and only so."""

from dataclasses import replace

import pytest
from pydantic import BaseModel

from keepsake import dispatch
from keepsake.core.approver import FRESH
from keepsake.core.clock import SECOND
from keepsake.core.errors import Forbidden, NotFound
from keepsake.core.principal import Principal, local_owner
from keepsake.ops import signing_in
from keepsake.ops.signing_in import Entered
from tests.auth.conftest import as_
from tests.auth.flowing import PASSWORD
from tests.conftest import Database
from tests.gate.gating import Gate, gate


async def _signed(gates: Gate, name: str) -> Principal:
    await as_(gates.app, local_owner(), "user.password", name=name, password=PASSWORD)
    entered = await signing_in.sign_in(gates.app, name, PASSWORD, "10.0.0.1")
    assert isinstance(entered, Entered)
    signed = await signing_in.signed_in(gates.app, entered.id)
    assert signed is not None
    return await signing_in.principal(gates.app, signed)


async def _on_page(gates: Gate, who: Principal, ago: int | None, operation: str, **arguments: object) -> BaseModel:
    """Ask as a page does, for someone who gave their password so long ago."""
    ctx = gates.app.ctx(who, surface="web")
    ctx = ctx if ago is None else replace(ctx, signed_in_at=gates.app.now() - ago)
    return await dispatch.call(ctx, operation, arguments)


async def test_the_only_person_decides_after_a_fresh_login_and_it_is_recorded(database: Database) -> None:
    async with gate(database) as gates:
        key = await gates.person("ada", "owner")
        ada = await _signed(gates, "ada")
        made = await gates.proposed(key, "memory.forget", id=await gates.retained("Tea is at four."))
        asked = {"id": made["id"], "approve": True}

        listed = (await _on_page(gates, ada, 2 * FRESH, "approval.list")).model_dump()["proposals"]
        assert [(one["id"], one["decide_as"], one["user"], one["client"]) for one in listed] == [
            (made["id"], "self", "ada", "ada")
        ]
        assert (await _on_page(gates, ada, 2 * FRESH, "approval.count")).model_dump()["proposals"] == 1
        for ago in (FRESH + SECOND, -FRESH, None):
            with pytest.raises(Forbidden):
                await _on_page(gates, ada, ago, "proposal.decide", **asked)
        # Neither her agent, nor a client of hers, is her.
        with pytest.raises(Forbidden):
            await _on_page(gates, replace(ada, client=7), 0, "proposal.decide", **asked)
        assert (await gates.ask("proposal.decide", key, **asked)).status_code == 403

        told = (await _on_page(gates, ada, FRESH - SECOND, "proposal.decide", **asked, note="Yes.")).model_dump()
        assert (told["state"], told["decided_by"], told["outcome"]) == ("approved", "self", "Yes.")
        assert (await gates.apply(key, made["token"])).status_code == 200


async def test_with_others_there_or_for_what_is_not_theirs_nobody_is_their_own_approver(database: Database) -> None:
    async with gate(database) as gates:
        agent, key = await gates.key("agent"), await gates.person("bob", "editor")
        bob = await _signed(gates, "bob")
        foreign = await gates.proposed(agent, "memory.forget", id=await gates.retained("Tea."))
        own = await gates.proposed(key, "memory.forget", id=await gates.retained("More tea."))

        # A key that is nobody's is the owner's; bob is none, though he is alone.
        with pytest.raises(NotFound):
            await _on_page(gates, bob, 0, "proposal.decide", id=foreign["id"], approve=True)
        await gates.person("ada", "approver")
        with pytest.raises(Forbidden):
            await _on_page(gates, bob, 0, "proposal.decide", id=own["id"], approve=True)
        shown = (await _on_page(gates, bob, 0, "proposal.get", id=own["id"])).model_dump()
        assert (shown["decide_as"], shown["state"]) == (None, "pending_approval")
        with pytest.raises(NotFound):
            await _on_page(gates, bob, 0, "proposal.get", id=foreign["id"])
        assert (await _on_page(gates, bob, 0, "approval.list")).model_dump()["proposals"] == []


async def test_what_was_decided_is_listed_by_how_it_ended(database: Database) -> None:
    async with gate(database) as gates:
        agent, approver = await gates.key("agent"), await gates.person("ada", "approver")
        made = [
            await gates.proposed(agent, "memory.forget", id=await gates.retained(text)) for text in ("a", "b", "c", "d")
        ]
        await gates.ask("proposal.decide", approver, id=made[0]["id"], approve=True)
        await gates.ask("proposal.decide", approver, id=made[1]["id"], approve=False, note="No.")
        await gates.ask("proposal.cancel", agent, id=made[2]["id"])

        async def ids(state: str) -> list[str]:
            found = (await gates.ask("approval.list", approver, state=state)).json()["proposals"]
            return [one["id"] for one in found]

        told = {state: await ids(state) for state in ("waiting", "approved", "denied", "expired")}
        wanted = {"waiting": 3, "approved": 0, "denied": 1, "expired": 2}
        assert told == {state: [made[at]["id"]] for state, at in wanted.items()}
        assert (await gates.ask("proposal.get", agent, id=made[1]["id"])).json()["outcome"] == "No."
