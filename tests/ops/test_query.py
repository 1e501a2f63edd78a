"""Search: operators mean the same on both stores, questions find things, projects stay apart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsake.context import App
from keepsake.core import query
from keepsake.core.clock import DAY
from keepsake.core.errors import BadInput, Forbidden
from keepsake.core.principal import local_owner
from keepsake.core.words import lexemes
from keepsake.ops import searching
from keepsake.store import banks, search
from keepsake.store.engine import Match, Row, Tx
from tests.ops.observing import NOON, Kiro, Seen, app, asking, kiro, observed, titles

__all__ = ["app", "kiro"]
pytestmark = pytest.mark.anyio

JWT = Seen(
    "Modified auth.ts at src/auth.ts — updating 45 lines for JWT token validation",
    title="Modified auth.ts",
    parts={
        "subtitle": "edit src/auth.ts",
        "facts": ["path: src/auth.ts", "lines: 45"],
        "concepts": ["security", "api", "middleware"],
        "files_read": ["src/routes.ts"],
        "files_modified": ["src/auth.ts"],
    },
)
OAUTH = Seen("Authentication through OAuth was tried", title="OAuth login", subtype="research")
TESTS = Seen("Ran npm test — 47 tests passed (success)", title="npm test", subtype="command")
TABS = Seen("Use tabs in Makefiles, validation of tokens is elsewhere", title="Tabs", kind="decision")
SUMMARY = Seen(
    "Authentication was implemented. Modified auth.ts, Modified routes.ts",
    kind="summary",
    parts={"request": "my-api — authentication implementation", "completed": "Modified auth.ts, Modified routes.ts"},
)
EVERYTHING = (JWT, OAUTH, TESTS, TABS, SUMMARY)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ('"JWT token validation"', ["Modified auth.ts"]),
        ('"token JWT"', []),
        ("authentication OR npm", ["npm test", "OAuth login"]),
        ("tokens AND jwt", ["Modified auth.ts"]),
        ("tokens NOT jwt", ["Tabs"]),
        ("authenti*", ["OAuth login"]),
        ("title:auth*", ["Modified auth.ts"]),
        ("title:oauth", ["OAuth login"]),
        ("title:security", []),
        ("concepts:security", ["Modified auth.ts"]),
        ("facts:lines", ["Modified auth.ts"]),
        ("files:routes.ts", ["Modified auth.ts"]),
        ("files:npm", []),
        ("narrative:passed", ["npm test"]),
        ("text:middleware", []),
        ("(npm OR oauth) AND passed", ["npm test"]),
        ("concepts:(security OR speed) NOT title:oauth", ["Modified auth.ts"]),
    ],
)
async def test_operators_find_exactly_what_fits(app: App, kiro: Kiro, asked: str, expected: list[str]) -> None:
    await observed(app, *EVERYTHING)

    found = await kiro("search", query=asked)

    assert sorted(titles(found["observations"])) == sorted(expected)


async def test_a_neighbours_words_do_not_make_a_memory_fit(app: App, kiro: Kiro) -> None:
    await observed(
        app,
        Seen("The walrus sleeps", title="first", tags=("zoo",)),
        Seen("The penguin swims", title="second", tags=("zoo",)),
    )

    assert titles((await kiro("search", query="walrus OR nothing"))["observations"]) == ["first"]
    assert titles((await kiro("search", query="swims NOT walrus"))["observations"]) == ["second"]


@pytest.mark.parametrize(
    "asked",
    [
        "JWT authentication middleware",
        "how did we handle token validation in the API last month?",
        "what about security",
        "auth.ts",
        'where is "the JWT token" thing of the middleware',
    ],
)
async def test_a_question_finds_things_though_not_every_word_is_there(app: App, kiro: Kiro, asked: str) -> None:
    await observed(app, *EVERYTHING)

    found = await kiro("search", query=asked)

    assert "Modified auth.ts" in titles(found["observations"])


@pytest.mark.parametrize(
    "asked", ['"unterminated jwt', "AND jwt", "jwt AND", "NOT jwt", "(jwt", "jwt:::", "*jwt*", "^jwt"]
)
async def test_a_malformed_query_is_asked_as_a_question(app: App, kiro: Kiro, asked: str) -> None:
    await observed(app, *EVERYTHING)

    found = await kiro("search", query=asked)

    assert titles(found["observations"])[0] == "Modified auth.ts"


async def test_an_observation_has_every_field(app: App, kiro: Kiro) -> None:
    (id, *_) = await observed(app, *EVERYTHING)

    (only,) = (await kiro("search", query="jwt AND middleware", project="my-api"))["observations"]

    assert only == {
        "id": id,
        "type": "file-write",
        "title": "Modified auth.ts",
        "subtitle": "edit src/auth.ts",
        "text": None,
        "narrative": "Modified auth.ts at src/auth.ts — updating 45 lines for JWT token validation",
        "facts": "path: src/auth.ts\nlines: 45",
        "concepts": "security, api, middleware",
        "files_read": "src/routes.ts",
        "files_modified": "src/auth.ts",
        "project": "my-api",
        "created_at": "2026-03-01T12:00:00.000Z",
        "created_at_epoch": NOON // 1000,
        "is_stale": 0,
        "discovery_tokens": 28,
    }


async def test_a_summary_has_every_field_and_stands_apart(app: App, kiro: Kiro) -> None:
    ids = await observed(app, *EVERYTHING)

    found = await kiro("search", query="authentication AND implement*")

    assert found["observations"] == []
    assert found["summaries"] == [
        {
            "id": ids[-1],
            "session_id": "",
            "project": "my-api",
            "request": "my-api — authentication implementation",
            "investigated": None,
            "learned": None,
            "completed": "Modified auth.ts, Modified routes.ts",
            "next_steps": None,
            "notes": None,
            "created_at": "2026-03-01T12:00:00.000Z",
            "created_at_epoch": NOON // 1000,
        }
    ]


async def test_what_was_not_observed_has_its_text_too(app: App, kiro: Kiro) -> None:
    await observed(app, *EVERYTHING)

    (found,) = (await kiro("search", query="makefiles AND tabs"))["observations"]

    assert (found["type"], found["text"], found["narrative"]) == ("decision", TABS.text, TABS.text)


@pytest.mark.parametrize("asked", ["the deployment", "deployment AND service"])
async def test_each_category_has_its_own_limit(app: App, kiro: Kiro, asked: str) -> None:
    await observed(app, *(Seen(f"deployment {n} of service s{n}", title=f"d{n}") for n in range(30)))
    await observed(app, *(Seen(f"deployment of a service, session {n}", kind="summary") for n in range(15)))

    usual = await kiro("search", query=asked)
    more = await kiro("search", query=asked, limit=12)

    assert (len(usual["observations"]), len(usual["summaries"])) == (10, 10)
    assert (len(more["observations"]), len(more["summaries"])) == (12, 12)


@pytest.mark.parametrize("limit", [0, 51, -1])
async def test_a_limit_beyond_its_bounds_is_refused(kiro: Kiro, limit: int) -> None:
    with pytest.raises(BadInput, match="limit"):
        await kiro("search", query="x", limit=limit)


@pytest.mark.parametrize("asked", ["pelican facts", "pelican AND bird"])
async def test_projects_are_searched_together_or_alone(app: App, kiro: Kiro, asked: str) -> None:
    await observed(app, Seen("pelican bird one", title="a"), bank="a")
    await observed(app, Seen("pelican bird two", title="b"), bank="b")

    assert sorted(titles((await kiro("search", query=asked))["observations"])) == ["a", "b"]
    assert titles((await kiro("search", query=asked, project="b"))["observations"]) == ["b"]
    assert await kiro("search", query=asked, project="nowhere") == {"observations": [], "summaries": []}
    assert titles((await asking(app, bank="a")("search", query=asked))["observations"]) == ["a"]


async def test_a_project_out_of_reach_is_neither_searched_nor_named(app: App) -> None:
    await observed(app, Seen("pelican bird one", title="a"), bank="a")
    await observed(app, Seen("pelican bird two", title="b"), bank="b")
    narrow = asking(app, local_owner().narrowed(banks=frozenset({"b", "c"})))

    found = [await narrow("search", query=asked) for asked in ("pelican", "pelican OR bird")]

    assert [titles(one["observations"]) for one in found] == [["b"], ["b"]]
    assert (await narrow("search", query="pelican", project="c"))["observations"] == []
    with pytest.raises(Forbidden):
        await narrow("search", query="pelican", project="a")


async def test_of_many_projects_those_that_know_the_words_are_asked(app: App, kiro: Kiro) -> None:
    for n in range(20):
        await observed(app, Seen(f"nothing of note {n}", title=f"n{n}"), bank=f"bank-{n}")
    await observed(app, Seen("the flamingo is pink", title="found", at=NOON - 400 * DAY), bank="bank-3")

    assert titles((await kiro("search", query="which flamingo is pink?"))["observations"])[0] == "found"


async def test_what_was_superseded_is_not_found(app: App, kiro: Kiro) -> None:
    ids = await observed(app, *EVERYTHING)
    await app.store.write(
        1, lambda tx: tx.run("UPDATE memories SET superseded_at = :at WHERE org = 1 AND id = :id", at=NOON, id=ids[0])
    )

    found = [await kiro("search", query=asked) for asked in ("jwt AND middleware", "JWT middleware")]

    assert ["Modified auth.ts" in titles(one["observations"]) for one in found] == [False, False]


async def test_what_fits_is_found_behind_many_that_only_might(app: App, kiro: Kiro) -> None:
    await observed(app, Seen("alpha beta", title="found"))
    await observed(app, *(Seen("beta alpha", title=f"n{n}") for n in range(searching.CHUNK + 10)))

    assert titles((await kiro("search", query='"alpha beta"'))["observations"]) == ["found"]


async def test_what_leaves_the_index_leaves_no_word_behind(app: App) -> None:
    ids = await observed(app, *EVERYTHING)

    async def body(tx: Tx) -> list[Row]:
        (bank,) = await banks.listed(tx, 1)
        before = await tx.all("SELECT term FROM terms WHERE org = 1 AND term = 'secur'")
        await search.remove(tx, 1, bank.id, ids)
        return [*before, *await tx.all("SELECT term, docs, total FROM terms WHERE org = 1 AND term <> ''")]

    assert await app.store.write(1, body) == [{"term": "secur"}]


async def test_another_org_matches_nothing(app: App) -> None:
    await observed(app, *EVERYTHING)
    (bank,) = await app.store.read(1, lambda tx: banks.listed(tx, 1))
    match = Match(1, bank.id, query.Phrase(("jwt",)), search.prefix(bank.id), False, 2**53, 10)

    assert len(await app.store.read(1, lambda tx: tx.match(match))) == 1
    assert await app.store.read(2, lambda tx: tx.match(replace(match, org=2))) == []
    if app.store.engine.name == "postgres":
        assert await app.store.read(2, lambda tx: tx.match(match)) == []


WORDS = st.sampled_from(
    [
        *("jwt", "token*", "tokens", "auth*", "title:auth*", "concepts:security", "npm", "test*", "OAuth", "files:src"),
        *('"jwt token"', '"token validation"', '"JWT token validation"', "narrative:passed", "facts:lines"),
        *("the", "valid*"),
    ]
)
OPERATORS = st.sampled_from([" AND ", " OR ", " NOT ", " AND NOT "])
ASKED = st.lists(st.tuples(WORDS, OPERATORS), min_size=1, max_size=5).map(
    lambda pairs: "".join(word + operator for word, operator in pairs[:-1]) + pairs[-1][0]
)


def fitting(asked: str) -> list[str] | None:
    """What should be found, worked out without a store."""
    meant = query.parsed(asked)
    if meant is None or meant.is_loose:
        return None
    return sorted(one.title for one in EVERYTHING[:-1] if query.holds(meant.tree, document(one)))


def document(seen: Seen) -> query.Document:
    parts = seen.parts or {}
    texts = {"title": seen.title, "body": seen.text, "concepts": _lines(parts.get("concepts"))}
    texts |= {"facts": _lines(parts.get("facts"))}
    texts |= {"files": _lines(parts.get("files_read")) + "\n" + _lines(parts.get("files_modified"))}
    return query.Document({name: f" {' '.join(lexemes(told))} " for name, told in texts.items()}, texts)


def _lines(part: object) -> str:
    return "\n".join(part) if isinstance(part, Sequence) and part else ""


async def test_both_stores_find_what_fits_and_nothing_else(app: App, kiro: Kiro) -> None:
    await observed(app, *EVERYTHING)
    tried: dict[str, Any] = {}

    @given(ASKED)
    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    def collect(asked: str) -> None:
        tried[asked] = fitting(asked)

    collect()
    wrong = {}
    for asked, expected in tried.items():
        found = sorted(titles((await kiro("search", query=asked))["observations"]))
        if expected is not None and found != expected:
            wrong[asked] = (found, expected)

    assert len([one for one in tried.values() if one is not None]) > 20
    assert wrong == {}


async def test_no_text_is_too_strange_to_search_for(app: App, kiro: Kiro) -> None:
    await observed(app, *EVERYTHING)
    tried: list[str] = []

    @given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40))
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    def collect(asked: str) -> None:
        tried.extend(
            told for told in (asked, f'jwt AND "{asked}"', f"title:{asked}*", f"{asked}* OR x") if told.strip()
        )

    collect()
    for asked in tried:
        found = await kiro("search", query=asked)

        assert found.keys() == {"observations", "summaries"}
