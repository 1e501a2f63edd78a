"""The embedding model behind an endpoint that speaks the OpenAI protocol, in place of the packaged sharp one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from keepsake.core import text
from keepsake.core.lazy import lazy
from keepsake.services.endpoint import Endpoint, Failed, Json
from keepsake.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import openai

    from keepsake.services import calibration
else:
    np = lazy("numpy")
    calibration = lazy("keepsake.services.calibration")

#: Texts and tokens of one request: enough to be quick, little enough for a small server.
MOST_TEXTS, MOST_TOKENS = 32, 4_000
#: Characters of a text that are sent at first; a server that takes fewer shows it.
LONGEST = 8_000
#: A text this short is not too long for any model.
SHORTEST = 200
#: Answers that may mean that a text is too long: by the standard, by TEI, by vLLM, by llama.cpp.
TOO_MUCH = (400, 413, 422, 500)
PROBE = "a question"
#: A model measured twice differs by less than this.
SAME = 0.005
#: How long an endpoint is not asked again for a former model that it did not give.
FORMER_REST_S = 600.0


@dataclass(frozen=True, slots=True)
class Made:
    """Vectors of length one, a row per text, and the tokens that they cost."""

    rows: "npt.NDArray[np.float32]"
    tokens: int


class One(BaseModel):
    """The vector of one text."""

    index: int | None = None
    embedding: list[float] = Field(min_length=1)


class Used(BaseModel):
    """What the server counted."""

    prompt_tokens: int = Field(0, ge=0)


class Answer(BaseModel):
    """The part of a server's answer that we read."""

    data: list[One]
    usage: Used | None = None


@dataclass(slots=True)
class Remote(Endpoint):
    """An embedding model behind its endpoint."""

    #: How many numbers a vector shall have; 0 leaves it to the model.
    dimensions: int = 0
    #: What this server has shown to take.
    _longest: int = LONGEST
    #: Whether a former model is still the one that it was; None before it was measured again.
    _is_same: bool | None = field(default=None, compare=False)

    def known_as(self, dim: int) -> str:
        """The name its vectors are stored under: with another dimension it is another model."""
        return f"{self.model}@{dim}"

    def is_known_as(self, name: str) -> bool:
        """Whether vectors of that name are this model's, whatever their dimension."""
        return name.rpartition("@")[0] == self.model

    async def embed(self, texts: Sequence[str], patience: float = 1.0) -> Made:
        """Give one row per text, of length one; a blank text has a row of zeros, near to nothing."""
        made = [await self._batch(batch, patience) for batch in batches(texts, self._longest)]
        if len({part.rows.shape[1] for part in made}) > 1:
            raise Failed(f"{self.told} answered with vectors of different length.", True)
        rows = np.concatenate([part.rows for part in made])
        rows[[n for n, told in enumerate(texts) if not told.strip()]] = 0
        return Made(rows, sum(part.tokens for part in made))

    async def scale(self, patience: float = 6.0) -> "calibration.Scale":
        """Measure what this model's cosines mean."""
        made = await self.embed(calibration.texts(), patience)
        return calibration.measured(made.rows, self.model)

    async def embed_as(self, dim: int, zero: float, one: float, texts: Sequence[str]) -> Made:
        """Embed with a model that was used before; Failed when what answers to its name is another one by now."""
        if self._is_same is None:
            now = await self.scale(patience=1)
            self._is_same = abs(now.zero - zero) < SAME and abs(now.one - one) < SAME
        made = await self.embed(texts)
        if not self._is_same or made.rows.shape[1] != dim:
            raise Failed(f"{self.told} is not the one that it was.")
        return made

    async def _batch(self, batch: list[str], patience: float) -> Made:
        try:
            return await self._sent(batch, patience)
        except Failed as error:
            if error.status not in TOO_MUCH:
                raise
        if len(batch) > 1:
            made = [await self._batch([told], patience) for told in batch]
            return Made(np.concatenate([part.rows for part in made]), sum(part.tokens for part in made))
        if len(batch[0]) > SHORTEST:
            shorter = batch[0][: len(batch[0]) // 2]
            once = await self._batch([shorter], patience)
            self._longest = min(self._longest, max(SHORTEST, len(shorter)))
            return once
        # Where another text is taken, this one is at fault: words alone will find it.
        other = await self._sent([PROBE], patience)
        return Made(np.zeros_like(other.rows), other.tokens)

    async def _sent(self, batch: list[str], patience: float) -> Made:
        body: Json = {"model": self.model, "input": batch}
        if self.dimensions:
            body["dimensions"] = self.dimensions

        async def once(client: "openai.AsyncOpenAI") -> Made:
            answer = Answer.model_validate_json(await self._posted(client, "/embeddings", body))
            used = answer.usage.prompt_tokens if answer.usage else 0
            return Made(_rows(answer, len(batch), self.dimensions), used or sum(text.cost(told) for told in batch))

        return await self.asked(once, patience)


def _rows(answer: Answer, count: int, dimensions: int) -> "npt.NDArray[np.float32]":
    """The vectors in the order of the texts; ValueError when they cannot be used."""
    places = [n if one.index is None else one.index for n, one in enumerate(answer.data)]
    if sorted(places) != list(range(count)):
        raise ValueError("not one vector for each text")
    ordered = [one.embedding for _, one in sorted(zip(places, answer.data, strict=True), key=lambda pair: pair[0])]
    if len({len(vector) for vector in ordered} | ({dimensions} if dimensions else set())) != 1:
        raise ValueError("vectors of the wrong length")
    rows = np.array(ordered, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ValueError("numbers that are none")
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


def batches(texts: Sequence[str], longest: int) -> Iterator[list[str]]:
    """Texts in their order, cut to what the server takes, in requests of bounded size."""
    batch: list[str] = []
    size = 0
    for told in texts:
        # Servers refuse a blank text; its row is put right afterwards.
        sent = told[:longest] if told.strip() else PROBE
        if batch and (len(batch) == MOST_TEXTS or size + text.cost(sent) > MOST_TOKENS):
            yield batch
            batch, size = [], 0
        batch.append(sent)
        size += text.cost(sent)
    if batch:
        yield batch


@lru_cache(maxsize=8)
def _made(base_url: str, api_key: str, model: str, timeout: int, dimensions: int) -> Remote:
    return Remote(base_url, api_key, model, timeout, dimensions=dimensions)


def configured(settings: Settings) -> Remote | None:
    """The embedding model that the settings name; None when they name none, and then nothing is ever asked."""
    if not (settings.embedding_base_url and settings.embedding_model):
        return None
    return _made(
        *_address(settings), settings.embedding_model, settings.embedding_timeout, settings.embedding_dimensions
    )


def former(settings: Settings, name: str) -> Remote | None:
    """The same endpoint under the name of another model, whose vectors are still in use; None when it cannot be one."""
    model, _, dim = name.rpartition("@")
    if not (settings.embedding_base_url and model):
        return None
    dimensions = int(dim) if settings.embedding_dimensions else 0
    made = _made(*_address(settings), model, settings.embedding_timeout, dimensions)
    made.rest_s = FORMER_REST_S
    return made


def _address(settings: Settings) -> tuple[str, str]:
    return settings.embedding_base_url, settings.embedding_api_key
