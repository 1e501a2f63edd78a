"""Signed heads of the audit log: against them every edited, removed or reordered row shows."""

import json
from pathlib import Path

import pytest

from keepsake.core.errors import Conflict
from keepsake.core.principal import local_owner
from keepsake.store import audit
from keepsake.store.engine import Tx
from tests.auth.conftest import as_
from tests.conftest import Database
from tests.gate.gating import Gate, Json, as_owner, gate
from tests.surfaces.helpers import Terminal, damaged, keepsake

__all__ = ["keepsake"]


async def _exported(gates: Gate) -> Json:
    for text in ("One.", "Two.", "Three."):
        await gates.retained(text)
    return await as_owner(gates.app, "audit.export")


async def _verified(gates: Gate, export: Json | None) -> list[str]:
    told = (await as_(gates.app, local_owner(), "audit.verify", export=export)).model_dump()
    assert told["ok"] == (not told["broken"])
    return [one["chain"] for one in told["broken"]]


async def test_an_export_holds_as_long_as_the_log_only_grows(database: Database) -> None:
    async with gate(database) as gates:
        export = await _exported(gates)
        await gates.retained("Four.")
        again = await as_owner(gates.app, "audit.export")

        assert await _verified(gates, export) == []
        assert export["public_key"] == again["public_key"]
        assert len(export["signature"]) == 128


async def _forged(gates: Gate, chain: int, drop: int) -> None:
    """Write a whole chain anew without its last entries, hashes and head included."""

    async def body(tx: Tx) -> None:
        written = [one.entry for one in reversed(await audit.newest(tx, 1, audit.Wanted([chain], limit=1_000)))]
        await tx.run("DELETE FROM audit WHERE org = 1 AND bank = :chain", chain=chain)
        await tx.run("DELETE FROM audit_heads WHERE org = 1 AND bank = :chain", chain=chain)
        for entry in written[: len(written) - drop]:
            await audit.append(tx, entry)

    await gates.app.store.write(1, body)


async def test_a_chain_that_was_cut_and_hashed_anew_shows_against_the_export_alone(database: Database) -> None:
    async with gate(database) as gates:
        export = await _exported(gates)
        chain = export["heads"][-1]["chain"]

        await _forged(gates, int(chain), drop=1)

        assert await _verified(gates, None) == []
        assert await _verified(gates, export) == [chain]


async def test_a_chain_that_is_gone_shows(database: Database) -> None:
    async with gate(database) as gates:
        export = await _exported(gates)
        chain = export["heads"][-1]["chain"]

        await _forged(gates, int(chain), drop=1_000)

        assert await _verified(gates, export) == [chain]


DAMAGE = {
    "edited": "UPDATE audit SET principal = 'someone else' WHERE org = 1 AND bank = :chain AND n = 2",
    "removed": "DELETE FROM audit WHERE org = 1 AND bank = :chain AND n = 2",
    "removed at the end": "DELETE FROM audit WHERE org = 1 AND bank = :chain AND n = 3",
}


@pytest.mark.parametrize("how", [*DAMAGE, "reordered"])
async def test_every_change_of_a_row_shows(database: Database, how: str) -> None:
    async def body(tx: Tx) -> None:
        if how in DAMAGE:
            await tx.run(DAMAGE[how], chain=chain)
            return
        for was, becomes in ((1, 99), (2, 1), (99, 2)):
            await tx.run(
                "UPDATE audit SET n = :becomes WHERE org = 1 AND bank = :chain AND n = :was",
                becomes=becomes,
                chain=chain,
                was=was,
            )

    async with gate(database) as gates:
        export = await _exported(gates)
        chain = int(export["heads"][-1]["chain"])
        await gates.app.store.write(1, body)

        assert await _verified(gates, None) == [str(chain)]
        assert await _verified(gates, export) == [str(chain)]


@pytest.mark.parametrize("what", ["heads", "signature", "public_key", "org", "at"])
async def test_an_export_that_was_changed_is_refused(database: Database, what: str) -> None:
    async with gate(database) as gates:
        export = await _exported(gates)
        other: Json = {
            "heads": [{**export["heads"][0], "hash": "0" * 64}, *export["heads"][1:]],
            "signature": "00" * 64,
            "public_key": "11" * 32,
            "org": 2,
            "at": "2020-01-01T00:00:00Z",
        }

        with pytest.raises(Conflict):
            await _verified(gates, {**export, what: other[what]})


async def test_another_key_in_the_database_shows(database: Database) -> None:
    async def replaced(tx: Tx) -> None:
        await tx.run("UPDATE meta SET value = :value WHERE key = 'signing_key'", value="ab" * 32)

    async with gate(database) as gates:
        export = await _exported(gates)
        await gates.app.store.engine.claim(replaced)

        with pytest.raises(Conflict, match="signing key was replaced"):
            await _verified(gates, export)


def test_the_command_line_writes_heads_and_checks_against_them(keepsake: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "heads.json"
    for text in ("One.", "Two."):
        assert keepsake("call", "retain", "--dialect", "hindsight", "--content", text).code == 0
    written = keepsake("verify", "--export", str(file))
    holds = keepsake("verify", str(file))
    damaged(keepsake.folder, "DELETE FROM audit WHERE n = 2")
    damaged(
        keepsake.folder,
        "UPDATE audit_heads SET n = 1, hash = (SELECT hash FROM audit a WHERE a.bank = audit_heads.bank)",
    )
    alone, against = keepsake("verify"), keepsake("verify", str(file))
    missing, broken = keepsake("verify", str(tmp_path / "none.json")), keepsake("verify", __file__)

    assert (written.code, holds.code, alone.code, against.code) == (0, 0, 0, 1)
    assert "Keep it on another machine" in written.out
    assert "was changed" in against.out
    assert (missing.code, broken.code) == (2, 2)
    assert set(json.loads(file.read_text())) == {"org", "at", "heads", "public_key", "signature"}
