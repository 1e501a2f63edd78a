"""A project's bank, on both stores."""

import asyncio
from dataclasses import replace

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import Conflict
from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.core.project import Project
from keepsake.store import banks, projects
from keepsake.store.store import Store
from keepsake.tools import catalog

pytestmark = pytest.mark.anyio

ACME = Project("git:github.com/acme/api", "api", "/src/api", "main")
OTHER = Project("git:github.com/other/api", "api", "/src/other", "main")
FOLDER = Project("dir:/home/ada/api", "api", "/home/ada/api")


async def bank_for(store: Store, project: Project) -> banks.Bank:
    return await store.write(LOCAL_ORG, lambda tx: projects.bank_for(tx, store, LOCAL_ORG, project, 7))


async def test_a_project_has_no_bank_until_one_is_asked_for(store: Store) -> None:
    before = await store.read(LOCAL_ORG, lambda tx: projects.find(tx, LOCAL_ORG, ACME))
    made = await bank_for(store, ACME)
    after = await store.read(LOCAL_ORG, lambda tx: projects.find(tx, LOCAL_ORG, ACME))

    assert (before, after) == (None, made.id)
    assert (await bank_for(store, ACME)).id == made.id


async def test_projects_of_one_name_never_share_a_bank(store: Store) -> None:
    names = [(await bank_for(store, project)).name for project in (ACME, OTHER, FOLDER)]

    assert names == ["api", "other-api", "ada-api"]


async def test_the_third_of_a_name_is_told_by_its_digest(store: Store) -> None:
    for project in (ACME, OTHER):
        await bank_for(store, project)
    third = await bank_for(store, Project("git:gitlab.com/other/api", "api", "/x"))

    assert third.name.startswith("api-") and len(third.name) == 12


async def test_projects_that_come_at_the_same_time_never_share_a_bank(store: Store) -> None:
    await store.write(LOCAL_ORG, lambda tx: banks.create(tx, store, LOCAL_ORG, "api"))

    made = await asyncio.gather(*(bank_for(store, project) for project in (ACME, OTHER, FOLDER) * 4))

    assert len({bank.id for bank in made}) == 3
    assert {made[at].id for at in (0, 3, 6, 9)} == {made[0].id}
    assert len(await store.read(LOCAL_ORG, lambda tx: banks.listed(tx, LOCAL_ORG))) == 3


async def test_a_bank_made_by_hand_is_the_first_projects(store: Store) -> None:
    byhand = await store.write(LOCAL_ORG, lambda tx: banks.create(tx, store, LOCAL_ORG, "api"))
    assert byhand is not None

    assert (await bank_for(store, ACME)).id == byhand.id
    assert (await bank_for(store, OTHER)).id != byhand.id


async def test_everyones_bank_is_no_projects(store: Store) -> None:
    shared = await store.write(LOCAL_ORG, lambda tx: banks.create(tx, store, LOCAL_ORG, "default"))
    assert shared is not None

    bank = await bank_for(store, Project("dir:/home/ada/default", "default", "/home/ada/default"))

    assert (bank.name, bank.id == shared.id) == ("ada-default", False)


async def test_an_override_names_the_bank_whoever_else_uses_it(store: Store) -> None:
    made = await bank_for(store, ACME)

    assert (await bank_for(store, Project("api", "api", "/elsewhere"))).id == made.id
    assert (await bank_for(store, Project("ours", "ours", "/elsewhere"))).name == "ours"


async def test_another_orgs_project_is_not_found(store: Store) -> None:
    await bank_for(store, ACME)

    assert await store.read(2, lambda tx: projects.find(tx, 2, ACME)) is None


async def test_a_deleted_bank_leaves_its_project_free(store: Store) -> None:
    made = await bank_for(store, ACME)
    await store.write(LOCAL_ORG, lambda tx: banks.delete(tx, LOCAL_ORG, made.id))

    again = await bank_for(store, ACME)

    assert (again.name, again.id == made.id) == ("api", False)


# --- a server for the project of a folder -----------------------------------------------------------------------------


async def expected(store: Store, project: Project) -> str:
    return await store.read(LOCAL_ORG, lambda tx: projects.expected(tx, LOCAL_ORG, project))


async def test_a_projects_bank_has_a_name_before_it_is_made(store: Store) -> None:
    before = [await expected(store, project) for project in (ACME, OTHER, FOLDER)]
    made = [(await bank_for(store, project)).name for project in (ACME, OTHER, FOLDER)]

    assert before == ["api", "api", "api"]
    assert [await expected(store, project) for project in (ACME, OTHER, FOLDER)] == made
    assert await expected(store, Project("git:gitlab.com/other/api", "api", "/x")) not in made


async def test_a_bank_that_belongs_to_nobody_is_expected_by_the_name_it_is_shown_under(store: Store) -> None:
    byhand = await store.write(LOCAL_ORG, lambda tx: banks.create(tx, store, LOCAL_ORG, "service"))
    assert byhand is not None
    await store.write(LOCAL_ORG, lambda tx: projects.claim(tx, byhand, "api"))

    assert await expected(store, ACME) == "service"
    assert (await bank_for(store, ACME)).id == byhand.id


async def test_a_request_never_enters_a_bank_that_another_project_has_just_taken(app: App) -> None:
    door = dispatch.Door(catalog.BOUND["hindsight"])
    late = replace(app.ctx(local_owner().narrowed(banks=frozenset({"api"})), "api"), project=OTHER)
    first = replace(late, project=ACME)

    await dispatch.call_tool(first, door, "retain", {"content": "Acme listens on port 4711."})

    for tool, arguments in (("retain", {"content": "No."}), ("recall", {"query": "port"}), ("list_memories", {})):
        with pytest.raises(Conflict):
            await dispatch.call_tool(late, door, tool, arguments)
    assert await app.store.read(LOCAL_ORG, lambda tx: projects.find(tx, LOCAL_ORG, OTHER)) is None
