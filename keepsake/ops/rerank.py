"""The last look at what a search found: a model that reads question and text together, where one is configured."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepsake.context import App, Ctx
from keepsake.core import secrets
from keepsake.core.lazy import lazy

if TYPE_CHECKING:
    from keepsake.ops import budget
    from keepsake.services import rerank
    from keepsake.services.rerank import Reranker
else:
    budget = lazy("keepsake.ops.budget")
    rerank = lazy("keepsake.services.rerank")

#: Candidates that the reranker judges; more cost time and seldom bring anything up.
JUDGED = 50


def endpoint(app: App) -> "Reranker | None":
    """The reranker that is configured."""
    return rerank.configured(app.settings) if app.settings.rerank_base_url else None


def candidates(app: App, most: int) -> int:
    """How many to find so that the best of so many can be chosen."""
    return max(most, JUDGED) if app.settings.rerank_base_url else most


async def scores(ctx: Ctx, bank: int, query: str, texts: Sequence[str]) -> list[float] | None:
    """How well each text answers, 0 to 1; None when nobody judges, or who does cannot be asked now."""
    asked = endpoint(ctx.app)
    if asked is None or not texts:
        return None
    # Both may hold what a pattern of today calls a secret and one of yesterday did not.
    sent = [secrets.redacted(told).text for told in texts]
    made = await asked.attempted("rerank", lambda: asked.judged(secrets.redacted(query).text, sent))
    if made is None:
        return None
    payer = budget.payer(ctx, bank)
    ctx.app.later.do(budget.noted(payer, asked.model or "reranker", made.tokens))
    return made.scores
