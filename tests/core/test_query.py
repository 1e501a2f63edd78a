"""Operators: what each means, how they bind, and what is no question of operators at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsake.core import query
from keepsake.core.query import FIELDS, Document, Either, Every, Node, Phrase, Prefix, Without
from keepsake.core.words import lexemes

AUTH, MIDDLEWARE, OAUTH = Phrase(("authent",)), Phrase(("middlewar",)), Phrase(("oauth",))


def tree(asked: str) -> Node:
    found = query.parsed(asked)
    assert found is not None
    return found.tree


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ('"JWT token validation"', Phrase(("jwt", "token", "valid"))),
        ("authentication AND middleware", Every((AUTH, MIDDLEWARE))),
        ("authentication OR middleware", Either((AUTH, MIDDLEWARE))),
        ("authentication NOT OAuth", Without(AUTH, OAUTH)),
        ("getUserName OR authentication", Either((Phrase(("getusernam",)), AUTH))),
        ("authentication AND NOT oauth", Without(AUTH, OAUTH)),
        ("authen*", Prefix("authen")),
        ("title:auth*", Prefix("auth", ("title",))),
        ("concepts:security", Phrase(("secur",), ("concepts",))),
        ("facts:security", Phrase(("secur",), ("facts",))),
        ("narrative:security", Phrase(("secur",), ("body",))),
        ("TEXT:security", Phrase(("secur",), ("body",))),
        ("files_read:src/auth.ts", Phrase(("src", "auth", "ts"), ("files",))),
        (
            "title: (authentication OR oauth)",
            Either((Phrase(("authent",), ("title",)), Phrase(("oauth",), ("title",)))),
        ),
        ("src/auth*", Every((Phrase(("src",)), Prefix("auth")))),
        ('"the token" AND authentication', Every((Phrase(("token",)), AUTH))),
        ("the OR authentication", AUTH),
    ],
)
def test_an_operator_means_what_fts5_means(asked: str, meant: Node) -> None:
    assert tree(asked) == meant


def test_words_side_by_side_bind_closest_then_not_then_and_then_or() -> None:
    assert tree("authentication middleware NOT oauth") == Without(Every((AUTH, MIDDLEWARE)), OAUTH)
    assert tree("authentication AND middleware NOT oauth") == Every((AUTH, Without(MIDDLEWARE, OAUTH)))
    assert tree("oauth OR authentication AND middleware") == Either((OAUTH, Every((AUTH, MIDDLEWARE))))
    assert tree("(oauth OR authentication) AND middleware") == Every((Either((OAUTH, AUTH)), MIDDLEWARE))


@pytest.mark.parametrize(
    "asked",
    [
        "how do we authenticate users?",
        "authentication and middleware or not",
        "",
        '"unterminated',
        "AND authentication",
        "authentication AND",
        "NOT oauth",
        "the NOT oauth",
        "(authentication AND oauth",
        "authentication) AND oauth",
        "*",
        "au*th AND x",
        "title:",
        "https://example.com/a?b=c",
        "auth(user)",
        "(" * 40 + "a AND b" + ")" * 40,
        " AND ".join(["word"] * 100),
        '"the" OR "and"',
    ],
)
def test_anything_else_is_asked_as_it_stands(asked: str) -> None:
    assert query.parsed(asked) is None


def test_only_a_sentence_with_a_quotation_may_be_asked_again_as_one() -> None:
    loose = {asked: found.is_loose for asked in LOOSE if (found := query.parsed(asked))}

    assert loose == LOOSE


LOOSE = {
    'why did "the build" fail': True,
    '"jwt token" NOT oauth middleware': False,
    "a1 AND b1": False,
    "auth*": False,
}


def document(**texts: str) -> Document:
    whole = dict.fromkeys(FIELDS, "") | texts
    return Document({name: f" {' '.join(lexemes(text))} " for name, text in whole.items()}, whole)


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ("authenticating AND users", True),
        ('"users authenticate"', False),
        ('"authenticate the users"', True),
        ("authenti*", True),
        ("authenticates*", False),
        ("title:authenticate OR concepts:security", True),
        ("title:security", False),
        ("authentication NOT secur*", False),
        ("th*", False),
    ],
)
def test_a_memory_fits_or_does_not(asked: str, fits: bool) -> None:
    told = document(body="Authentication of the users happens here", concepts="security")

    assert query.holds(tree(asked), told) is fits


@pytest.mark.parametrize("word", ["sensibility", "relational", "happiness", "authentication", "replacement", "tests"])
def test_every_beginning_of_a_word_leads_to_its_stem(word: str) -> None:
    (stem,) = lexemes(word)

    missed = [
        word[:n]
        for n in range(3, len(word) + 1)
        if not stem.startswith(word[:n]) and stem not in Prefix(word[:n]).stems
    ]

    assert missed == []


@given(st.text(st.sampled_from('ab AND OR NOT"()*:title concepts-+^{}'), max_size=60) | st.text(max_size=60))
def test_no_text_breaks_the_reader(asked: str) -> None:
    found = query.parsed(asked)

    if found is not None:
        query.holds(found.tree, document(title=asked))
        query.telling(found.tree)
