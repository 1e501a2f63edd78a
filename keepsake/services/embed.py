"""Embedding: what a model of meaning offers, and the two that come with Keepsake."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from keepsake.core import errors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


#: The name that vectors of the packaged sharp model are stored under, known without loading it.
PACKAGED = "granite-30m-384"


class ModelBroken(errors.Unavailable):
    """The files of an embedding model are missing, or not the ones Keepsake was tested with."""


class Embedder(Protocol):
    """A model that turns texts into vectors whose cosine says how near their meanings are."""

    @property
    def name(self) -> str:
        """The name vectors of this model are stored under."""

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""

    @property
    def zero(self) -> float:
        """The cosine that unrelated texts reach."""

    @property
    def one(self) -> float:
        """The cosine of two texts that say the same."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Give one row per text, of length one; a blank text has a row of zeros, near to nothing."""


def static() -> Embedder:
    """Give the model that embeds a text in 0.1 ms, loaded at first use."""
    return loaded("keepsake.services.static")


def sharp() -> Embedder:
    """Give the model that tells meanings apart best, in 4 to 8 ms a query, loaded at first use."""
    return loaded("keepsake.services.granite")


def is_loaded(quick: bool) -> bool:
    """Whether one of the two models answers without being loaded first."""
    return ("keepsake.services.static" if quick else "keepsake.services.granite") in models


def rescale(cosine: float, model: Embedder) -> float:
    """Turn a model's raw cosine into a similarity from 0 (unrelated) to 1 (the same meaning)."""
    return min(1.0, max(0.0, (cosine - model.zero) / (model.one - model.zero)))


def encodable(text: str) -> str:
    """Put a question mark for each lone surrogate, on which the tokenizers would panic."""
    return text.encode("utf-8", "replace").decode("utf-8")


models: dict[str, Embedder] = {}
# One lock each: a question for the static model must not wait while the sharp one loads.
locks = {"keepsake.services.static": threading.Lock(), "keepsake.services.granite": threading.Lock()}


def loaded(module: str) -> Embedder:
    """Load a model once for all threads; its module is imported only now, for it brings numpy."""
    with locks[module]:
        if module not in models:
            load: Callable[[], Embedder] = importlib.import_module(module).load
            models[module] = load()
        return models[module]
