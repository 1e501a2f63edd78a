"""Static: one fixed vector per token, averaged; wordllama's table, read without its package."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from keepsake.services import embed, weights

TABLE = "weights/l2_supercat_256.safetensors"
TABLE_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
# Some 16,000 tokens: bounds the time and memory of one text, and later words hardly move a mean.
LONGEST = 65_536


class Static:
    """The mean of a text's token vectors, 256 numbers."""

    name = "wordllama-256"
    dim = 256
    # 95th percentile of questions with turns of other talks; 90th of questions with their answers (talk, commits).
    zero = 0.20
    one = 0.75

    def __init__(self, table: npt.NDArray[np.float16], tokenizer: Tokenizer) -> None:
        self.table = table
        self.tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Give one row per text, of length one; a blank text has a row of zeros, near to nothing."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                tokens = self.tokenizer.encode(embed.encodable(text[:LONGEST]), add_special_tokens=False)
                self.table[tokens.ids].sum(axis=0, dtype=np.float32, out=row)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, lengths, out=rows, where=lengths > 0)
        return rows


def load(folder: Path | None = None) -> Static:
    """Read the table and its tokenizer, from wordllama's installed package unless told otherwise."""
    folder = folder or weights.folder("wordllama")
    vocabulary = weights.opened(folder / TOKENIZER, TOKENIZER_SHA256)
    mapped = weights.opened(folder / TABLE, TABLE_SHA256)
    # A safetensors file: the header's length in 8 bytes, the header in JSON, the numbers.
    start = 8 + int.from_bytes(mapped[:8], "little")
    shape: list[int] = json.loads(mapped[8:start])["embedding.weight"]["shape"]
    table = np.frombuffer(mapped, dtype="<f2", offset=start).reshape(shape)
    tokenizer = Tokenizer.from_str(vocabulary[:].decode("utf-8"))
    return Static(table, tokenizer)
