"""What is past its time ends by itself, and the log says so."""

from dataclasses import replace

from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.ops import ending
from keepsake.store.engine import Tx
from tests.auth.test_oauth_rotation import consenting
from tests.conftest import Database
from tests.gate.gating import as_owner, gate, later


async def test_a_proposal_past_its_time_is_ended_by_the_background(database: Database) -> None:
    async with gate(database) as gates:
        await as_owner(gates.app, "bank.create", name="tea")
        short = await as_owner(
            gates.app, "proposal.create", operation="bank.update", arguments={"bank": "tea", "title": "Tea"}
        )
        long = await as_owner(gates.app, "proposal.create", operation="bank.delete", arguments={"bank": "tea"})

        assert await ending.sweep(gates.app) == 0
        assert await ending.sweep(later(gates, HOUR)) == 1
        assert await ending.sweep(later(gates, HOUR)) == 0
        rows = await gates.app.store.read(
            1, lambda tx: tx.all("SELECT id, state, arguments <> '' AS is_kept FROM proposals ORDER BY id")
        )
        assert [(str(row["id"]), row["state"], bool(row["is_kept"])) for row in rows] == [
            (short["id"], "expired", False),
            (long["id"], "pending_approval", True),
        ]
        assert (await gates.audited())[-1] == "proposal.expired"
        assert await ending.sweep(later(gates, 2 * DAY)) == 1


async def test_who_claimed_a_proposal_and_crashed_leaves_it_unknown(database: Database) -> None:
    async with gate(database) as gates:
        made = await as_owner(gates.app, "proposal.create", operation="bank.create", arguments={"name": "tea"})
        now = gates.app.now()
        await gates.app.store.write(
            1, lambda tx: tx.run("UPDATE proposals SET state = 'claimed', claimed_at = :now", now=now)
        )

        assert await ending.sweep(later(gates, 14 * MINUTE)) == 0
        assert await ending.sweep(later(gates, 16 * MINUTE)) == 1
        assert (await gates.state(made["id"]))["state"] == "unknown"


async def test_what_signing_in_leaves_behind_goes_when_it_has_ended(database: Database) -> None:
    async def counted(tx: Tx) -> dict[str, int]:
        tables = ("oauth_tokens", "oauth_clients", "web_sessions")
        rows = {table: await tx.one(f"SELECT count(*) AS held FROM {table}") for table in tables}
        return {table: int(row["held"]) if row else 0 for table, row in rows.items()}

    async with consenting(database) as ada:
        now = ada.app.now()
        await ada.redeem(await ada.code())
        before = await ada.app.store.read(1, counted)

        assert await ending.sweep(ada.app) == 0
        # Access has ended and the session with it; the refresh token is good, and its client lives on.
        assert await ending.sweep(replace(ada.app, now=lambda: now + 2 * DAY)) == 3
        after = await ada.app.store.read(1, counted)

    assert before == {"oauth_tokens": 3, "oauth_clients": 1, "web_sessions": 1}
    assert after == {"oauth_tokens": 1, "oauth_clients": 1, "web_sessions": 0}
