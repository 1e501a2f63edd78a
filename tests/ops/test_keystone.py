"""The keystone dialect over both stores: projects, their score, and passages whose similarity means something."""

import json
from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.clock import DAY
from keepsake.core.errors import BadInput, Forbidden, NotFound
from keepsake.core.principal import LOCAL_ORG, Principal, local_owner
from keepsake.surfaces import mcp
from keepsake.tools import catalog
from tests.ops.projecting import SYNCED, Chunk, Keystone, asking, project

pytestmark = pytest.mark.anyio
DONE: dict[str, Any] = {"completed": 1, "last_synced_at": SYNCED, "synthesis": "completed", "synthesis_progress": 100}
TOKENS = Chunk(
    "Issue short-lived access tokens at login, and rotate the refresh token on every use.",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
    metadata={"author": "Ada", "sha": "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"},
)
CAKE = Chunk("Bake the plum cake for fifty minutes.", "docs/cake.md", "file", "Cake", {"path": "docs/cake.md"})


@pytest.fixture
def app(app: App) -> App:
    """The application three days after the sync."""
    return replace(app, now=lambda: SYNCED + 3 * DAY)


@pytest.fixture
def keystone(app: App) -> Keystone:
    return asking(app)


async def test_projects_are_listed_with_what_is_known_of_their_repository(app: App, keystone: Keystone) -> None:
    await project(app, "my-api", title="My API", full_name="org/my-api", **DONE)
    await project(app, "notes")
    await project(app, "a-folder", synthesis="pending")

    assert await keystone("list_projects") == [
        {
            "slug": "a-folder",
            "name": "a-folder",
            "githubFullName": None,
            "synthesisStatus": "pending",
            "lastSyncedAt": None,
        },
        {
            "slug": "my-api",
            "name": "My API",
            "githubFullName": "org/my-api",
            "synthesisStatus": "completed",
            "lastSyncedAt": "2026-04-29T10:00:00.000Z",
        },
        {"slug": "notes", "name": "notes", "githubFullName": None, "synthesisStatus": None, "lastSyncedAt": None},
    ]


async def test_the_banks_of_hindsight_are_told_as_before(app: App, call: Any) -> None:
    await project(app, "my-api", full_name="org/my-api", **DONE)

    (bank,) = (await call("list_banks"))["banks"]

    assert set(bank) == {"bank_id", "name", "mission", "disposition", "created_at"}


async def test_the_operation_itself_tells_of_the_repository(app: App) -> None:
    await project(app, "my-api", full_name="org/my-api", **DONE)

    listed, one = [
        (await dispatch.call(app.ctx(local_owner()), id, arguments)).model_dump()
        for id, arguments in (("bank.list", {}), ("bank.get", {"bank": "my-api"}))
    ]

    assert listed["banks"][0]["repository"] == one["repository"]
    assert one["repository"] == {
        "full_name": "org/my-api",
        "synthesis": "completed",
        "last_synced_at": "2026-04-29T10:00:00Z",
    }


async def test_the_status_of_a_project_is_told_as_the_seed_says(app: App, keystone: Keystone) -> None:
    await project(app, "my-api", TOKENS, CAKE, full_name="org/my-api", folder_files=6, **DONE)

    assert await keystone("get_project_status", projectSlug="my-api") == {
        "slug": "my-api",
        "githubFullName": "org/my-api",
        "memoryScore": 83,
        "breakdown": {
            "total": 83,
            "ingestion": 25,
            "synthesis": 25,
            "coverage": 8,
            "freshness": 15,
            "keystoneFolder": 10,
        },
        "synthesisStatus": "completed",
        "synthesisProgress": 100,
        "lastSyncedAt": "2026-04-29T10:00:00.000Z",
        "ingestionCompleted": True,
        "embeddingCount": 2,
        "keystoneFolder": {"detected": True, "fileCount": 6},
    }


async def test_a_project_without_a_repository_has_no_score(app: App, keystone: Keystone) -> None:
    await project(app, "notes")

    status = await keystone("get_project_status", projectSlug="notes")

    assert (status["memoryScore"], status["ingestionCompleted"], status["embeddingCount"]) == (0, False, 0)
    assert (status["githubFullName"], status["synthesisStatus"], status["lastSyncedAt"]) == (None, None, None)
    assert status["keystoneFolder"] == {"detected": False, "fileCount": 0}


async def test_memories_told_by_people_do_not_count_as_coverage(app: App, keystone: Keystone, call: Any) -> None:
    await project(app, "my-api", TOKENS, **DONE)
    await call("retain", bank_id="my-api", content="We talk about tokens on Mondays.")

    assert (await keystone("get_project_status", projectSlug="my-api"))["embeddingCount"] == 1


async def test_matches_are_raw_and_say_where_they_come_from(app: App, keystone: Keystone) -> None:
    await project(app, "my-api", TOKENS, CAKE, full_name="org/my-api")

    (match,) = await keystone("search_memory", projectSlugs=["my-api"], query="how are access tokens issued at login?")

    assert 0.3 <= match.pop("similarity") <= 1
    assert match == {
        "repo": "org/my-api",
        "sourceId": TOKENS.key,
        "content": TOKENS.text,
        "metadata": {
            "type": "commit",
            "date": "2026-04-01T00:00:00Z",
            "author": "Ada",
            "sha": TOKENS.key,
            "trust": "outside",
        },
    }


async def test_what_was_retained_is_found_beside_the_repository(app: App, keystone: Keystone, call: Any) -> None:
    await project(app, "notes")
    stored = await call(
        "retain", bank_id="notes", content="Access tokens are issued at login.", metadata={"trust": "us"}
    )

    (match,) = await keystone("search_memory", projectSlugs=["notes"], query="how are access tokens issued at login?")

    assert (match["repo"], match["sourceId"], match["metadata"]["type"]) == ("notes", stored["memory_id"], "note")
    assert match["metadata"]["trust"] == "agent"


async def test_nothing_similar_gives_nothing(app: App, keystone: Keystone) -> None:
    await project(app, "my-api", TOKENS, CAKE)

    assert await keystone("search_memory", projectSlugs=["my-api"], query="volcanoes of Iceland") == []


@pytest.mark.parametrize("is_sharp", [False, True])
async def test_a_paraphrase_is_similar_and_the_unrelated_is_not(app: App, sharpened: Any, is_sharp: bool) -> None:
    await project(app, "my-api", TOKENS, CAKE)
    if is_sharp:
        await sharpened()

    given = {"query": "how are access tokens issued at login?", "banks": ["my-api"]}
    hits = (await dispatch.call(app.ctx(local_owner()), "memory.recall", given)).model_dump()["hits"]
    near = {hit["memory"]["document"]: hit["similarity"] for hit in hits}

    assert near[TOKENS.key] > 0.4
    assert near.get(CAKE.key, 0.0) < 0.2


async def test_an_exact_name_is_never_below_the_floor(app: App, keystone: Keystone) -> None:
    odd = Chunk("Notes: XQ-1177 zzyzx.", "a1")
    await project(app, "my-api", odd, CAKE)

    (match,) = await keystone("search_memory", projectSlugs=["my-api"], query="XQ-1177")

    assert match["content"] == odd.text
    assert match["similarity"] >= 0.5


async def test_at_most_twelve_come_back_best_first(app: App, keystone: Keystone) -> None:
    chunks = [Chunk(f"Access tokens are issued at login by service number {n}.", f"c{n}") for n in range(20)]
    await project(app, "my-api", *chunks)

    matches = await keystone("search_memory", projectSlugs=["my-api"], query="how are access tokens issued at login?")

    assert len(matches) == 12
    assert min(match["similarity"] for match in matches) >= 0.3


async def test_several_projects_answer_together_and_the_one_that_knows_leads(app: App, keystone: Keystone) -> None:
    worker = Chunk("The worker sends its access token with every request to the API.", "w1")
    await project(app, "kitchen", CAKE, Chunk("Peel the apples at home.", "docs/apples.md"))
    await project(app, "my-api", TOKENS, full_name="org/my-api")
    await project(app, "my-worker", worker, full_name="org/my-worker")

    slugs = ["kitchen", "my-worker", "my-api", "my-api"]
    matches = await keystone("search_memory", projectSlugs=slugs, query="how are access tokens issued at login?")

    assert [match["repo"] for match in matches][:1] == ["org/my-api"]
    assert {match["repo"] for match in matches} <= {"org/my-api", "org/my-worker"}
    assert len({match["content"] for match in matches}) == len(matches)


async def test_a_project_is_known_by_its_other_names_too(app: App, keystone: Keystone) -> None:
    await project(app, "my-api", TOKENS)
    await dispatch.call(app.ctx(local_owner()), "bank.alias", {"bank": "my-api", "name": "org-my-api"})

    by_alias = await keystone("search_memory", projectSlugs=["org-my-api", "my-api"], query="access tokens at login")
    status = await keystone("get_project_status", projectSlug="org-my-api")

    assert [match["sourceId"] for match in by_alias] == [TOKENS.key]
    assert status["slug"] == "my-api"


@pytest.mark.parametrize("tool", [name for name in catalog.DIALECTS["keystone"].tools if name != "list_projects"])
async def test_an_unknown_slug_is_named_and_nothing_runs(app: App, tool: str) -> None:
    await project(app, "my-api", TOKENS)
    every: dict[str, dict[str, Any]] = {
        "ask": {"projectSlugs": ["my-api", "nope"], "question": "tokens?"},
        "search_memory": {"projectSlugs": ["my-api", "nope", "nada"], "query": "tokens"},
        "get_project_status": {"projectSlug": "nope"},
    }

    with pytest.raises(NotFound, match="'nope'"):
        await asking(app)(tool, **every[tool])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"projectSlugs": [], "query": "x"}, "projectSlugs"),
        ({"projectSlugs": ["a"] * 21, "query": "x"}, "projectSlugs"),
        ({"projectSlugs": ["my-api"], "query": " \n"}, "query"),
        ({"projectSlugs": "my-api", "query": "x"}, "projectSlugs"),
        ({"projectSlugs": ["my-api"]}, "query"),
        ({"projectSlugs": ["../etc"], "query": "x"}, "projectSlugs"),
    ],
)
async def test_bad_arguments_are_told_in_words(keystone: Keystone, arguments: Any, named: str) -> None:
    with pytest.raises(BadInput, match=named):
        await keystone("search_memory", **arguments)


async def test_a_key_reaches_its_own_projects_only(app: App) -> None:
    await project(app, "mine", TOKENS)
    await project(app, "theirs", CAKE)
    narrow = asking(app, Principal(LOCAL_ORG, "key:n", frozenset({"memory:read"}), banks=frozenset({"mine"}), key=1))

    assert [one["slug"] for one in await narrow("list_projects")] == ["mine"]
    assert len(await narrow("search_memory", projectSlugs=["mine"], query="access tokens at login")) == 1
    for slugs in (["theirs"], ["mine", "theirs"], ["mine", "nobody"]):
        with pytest.raises(Forbidden):
            await narrow("search_memory", projectSlugs=slugs, query="plum cake")
    with pytest.raises(Forbidden):
        await narrow("get_project_status", projectSlug="theirs")


async def test_text_is_the_bare_list_and_structure_wraps_it(app: App) -> None:
    await project(app, "my-api", title="Ä")
    door = dispatch.Door(catalog.DIALECTS["keystone"])

    told = mcp.success(await dispatch.call_tool(app.ctx(local_owner()), door, "list_projects", {}))

    bare = json.loads(told.content[0].text)  # type: ignore[union-attr]  # we give nothing but text
    assert isinstance(bare, list)
    assert told.structured_content == {"result": bare}


async def test_long_matches_stop_before_they_flood_the_client(app: App, keystone: Keystone) -> None:
    page = "Access tokens are issued at login. " * 1_500
    await project(app, "my-api", *(Chunk(f"{page}{n}", f"c{n}") for n in range(4)))

    matches = await keystone("search_memory", projectSlugs=["my-api"], query="access tokens issued at login")

    assert 1 <= len(matches) <= 2


async def test_a_bank_and_banks_are_asked_together_and_each_within_reach(app: App) -> None:
    await project(app, "my-api", TOKENS)
    await project(app, "kitchen", CAKE)
    given: dict[str, Any] = {"query": "access tokens at login, plum cake", "bank": "kitchen", "banks": ["my-api"]}

    assert set(await recalled(app, **given)) == {TOKENS.key, CAKE.key}
    narrow = Principal(LOCAL_ORG, "key:n", frozenset({"memory:read"}), banks=frozenset({"my-api"}), key=1)
    with pytest.raises(Forbidden):
        await dispatch.call(app.ctx(narrow), "memory.recall", given)


async def test_searching_spends_no_tokens(app: App, keystone: Keystone) -> None:
    await project(app, "my-api", TOKENS, **DONE)
    await keystone("list_projects")
    await keystone("search_memory", projectSlugs=["my-api"], query="access tokens at login")
    await keystone("get_project_status", projectSlug="my-api")

    used = await app.store.read(1, lambda tx: tx.all("SELECT 1 AS one FROM usage WHERE org = 1"))
    spent = await app.store.read(1, lambda tx: tx.all("SELECT 1 AS one FROM budgets WHERE org = 1"))

    assert (used, spent) == ([], [])


async def recalled(app: App, **given: Any) -> dict[str, float]:
    """The similarity of everything that is found, by where it comes from."""
    hits = (await dispatch.call(app.ctx(local_owner()), "memory.recall", given)).model_dump()["hits"]
    return {hit["memory"]["document"]: hit["similarity"] for hit in hits}


async def test_what_only_its_words_brought_has_its_true_similarity_too(app: App) -> None:
    chunks = [Chunk(f"Zeppelin number {n} carried {n * 7} crates of tea.", f"c{n}") for n in range(120)]
    await project(app, "air", *chunks)

    few = await recalled(app, banks=["air"], query="which zeppelin carried tea?", budget="low", limit=50)
    many = await recalled(app, banks=["air"], query="which zeppelin carried tea?", limit=50)

    both = few.keys() & many.keys()
    assert len(few) == 50
    assert len(both) > 10
    assert {key: few[key] for key in both} == {key: many[key] for key in both}


async def test_without_vectors_the_words_tell_how_similar_something_is(app: App) -> None:
    await project(app, "my-api", TOKENS, CAKE)
    await app.store.write(1, lambda tx: tx.run("DELETE FROM vectors WHERE org = 1"))

    near = await recalled(app, banks=["my-api"], query="access tokens at login", min_similarity=0.3)

    assert set(near) == {TOKENS.key}
