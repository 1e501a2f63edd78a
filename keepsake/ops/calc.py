"""Working out expressions."""

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import calc, formula
from keepsake.core.models import Given, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean


class Evaluate(Given):
    """What to work out."""

    expression: Clean = Field(
        max_length=formula.LONGEST,
        description="Such as `2 * (3 + 4)^2`, `15% of 80`, `80 + 15%`, `round(sqrt(2), 3)`, `0.1 + 0.2 == 0.3`.",
    )


class Evaluated(Result):
    """What an expression comes to."""

    expression: str = Field(description="The expression as it was given.")
    result: str = Field(description="Its value: a number in full, or `true` or `false` for a comparison.")
    exact: bool = Field(description="Whether the result is exact; else it is rounded, to 15 digits or more.")
    fraction: str | None = Field(None, description="The exact value as a fraction, where the result had to be rounded.")


@operation("calc.evaluate", effect=Effect.READ, scope="memory:read")
async def evaluate(ctx: Ctx, given: Evaluate) -> Evaluated:
    """Work out an arithmetic expression exactly, instead of in your head; it has no variables and runs no code."""
    worked = calc.worked(given.expression)
    return Evaluated(
        expression=given.expression, result=worked.text, exact=worked.is_exact, fraction=worked.fraction or None
    )
