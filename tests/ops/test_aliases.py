"""Other names of a bank, on both stores."""

from typing import Any

import pytest

from keepsake import dispatch
from keepsake.auth import verify
from keepsake.context import App
from keepsake.core.errors import BadInput, Conflict, Forbidden, NotFound
from keepsake.core.principal import LOCAL_ORG, Principal, local_owner
from keepsake.core.project import Project
from keepsake.store import projects

pytestmark = pytest.mark.anyio

PROJECT = Project("git:github.com/acme/api", "api", "/src/api")


async def alias(app: App, /, who: Principal | None = None, **arguments: Any) -> dict[str, Any]:
    result = await dispatch.call(app.ctx(who or local_owner()), "bank.alias", arguments)
    return result.model_dump(mode="json")


async def bank_of(app: App, project: Project) -> str:
    bank = await app.store.write(LOCAL_ORG, lambda tx: projects.bank_for(tx, app.store, LOCAL_ORG, project, app.now()))
    return bank.name


async def test_a_bank_is_found_under_every_name_that_it_has(app: App, call: Any) -> None:
    await call("create_bank", bank_id="old")
    await call("retain", bank_id="old", content="Ada likes tea.")

    named = await alias(app, bank="old", name="new")
    again = await alias(app, bank="new", name="new")

    assert named == again == {"bank": "old", "aliases": ["new"], "projects": []}
    for name in ("old", "new"):
        assert len((await call("recall", bank_id=name, query="tea"))["results"]) == 1
    assert [bank["bank_id"] for bank in (await call("list_banks"))["banks"]] == ["old"]


async def test_a_renamed_bank_is_shown_under_its_new_name_and_keeps_its_memories(app: App, call: Any) -> None:
    await call("create_bank", bank_id="old")
    await call("retain", bank_id="old", content="Ada likes tea.")

    named = await alias(app, bank="old", name="new", rename=True)

    assert named == {"bank": "new", "aliases": ["old"], "projects": []}
    assert [bank["bank_id"] for bank in (await call("list_banks"))["banks"]] == ["new"]
    assert len((await call("recall", bank_id="old", query="tea"))["results"]) == 1
    assert await alias(app, bank="new", name="old", rename=True) == {"bank": "old", "aliases": ["new"], "projects": []}


async def test_a_name_that_another_bank_has_is_refused(app: App, call: Any) -> None:
    for name in ("one", "two"):
        await call("create_bank", bank_id=name)

    with pytest.raises(Conflict, match="There is a bank 'two' already"):
        await alias(app, bank="one", name="two")
    with pytest.raises(NotFound):
        await alias(app, bank="three", name="four")


async def test_a_renamed_project_keeps_its_history(app: App, call: Any) -> None:
    await bank_of(app, PROJECT)
    renamed = Project("git:github.com/acme/gateway", "gateway", "/src/gateway")
    assert await bank_of(app, renamed) == "gateway"

    named = await alias(app, bank="api", project=renamed.identity)

    assert named["projects"] == ["git:github.com/acme/api", "git:github.com/acme/gateway"]
    assert await bank_of(app, renamed) == "api"
    assert [bank["bank_id"] for bank in (await call("list_banks"))["banks"]] == ["api", "gateway"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"project": "git:x"},
        {"project": "/srv/api"},
        {"name": "a/b"},
        {"name": "git:github.com/acme/api"},
        {"name": ""},
        {"project": "git:github.com/acme/api", "rename": True},
    ],
)
async def test_what_is_no_name_is_refused(app: App, call: Any, arguments: dict[str, Any]) -> None:
    await call("create_bank", bank_id="api")

    with pytest.raises(BadInput):
        await alias(app, bank="api", **arguments)


async def test_a_key_reaches_its_bank_under_the_new_name_and_no_other_bank(app: App, call: Any) -> None:
    for name in ("mine", "theirs"):
        await call("create_bank", bank_id=name)
    before = await made_key(app, "before", "mine")

    await alias(app, bank="mine", name="renamed", rename=True)
    after = await made_key(app, "after", "mine")

    for holder in (before, after):
        assert (await verified(app, holder)).banks == frozenset({"mine", "renamed"})
    assert (await verified(app, await made_key(app, "other", "theirs"))).banks == frozenset({"theirs"})


async def test_a_key_cannot_take_a_name_or_a_project_from_beyond_its_banks(app: App, call: Any) -> None:
    await call("create_bank", bank_id="mine")
    await bank_of(app, PROJECT)
    narrow = local_owner().narrowed(banks=frozenset({"mine"}))

    with pytest.raises(Forbidden):
        await alias(app, narrow, bank="mine", name="api-2")
    with pytest.raises(Forbidden):
        await alias(app, narrow, bank="mine", project=PROJECT.identity)
    with pytest.raises(Forbidden):
        await alias(app, narrow, bank="api", name="mine")
    assert await bank_of(app, PROJECT) == "api"


async def made_key(app: App, name: str, bank: str) -> str:
    result = await dispatch.call(app.ctx(local_owner()), "key.create", {"name": name, "banks": [bank]})
    return str(result.model_dump()["secret"])


async def verified(app: App, secret: str) -> Principal:
    return await verify.principal(app.store, app.settings, secret, open_door=False)
