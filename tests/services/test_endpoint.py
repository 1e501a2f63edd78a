"""Embeddings from an endpoint over real HTTP: what it is sent, what goes wrong, what its numbers mean."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from keepsake import settings
from keepsake.core.errors import Misconfigured
from keepsake.services import calibration, embed, remote
from keepsake.services.endpoint import Failed
from keepsake.services.remote import Remote
from tests.endpoint_server import NAN, Line, Models, serving, vectors
from tests.llm_server import Fails, Hangs, Raw, Redirects

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"
TEXTS = ["Ada likes tea", "The printer is out of paper"]


@pytest.fixture
def models() -> Iterator[Models]:
    with serving() as models:
        yield models


def model(models: Models, timeout: float = 20.0, key: str = KEY, dimensions: int = 0) -> Remote:
    return Remote(models.url, key, "small", timeout, pause_s=0.01, dimensions=dimensions)


async def test_each_text_gets_its_row_of_length_one_and_the_tokens_are_told(models: Models) -> None:
    made = await model(models).embed(TEXTS)
    again = await model(models).embed(TEXTS[::-1])

    assert made.rows.shape == (2, 64) and made.rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(made.rows, axis=1), 1)
    assert np.array_equal(made.rows, again.rows[::-1])
    assert made.tokens == 3 + 6
    assert models.asked[0] == {"model": "small", "input": TEXTS}


async def test_a_server_that_does_not_count_is_counted_by_length(models: Models) -> None:
    models.counts = False

    assert (await model(models).embed(["Ada likes tea"])).tokens == 4


async def test_a_dimension_is_asked_for_where_one_is_wanted(models: Models) -> None:
    made = await model(models, dimensions=16).embed(TEXTS)

    assert made.rows.shape == (2, 16)
    assert models.asked[0]["dimensions"] == 16


async def test_a_blank_text_is_near_to_nothing_and_no_server_is_sent_one(models: Models) -> None:
    made = await model(models).embed(["Ada likes tea", " \n"])

    assert not made.rows[1].any() and made.rows[0].any()
    assert all(text.strip() for text in models.texts)


async def test_requests_are_bounded_in_texts_and_tokens(models: Models) -> None:
    texts = [f"short {n}" for n in range(70)] + [f"{n} " + "long " * 1_500 for n in range(4)]

    made = await model(models).embed(texts)

    sizes = [(len(body["input"]), sum(len(text) // 4 for text in body["input"])) for body in models.asked]
    assert made.rows.shape == (74, 64)
    assert [texts for body in models.asked for texts in body["input"]] == texts
    assert all(count <= remote.MOST_TEXTS and tokens <= remote.MOST_TOKENS for count, tokens in sizes)


async def test_a_text_that_is_too_long_for_the_server_is_cut_and_that_is_remembered(models: Models) -> None:
    models.longest = 2_500
    asked = model(models)

    made = await asked.embed(["Ada likes tea", "words " * 1_000])
    models.asked.clear()
    await asked.embed(["words " * 1_000])

    assert made.rows.any(axis=1).all()
    assert [len(text) for text in models.texts] == [1_500]


async def test_a_text_that_is_refused_however_short_stops_no_other(models: Models) -> None:
    def picky(body: dict[str, object]) -> object:
        return {"data": [{"index": 0, "embedding": [1.0, 0.0]}]}

    models.will(Fails(400), picky, Fails(400), picky)

    made = await model(models).embed(["Ada likes tea", "\U0001f600"])

    assert made.rows.tolist() == [[1.0, 0.0], [0.0, 0.0]]


async def test_a_busy_or_broken_server_is_asked_again(models: Models) -> None:
    models.will(Fails(429, {"retry-after": "0.01"}), Fails(503))

    made = await model(models).embed(TEXTS)

    assert (len(made.rows), len(models.asked)) == (2, 3)


async def test_a_server_that_does_not_answer_in_time_is_given_up(models: Models) -> None:
    models.will(Hangs())

    with pytest.raises(Failed, match=r"did not answer within 0.3 s"):
        await model(models, timeout=0.3).embed(TEXTS)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Failed, match="cannot be reached"):
        await Remote("http://127.0.0.1:9/v1", KEY, "gone", 20, pause_s=0.01).embed(TEXTS)


@pytest.mark.parametrize(
    "line",
    [
        Raw("{not json"),
        Raw("{}"),
        Raw('{"data": []}'),
        Raw('{"data": [{"index": 0, "embedding": "AACAPw=="}, {"index": 1, "embedding": "AACAPw=="}]}'),
        vectors([1.0, 2.0]),
        vectors([1.0, 2.0], [1.0, 2.0], [1.0, 2.0]),
        vectors([1.0, 2.0], [1.0]),
        vectors([1.0, 2.0], [NAN, 1.0]),
        vectors([1.0, 2.0], [float("inf"), 1.0]),
        vectors([1.0, 2.0], [None, 1.0]),
        vectors([], []),
        lambda body: {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
    ],
)
async def test_an_answer_that_cannot_be_used_is_told_as_such(models: Models, line: Line) -> None:
    models.will(line)

    with pytest.raises(Failed, match="something that is no answer"):
        await model(models).embed(TEXTS)


async def test_another_length_than_was_asked_for_is_refused(models: Models) -> None:
    models.will(vectors([1.0, 2.0], [2.0, 1.0]))

    with pytest.raises(Failed, match="something that is no answer"):
        await model(models, dimensions=3).embed(TEXTS)


async def test_a_refusal_never_tells_the_key_or_what_was_sent(models: Models) -> None:
    models.will(Fails(401, message=f"wrong key {KEY} for: Ada likes tea"))

    with pytest.raises(Failed) as failed:
        await model(models).embed(TEXTS)

    assert str(failed.value) == "The model small refused with status 401."
    assert KEY not in repr(model(models))


async def test_nothing_of_the_environment_is_sent_and_no_redirect_followed(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-the-environment")
    with serving() as other:
        await model(models).embed(TEXTS)
        await model(models, key="").embed(TEXTS)
        models.will(Redirects(f"{other.url}/embeddings"))
        with pytest.raises(Failed):
            await model(models).embed(TEXTS)

    assert [headers.get("authorization") for headers in models.headers[:2]] == [f"Bearer {KEY}", None]
    assert "from-the-environment" not in str(models.headers)
    assert other.asked == []


async def test_who_can_do_without_it_leaves_a_failing_endpoint_alone_for_a_while(models: Models) -> None:
    asked = model(models)
    models.is_down = True
    first = await asked.attempted("embedding", lambda: asked.embed(TEXTS))
    models.is_down = False
    tried = len(models.asked)

    second = await asked.attempted("embedding", lambda: asked.embed(TEXTS))

    assert (first, second, len(models.asked)) == (None, None, tried)


def test_the_measured_scale_is_near_the_one_that_the_packaged_models_have_from_real_pairs() -> None:
    for packaged in (embed.static(), embed.sharp()):
        scale = calibration.measured(packaged.embed(calibration.texts()), packaged.name)

        assert abs(scale.zero - packaged.zero) < 0.06
        assert abs(scale.one - packaged.one) < 0.15


def test_no_text_of_the_pairs_stands_in_two_of_them() -> None:
    texts = sorted(calibration.texts())

    assert len(texts) == 40
    assert all(one != other for one, other in pairwise(texts))


def test_a_model_that_tells_nothing_apart_is_refused() -> None:
    with pytest.raises(Failed, match="does not tell answers from unrelated texts"):
        calibration.measured(np.ones((40, 2), np.float32), "constant")


def test_nothing_is_configured_by_default() -> None:
    given = settings.load({"OPENAI_API_KEY": "sk", "OPENAI_BASE_URL": "https://api.example/v1"})

    assert remote.configured(given) is None


def test_a_model_is_made_from_the_settings() -> None:
    made = remote.configured(
        settings.load(
            {
                "KEEPSAKE_EMBEDDING_BASE_URL": "http://127.0.0.1:1234/v1/",
                "KEEPSAKE_EMBEDDING_API_KEY": KEY,
                "KEEPSAKE_EMBEDDING_MODEL": "small",
                "KEEPSAKE_EMBEDDING_DIMENSIONS": "256",
                "KEEPSAKE_EMBEDDING_TIMEOUT": "5",
            }
        )
    )

    assert made == Remote("http://127.0.0.1:1234/v1", KEY, "small", 5, dimensions=256)
    assert made.known_as(256) == "small@256"


@pytest.mark.parametrize(
    "environment",
    [
        {"KEEPSAKE_EMBEDDING_BASE_URL": "http://127.0.0.1:1234/v1"},
        {"KEEPSAKE_EMBEDDING_MODEL": "small"},
        {"KEEPSAKE_EMBEDDING_BASE_URL": "ftp://host/v1", "KEEPSAKE_EMBEDDING_MODEL": "small"},
    ],
)
def test_half_a_model_or_a_wrong_address_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(Misconfigured, match="KEEPSAKE_EMBEDDING_BASE_URL"):
        settings.load(environment)
