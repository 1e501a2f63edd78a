"""A text that is planted out of someone's reach never comes to them: in no answer, count, page, prompt or refusal."""

import re
from collections.abc import AsyncIterator

import pytest

from keepsake import worker
from keepsake.core.errors import KeepsakeError
from keepsake.core.operation import Effect
from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.store import anomalies, banks, incidents
from keepsake.store.anomalies import Anomaly
from keepsake.store.engine import Tx
from keepsake.store.incidents import Incident, Note
from tests.auth.conftest import Json, as_
from tests.conftest import Database
from tests.isolation import asking
from tests.isolation.declared import REGISTRY
from tests.isolation.staging import MINE, OTHER_ORG, SHARED, Stage, staged

#: In what everyone stores, so that a search finds it wherever it may look.
COMMON = "heron"
CANARY = "zzcanary7f3"
#: Who asks, in which bank, and where the canaries are: in another org, or in another bank of their own.
ASKING = {
    "another org": ("owner", SHARED, OTHER_ORG, "theirs"),
    "another bank": ("other bank", MINE, LOCAL_ORG, SHARED),
}
PAGES = ("/metrics", "/openapi.json", "/healthz", "/readyz")
#: What differs from one asking to the next by itself.
_PASSING = re.compile(r'[0-9a-f]{16}|\d{4}-\d\d-\d\dT[\d:.]+Z?|"took_ms":\d+|[\d.]+ (?:ms|GiB)')


async def planted(stage: Stage, org: int, bank: str) -> int:
    """Run everything that writes, with the canary in every text; tells how much of it was taken."""
    me, taken = local_owner(org), 0
    told = f"The {COMMON} {CANARY} of Quill {CANARY.title()} nests in the reeds, says Ada Lovelace."
    await as_(stage.app, me, "memory.retain", bank=bank, content=told, tags=[CANARY], document=CANARY)
    for operation in [one for one in REGISTRY.values() if one.effect is Effect.MUTATE]:
        arguments = asking.over_rest(operation, CANARY, bank)[0]
        try:
            await as_(stage.app, me, operation.id, **arguments)
            taken += 1
        except KeepsakeError:
            continue
    await as_(stage.app, me, "bank.update", bank=bank, title=CANARY, mission=CANARY)
    await stage.app.store.write(org, lambda tx: watched(tx, stage, org, bank))
    for listing in ("incident.list", "anomaly.list"):
        assert CANARY in (await as_(stage.app, me, listing, bank=bank)).model_dump_json()
    await enriched(stage)
    return taken


async def watched(tx: Tx, stage: Stage, org: int, bank: str) -> None:
    """What only the passing of time would bring about: an incident with a note, and an anomaly, both going on."""
    found = await banks.named(tx, org, bank)
    assert found is not None
    id, now = stage.app.store.new_id(), stage.app.now()
    await incidents.put(tx, Incident(org, found.id, id, id, CANARY, f"http://{CANARY}/", CANARY, now, now))
    await incidents.note(tx, Note(org, found.id, id, id, now, CANARY, CANARY, told=False))
    numbers = (9.0, 1.0, 0.1, 10, 100)
    await anomalies.begin(tx, Anomaly(org, found.id, id, id, CANARY, "latency", *numbers, "all hours", now, now))


async def enriched(stage: Stage) -> None:
    """Let the background find out what was stored."""
    while await worker.step(stage.app, ["enrich"]):
        pass


async def questions(stage: Stage, who: str, bank: str) -> AsyncIterator[tuple[str, str]]:
    """Everything that can be read, each with what was answered."""
    for operation in [one for one in REGISTRY.values() if one.effect is Effect.READ]:
        arguments = asking.over_rest(operation, COMMON, bank)[0]
        yield f"rest {operation.id}", (await stage.operation(who, operation.id, arguments, bank)).text
    for door in stage.doors:
        for name, tool in door.dialect.tools.items():
            if tool.operation.effect is Effect.READ:
                params: Json = {"name": name, "arguments": asking.over_mcp(tool, COMMON, bank)[0]}
                yield f"{door.name} {name}", (await stage.mcp(who, door, "tools/call", params, bank)).text
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            yield f"{door.name} {method}", (await stage.mcp(who, door, method, {}, bank)).text
        for prompt in door.dialect.prompts:
            yield f"{door.name} {prompt}", (await stage.mcp(who, door, "prompts/get", {"name": prompt}, bank)).text
        for resource in door.dialect.resources:
            uri = resource.at(CANARY.replace("7", "8"))
            yield f"{door.name} {uri}", (await stage.mcp(who, door, "resources/read", {"uri": uri}, bank)).text
    browser = {"Cookie": f"keepsake={stage.cookie}"} if who == "owner" else {}
    for path in (*PAGES, *stage.pages):
        yield path, (await stage.http.get(path, headers=stage.headers(who, bank) | browser)).text


async def asked(stage: Stage, who: str, bank: str) -> dict[str, str]:
    return {label: _PASSING.sub("", told) async for label, told in questions(stage, who, bank)}


@pytest.mark.parametrize("where", ASKING)
async def test_a_canary_never_appears_and_changes_no_answer(database: Database, where: str) -> None:
    who, bank, org, place = ASKING[where]
    async with staged(database) as stage:
        await as_(stage.app, local_owner(), "memory.retain", bank=bank, content=f"A {COMMON} stands by the pond.")
        await enriched(stage)
        # What is not the same twice cannot be compared with a third time.
        first, second = await asked(stage, who, bank), await asked(stage, who, bank)
        taken = await planted(stage, org, place)
        after = await asked(stage, who, bank)
        held = await stage.app.store.read(org, lambda tx: _holding(tx, stage.tables, org))

    # How much the whole server has to do is for whoever runs it, and no one's text.
    steady = [label for label in first if first[label] == second[label] and label != "/metrics"]
    assert [label for label, told in after.items() if CANARY in told.lower()] == []
    assert {label: (first[label], after[label]) for label in steady if after[label] != first[label]} == {}
    # There was something to be found, and most answers could be compared.
    assert (taken > 15, len(held) > 10, len(steady) > len(first) * 0.7) == (True, True, True), (
        taken,
        held,
        len(steady),
    )


async def _holding(tx: Tx, tables: list[str], org: int) -> list[str]:
    """The tables that hold rows of an org."""
    rows = {table: await tx.one(f"SELECT 1 AS one FROM {table} WHERE org = :org LIMIT 1", org=org) for table in tables}
    return [table for table, row in rows.items() if row is not None]


async def test_the_id_of_another_org_is_as_unknown_as_none(database: Database) -> None:
    async with staged(database) as stage:
        them = local_owner(OTHER_ORG)
        retained = await as_(stage.app, them, "memory.retain", bank="theirs", content="A heron.", document="reeds")
        theirs, none = retained.model_dump()["id"], "123456789"
        taking = {one: _ids(one.given.model_json_schema()) for one in REGISTRY.values()}
        told: dict[str, list[str]] = {}
        for operation, fields in ((one, fields) for one, fields in taking.items() if fields):
            for id in (theirs, none):
                given = asking.over_rest(operation, "heron", SHARED)[0] | dict.fromkeys(fields, id)
                answer = await stage.operation("owner", operation.id, given)
                same = _PASSING.sub("", answer.text.replace(id, "that"))
                told.setdefault(operation.id, []).append(f"{answer.status_code} {same}")

    assert len(told) > 10
    assert {id: both for id, both in told.items() if len(set(both)) > 1} == {}


def _ids(schema: Json) -> list[str]:
    """The required fields that hold one id."""
    return [name for name in schema.get("required", []) if name == "id" or name.endswith("_id")]
