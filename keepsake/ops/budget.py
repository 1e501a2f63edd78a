"""What a language model may cost: set aside before a call, settled after it, never above the budget."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from keepsake.context import App, Ctx
from keepsake.core.clock import SECOND
from keepsake.core.errors import BadInput, Unavailable
from keepsake.core.lazy import lazy
from keepsake.store import usage
from keepsake.store.engine import Tx
from keepsake.store.usage import Hold

if TYPE_CHECKING:
    from keepsake.services import llm
else:
    llm = lazy("keepsake.services.llm")

T = TypeVar("T")
#: The background's own budget stands under no one's name.
BACKGROUND = ""
#: How long after its time limit a call that has not told its cost is taken to have died.
LATE = 60 * SECOND


class Spent(BadInput):
    """The budget of tokens for this week or day is spent."""


class Unusable(Unavailable):
    """The model's answer was wrong twice."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Who asks a model, in which bank and for which operation."""

    app: App
    org: int
    bank: int
    operation: str
    #: Name of the principal, or BACKGROUND.
    holder: str
    #: Where the request came in; empty for the background.
    source: str = ""
    #: The row of the usage log under which all calls of one request are added up; 0 gives each its own.
    row: int = 0

    def hold(self, ask: "llm.Ask") -> tuple[Hold, int]:
        """What to set aside for a call now, and the limit that it must keep."""
        settings, now = self.app.settings, self.app.now()
        is_ours = self.holder == BACKGROUND
        hold = Hold(
            org=self.org,
            holder=self.holder,
            period=day(now) if is_ours else week(now),
            tokens=ask.most,
            sent=ask.most - ask.max_tokens,
            expires_at=now + settings.llm_timeout * SECOND + LATE,
        )
        return hold, settings.llm_daily_tokens if is_ours else settings.weekly_token_limit


def payer(ctx: Ctx, bank: int) -> Payer:
    """Whoever asks, for the operation that runs."""
    return Payer(ctx.app, ctx.org, bank, ctx.operation, ctx.principal.name, ctx.surface)


def day(now: int) -> str:
    """The period of a day, UTC."""
    return f"d{datetime.fromtimestamp(now / SECOND, UTC).date()}"


def week(now: int) -> str:
    """The period of a week, which begins on Monday at 00:00 UTC."""
    return f"w{_monday(now)}"


def resets_at(now: int) -> str:
    """When the budget of a week begins anew, ISO 8601."""
    return f"{_monday(now) + timedelta(days=7)}T00:00:00Z"


def _monday(now: int) -> date:
    today = datetime.fromtimestamp(now / SECOND, UTC).date()
    return today - timedelta(days=today.weekday())


def model(app: App) -> "llm.Llm | None":
    """The language model that is configured."""
    return llm.configured(app.settings)


async def chat(payer: Payer, asked: "llm.Llm", ask: "llm.Ask") -> "llm.Reply":
    """Ask a model within the budget of who asks; Spent before anything is sent, where it does not suffice."""
    hold, limit = payer.hold(ask)
    if not await payer.app.store.write(payer.org, lambda tx: usage.reserve(tx, hold, limit, payer.app.now())):
        raise _spent(payer, limit)
    # Whoever gives up waiting has still made the model work: all that was set aside counts then.
    cost = (hold.tokens - ask.max_tokens, ask.max_tokens)
    try:
        reply = await asked.chat(ask)
        cost = (reply.tokens_in, reply.tokens_out)
        return reply
    except llm.LlmFailed as error:
        cost = cost if error.may_have_spent else (0, 0)
        raise
    finally:
        await payer.app.store.write(payer.org, lambda tx: _settled(tx, payer, hold, asked.model, cost))


def _spent(payer: Payer, limit: int) -> Spent:
    if payer.holder == BACKGROUND:
        return Spent(f"The budget of {limit} tokens for this day is spent; it begins anew tomorrow, 00:00 UTC.")
    reset = resets_at(payer.app.now())
    return Spent(f"The budget of {limit} tokens for this week is spent; it begins anew on Monday, {reset}.")


async def _settled(tx: Tx, payer: Payer, hold: Hold, model: str, cost: tuple[int, int]) -> None:
    tokens_in, tokens_out = cost
    await usage.settle(tx, hold, tokens_in + tokens_out)
    await usage.record(tx, call(payer, model, cost))


def call(payer: Payer, model: str, cost: tuple[int, int]) -> usage.Usage:
    """What is written down of one call of a model: tokens in and out."""
    return usage.Usage(
        org=payer.org,
        bank=payer.bank,
        id=payer.row or payer.app.store.new_id(),
        at=payer.app.now(),
        principal=payer.holder or "background",
        operation=payer.operation,
        model=model,
        tokens_in=cost[0],
        tokens_out=cost[1],
        source=payer.source,
    )


async def noted(payer: Payer, model: str, tokens: int) -> None:
    """Write down what was embedded or judged; it costs too little to be held against a budget."""
    await payer.app.store.write(payer.org, lambda tx: usage.record(tx, call(payer, model, (tokens, 0))))


async def checked(payer: Payer, asked: "llm.Llm", ask: "llm.Ask", check: "Callable[[llm.Reply], T]") -> T:
    """Ask until the answer passes its check (which raises ValueError), at most twice; then Unusable."""
    reply = await chat(payer, asked, ask)
    try:
        return check(reply)
    except ValueError as error:
        again = await chat(payer, asked, ask.mended(reply.text, str(error)))
    try:
        return check(again)
    except ValueError as error:
        raise Unusable(f"The model {asked.model} answered wrongly twice: {error}") from error
