"""A proposal changes what it said, once, for whoever made it, as long as all is as it was."""

import asyncio
from dataclasses import replace

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import proposal
from keepsake.core.errors import Conflict, KeepsakeError
from keepsake.core.principal import local_owner
from keepsake.store.engine import Tx
from tests.auth.conftest import as_
from tests.conftest import Database
from tests.gate.gating import as_owner, at_the_machine, gate, later


async def test_a_proposal_describes_its_change_and_makes_it_once(database: Database) -> None:
    async with gate(database) as gates:
        key, id = await gates.key("agent"), await gates.retained("Tea is at four.")

        made = await gates.proposed(key, "memory.correct", id=id, content="Tea is at five.")
        before = await gates.texts()
        applied, again = await gates.apply(key, made["token"]), await gates.apply(key, made["token"])

        assert made["diff"].splitlines()[1:] == [
            "- content: Tea is at four.",
            "+ content: Tea is at five.",
            f"+ id: {id}",
        ]
        assert (made["state"], made["effect"]) == ("auto_ok", "mutate")
        assert before == ["Tea is at four."]
        assert (applied.status_code, applied.json()["text"]) == (200, "Tea is at five.")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
        assert await gates.texts() == ["Tea is at five."]
        done = await gates.audited()
        assert done[-3:] == ["proposal.create", "memory.correct", "proposal.apply"]


async def test_only_a_hash_of_the_token_is_kept_and_nothing_of_the_text_after_the_end(database: Database) -> None:
    async def rows(tx: Tx) -> str:
        return str([dict(row) for row in await tx.all("SELECT * FROM proposals")])

    async with gate(database) as gates:
        key = await gates.key("agent")
        made = await gates.proposed(key, "memory.retain", content="The safe is behind the picture.")
        open_rows = await gates.app.store.read(1, rows)
        await gates.apply(key, made["token"])
        ended_rows = await gates.app.store.read(1, rows)

    assert made["token"] not in open_rows and len(made["token"]) == len(proposal.PREFIX) + 64
    assert "behind the picture" in open_rows
    assert "behind the picture" not in ended_rows


async def test_a_secret_in_a_proposal_is_taken_out_before_it_is_stored(database: Database) -> None:
    secret = "ks_live_" + "5a" * 32

    async def rows(tx: Tx) -> str:
        return str([dict(row) for row in await tx.all("SELECT * FROM proposals")])

    async with gate(database) as gates:
        key = await gates.key("agent")
        made = await gates.proposed(key, "memory.retain", content=f"The key is {secret}.")
        check = await gates.proposed(
            key, "check.add", name="page", kind="http", target=f"https://x.example/?k={secret}"
        )
        kept = await gates.app.store.read(1, rows)
        applied, refused = await gates.apply(key, made["token"]), await gates.apply(key, check["token"])

        assert secret not in kept + made["diff"] + str(await gates.texts())
        assert (applied.status_code, refused.status_code) == (200, 400)
        assert "holds a secret" in refused.json()["error"]["message"]


@pytest.mark.parametrize("count", [64])
async def test_of_many_who_apply_at_once_one_gets_through(database: Database, count: int) -> None:
    async with gate(database) as gates:
        key = await gates.key("agent")
        made = await gates.proposed(key, "memory.retain", content="Only once.")

        answers = await asyncio.gather(*(gates.apply(key, made["token"]) for _ in range(count)))

        codes = sorted(answer.status_code for answer in answers)
        assert codes == [200] + [409] * (count - 1)
        assert await gates.texts() == ["Only once."]
        done = await gates.audited()
        assert (done.count("proposal.apply"), done.count("memory.retain")) == (1, 1)


async def test_a_token_is_good_for_its_own_principal_and_key_alone(database: Database) -> None:
    async with gate(database) as gates:
        mine, theirs = await gates.key("mine"), await gates.key("theirs")
        person = await gates.person("ada", "editor")
        other = await gates.key("ada-too", user="ada")
        made = [await gates.proposed(key, "memory.retain", content="Mine.") for key in (mine, person)]

        refused = [
            await gates.apply(theirs, made[0]["token"]),
            await gates.apply(other, made[1]["token"]),
            await gates.apply(mine, made[1]["token"]),
            await gates.apply(mine, made[0]["token"][:-1] + "x"),
            await gates.apply(mine, made[0]["id"]),
        ]

        assert {answer.status_code for answer in refused} == {404}
        assert len({answer.text for answer in refused}) == 1
        assert await gates.texts() == []


async def test_another_orgs_token_is_unknown(database: Database) -> None:
    async with gate(database) as gates:
        token = (await as_owner(gates.app, "proposal.create", operation="bank.create", arguments={"name": "x"}))[
            "token"
        ]

        with pytest.raises(KeepsakeError) as refused:
            await dispatch.call(gates.app.ctx(replace(local_owner(), org=2)), "proposal.apply", {"token": token})

    assert refused.value.code == "not_found"


async def test_a_proposal_past_its_time_changes_nothing(database: Database) -> None:
    async with gate(database) as gates:
        told = await as_owner(gates.app, "proposal.create", operation="bank.create", arguments={"name": "x"})
        past = later(gates, proposal.LASTS["auto_ok"])

        with pytest.raises(Conflict, match="past its time"):
            await as_(past, local_owner(), "proposal.apply", token=told["token"])

        assert (await gates.state(told["id"]))["state"] == "expired"
        assert (await gates.audited())[-1] == "proposal.expired"
        assert "x" not in [
            bank["name"] for bank in (await as_(gates.app, local_owner(), "bank.list")).model_dump()["banks"]
        ]


TARGETS = {
    "corrected": ("memory.correct", {"content": "Now."}),
    "forgotten": ("memory.forget", {}),
}


@pytest.mark.parametrize("how", TARGETS)
async def test_what_has_changed_since_is_not_changed_as_proposed(database: Database, how: str) -> None:
    async with gate(database) as gates:
        key, id = await gates.key("agent"), await gates.retained("Then.")
        made = await gates.proposed(key, "memory.correct", id=id, content="Mine.")
        operation, arguments = TARGETS[how]
        await as_(gates.app, local_owner(), operation, id=id, **arguments)

        refused, again = await gates.apply(key, made["token"]), await gates.apply(key, made["token"])

        assert [refused.status_code, again.status_code] == [409, 409]
        assert "Call `propose` again" in refused.json()["error"]["message"]
        assert (await gates.state(made["id"]))["state"] == "revoked"
        assert "Mine." not in await gates.texts()


async def test_rights_count_as_they_are_when_it_is_applied(database: Database) -> None:
    async with gate(database) as gates:
        key = await gates.person("ada", "editor")
        made = [await gates.proposed(key, "memory.retain", content=text) for text in ("One.", "Two.")]

        await as_(gates.app, local_owner(), "user.role", name="ada", role="editor", remove=True)
        await as_(gates.app, local_owner(), "user.role", name="ada", role="reader")
        lost = await gates.apply(key, made[0]["token"])
        over_mcp = await gates.server.mcp("tools/call", key, name="apply", arguments={"token": made[0]["token"]})
        await as_(gates.app, local_owner(), "key.revoke", name="ada")
        revoked = await gates.apply(key, made[1]["token"])

        assert (lost.status_code, over_mcp.status_code, revoked.status_code) == (403, 403, 401)
        assert over_mcp.json()["error"]["code"] == -32003
        assert await gates.texts() == []


async def test_a_role_at_a_bank_proposes_there_alone(database: Database) -> None:
    async with gate(database) as gates:
        await gates.retained("Theirs.", "web")
        id = await gates.retained("Ours.", "api")
        key = await gates.person("ada")
        await as_(gates.app, local_owner(), "user.role", name="ada", role="editor", bank="api")

        made = await gates.proposed(key, "memory.correct", bank="api", id=id, content="Still ours.")
        status = await gates.ask("proposal.get", key, id=made["id"])
        applied = await gates.apply(key, made["token"])
        refused = await gates.propose(key, "memory.retain", bank="web", content="No.")

        assert "- content: Ours." in made["diff"] and status.json()["diff"] == made["diff"]
        assert (applied.status_code, refused.status_code) == (200, 403)
        assert (await gates.texts("api"), await gates.texts("web")) == (["Still ours."], ["Theirs."])


async def test_an_altered_row_is_worth_nothing(database: Database) -> None:
    async def altered(tx: Tx) -> None:
        await tx.run("UPDATE proposals SET arguments = :other", other='{"content":"Forged."}')

    async with gate(database) as gates:
        key = await gates.key("agent")
        made = await gates.proposed(key, "memory.retain", content="Honest.")
        await gates.app.store.write(1, altered)

        refused = await gates.apply(key, made["token"])

        assert refused.status_code == 409
        assert (await gates.state(made["id"]))["state"] == "revoked"
        assert await gates.texts() == []


async def test_what_cannot_be_done_is_told_and_uses_the_token_up(database: Database) -> None:
    async with gate(database) as gates:
        key = await gates.key("agent")
        made = await gates.proposed(key, "model.create", name="Tea", source_query="When is tea?", id="tea")
        await as_(gates.app, local_owner(), "model.create", name="Tea", source_query="When is tea?", id="tea")

        refused = await gates.apply(key, made["token"])

        assert refused.status_code in (400, 409)
        assert (await gates.state(made["id"]))["state"] in ("failed", "revoked")


@pytest.mark.parametrize(
    ("operation", "arguments", "word"),
    [
        ("memory.recall", {"query": "x"}, "cannot be proposed"),
        ("proposal.apply", {"token": "x"}, "cannot be proposed"),
        ("proposal.decide", {"id": "1", "approve": True}, "cannot be proposed"),
        ("key.create", {"name": "x"}, "cannot be proposed"),
        ("user.role", {"name": "x", "role": "owner"}, "cannot be proposed"),
        ("exec.invoke", {}, "cannot be proposed"),
        ("no.such", {}, "cannot be proposed"),
        ("memory.retain", {}, "`content` is required"),
        ("memory.retain", {"content": "x", "more": 1}, "`more` is not an argument"),
        ("memory.forget", {"id": "12"}, "No memory"),
    ],
)
async def test_what_cannot_be_proposed_is_refused_and_not_stored(
    database: Database, operation: str, arguments: dict[str, object], word: str
) -> None:
    async def count(tx: Tx) -> int:
        return len(await tx.all("SELECT id FROM proposals"))

    async with gate(database) as gates:
        answer = await gates.propose(await gates.key("agent"), operation, **arguments)

        assert answer.status_code in (400, 404)
        assert word in answer.json()["error"]["message"]
        assert await gates.app.store.read(1, count) == 0


async def test_who_may_not_write_may_not_propose_to(database: Database) -> None:
    async with gate(database) as gates:
        reader = await gates.key("reader", scopes=["memory:read"])
        writer = await gates.key("writer", scopes=["memory:read", "memory:write"], banks=["default"])
        refused = [
            await gates.propose(reader, "memory.retain", content="x"),
            await gates.propose(reader, "memory.forget", id="1"),
            await gates.propose(writer, "bank.create", name="x"),
            await gates.propose(writer, "bank.delete"),
            await gates.propose(writer, "memory.retain", content="x", bank="theirs"),
            await gates.apply(reader, proposal.new_token()),
        ]

    assert [answer.status_code for answer in refused] == [403] * 6


async def test_a_crash_between_claim_and_end_never_runs_it_twice(database: Database) -> None:
    records = [{"key": "other/1", "kind": "fact", "text": "Imported."}]
    crashed = asyncio.Event()

    async with gate(database) as gates:
        wanted = {"operation": "memory.import", "arguments": {"records": records}}
        made = await as_owner(gates.app, "proposal.create", **wanted)
        task = asyncio.create_task(
            as_(_dying(gates.app, crashed), local_owner(), "proposal.apply", token=made["token"])
        )
        await crashed.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        standing = (await gates.state(made["id"]))["state"]
        with pytest.raises(Conflict, match="at this moment"):
            await as_(gates.app, local_owner(), "proposal.apply", token=made["token"])
        after = later(gates, proposal.RUNS)
        with pytest.raises(Conflict, match="broke off"):
            await as_(after, local_owner(), "proposal.apply", token=made["token"])

        assert standing == "claimed"
        assert (await gates.state(made["id"]))["state"] == "unknown"
        assert await gates.texts() == ["Imported."]


def _dying(app: App, crashed: asyncio.Event) -> App:
    """The application in a process that dies once its first change is kept."""

    class Dying:
        def set(self) -> None:
            crashed.set()
            raise asyncio.CancelledError

    return replace(app, work=Dying())  # type: ignore[arg-type]  # all that a change needs of an event


async def test_a_proposer_takes_back_what_is_not_applied(database: Database) -> None:
    async with gate(database) as gates:
        key, other = await gates.key("agent"), await gates.key("other")
        made = await gates.proposed(key, "memory.retain", content="No.")

        strange = await gates.ask("proposal.cancel", other, id=made["id"])
        taken = await gates.ask("proposal.cancel", key, id=made["id"])
        refused = await gates.apply(key, made["token"])

        assert (strange.status_code, taken.json()["state"], refused.status_code) == (404, "cancelled", 409)
        assert await gates.texts() == []


async def test_a_deleted_bank_takes_its_open_proposals_along(database: Database) -> None:
    async with gate(database) as gates:
        key = await gates.key("agent")
        await gates.retained("x", "api")
        made = await gates.proposed(key, "memory.retain", bank="api", content="Later.")
        await as_(gates.app, local_owner(), "bank.delete", bank="api")
        await as_(gates.app, local_owner(), "bank.create", name="api")

        refused = await gates.apply(key, made["token"])

        assert refused.status_code == 409
        assert await gates.texts("api") == []


async def test_nobody_piles_up_proposals_without_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepsake.ops.proposals.MOST", 2)
    async with gate(database) as gates:
        key, other = await gates.key("agent"), await gates.key("other")
        answers = [await gates.propose(key, "memory.retain", content=str(n)) for n in range(3)]
        others = await gates.propose(other, "memory.retain", content="x")

    assert [answer.status_code for answer in [*answers, others]] == [200, 200, 409, 200]


async def test_the_gate_is_open_to_the_owner_at_the_machine_too(database: Database) -> None:
    async with gate(database) as gates:
        made = (
            await at_the_machine(gates.app, "proposal.create", operation="bank.create", arguments={"name": "api"})
        ).model_dump()
        applied = await at_the_machine(gates.app, "proposal.apply", token=made["token"])

        assert applied.model_dump()["name"] == "api"
