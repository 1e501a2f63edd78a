"""The reranker: an endpoint that reads a question beside each text and says how well they fit, where configured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, BaseModel, Field, TypeAdapter

from keepsake.core import text
from keepsake.core.lazy import lazy
from keepsake.services.endpoint import Endpoint, Json
from keepsake.settings import Settings

if TYPE_CHECKING:
    import openai
else:
    openai = lazy("openai")

#: Characters of a text that are sent: the models read some 500 tokens of question and text together.
LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Judged:
    """How well each text answers, 0 to 1, in the order in which they were sent, and what that cost."""

    scores: list[float]
    tokens: int


class One(BaseModel):
    """The judgement of one text: as Cohere and Jina call it, or as TEI does."""

    index: int = Field(ge=0)
    score: float = Field(validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False)


class Used(BaseModel):
    """What the server counted, where it tells."""

    total_tokens: int = Field(0, ge=0)


class Answer(BaseModel):
    """The part of a server's answer that we read."""

    results: list[One]
    usage: Used | None = None


ANSWER: TypeAdapter[Answer | list[One]] = TypeAdapter(Answer | list[One])


@dataclass(slots=True)
class Reranker(Endpoint):
    """A reranking model behind its endpoint."""

    #: What this server has shown to call the texts: TEI has a name of its own.
    _texts: Literal["documents", "texts"] = "documents"

    async def judged(self, query: str, texts: Sequence[str]) -> Judged:
        """Ask how well each text answers the question."""
        query, sent = query[:LONGEST], [told[:LONGEST] for told in texts]

        async def once(client: "openai.AsyncOpenAI") -> Judged:
            made = ANSWER.validate_json(await self._once(client, query, sent))
            answer = made if isinstance(made, Answer) else Answer(results=made)
            used = answer.usage.total_tokens if answer.usage else 0
            return Judged(_scores(answer.results, len(sent)), used or sum(map(text.cost, [query, *sent])))

        return await self.asked(once)

    async def _once(self, client: "openai.AsyncOpenAI", query: str, texts: list[str]) -> bytes:
        body: Json = {"query": query, self._texts: texts}
        if self.model:
            body["model"] = self.model
        try:
            return await self._posted(client, "/rerank", body)
        except openai.APIStatusError as error:
            if self._texts == "texts" or error.status_code not in (400, 422) or "texts" not in str(error):
                raise
        self._texts = "texts"
        return await self._once(client, query, texts)


def _scores(results: list[One], count: int) -> list[float]:
    """The scores in the order of the texts; ValueError when one is missing or judged twice."""
    found = {one.index: one.score for one in results}
    if sorted(found) != list(range(count)) or len(results) != count:
        raise ValueError("not one score for each text")
    scores = [found[n] for n in range(count)]
    # Some servers give the model's raw number, which has no bounds.
    return scores if all(0 <= score <= 1 for score in scores) else [_squashed(score) for score in scores]


def _squashed(score: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))


@lru_cache(maxsize=8)
def _made(base_url: str, api_key: str, model: str, timeout: int) -> Reranker:
    return Reranker(base_url, api_key, model, timeout)


def configured(settings: Settings) -> Reranker | None:
    """The reranker that the settings name; None when they name none, and then nothing is ever asked."""
    if not settings.rerank_base_url:
        return None
    return _made(settings.rerank_base_url, settings.rerank_api_key, settings.rerank_model, settings.rerank_timeout)
