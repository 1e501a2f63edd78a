"""Working out an expression: exactly where numbers allow it, else to fifteen digits, and never for long."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from keepsake.core import formula
from keepsake.core.errors import BadInput
from keepsake.core.formula import Applied, Called, Node

#: Bits of a whole number, and of either part of a fraction; a longer fraction goes on as a float.
MOST_BITS = 4_096
#: What grows fastest is asked for no more than this: 500! has 3,768 bits.
MOST_FACTORIAL, MOST_CHOSEN = 500, 1_000
#: Decimals that are told in full; a number with more is rounded to so many digits.
MOST_DECIMALS, ROUNDED_TO = 60, 30
LONGEST_FRACTION = 100

#: A fraction is exact, whole numbers among them; a float is not.
Number = Fraction | float


@dataclass(frozen=True, slots=True)
class Worked:
    """What an expression comes to."""

    text: str
    is_exact: bool
    #: The exact value as a fraction of whole numbers, where its decimals do not end or are many.
    fraction: str = ""


def worked(expression: str) -> Worked:
    """Work out an expression; BadInput says why it cannot be."""
    tree = formula.parsed(expression)
    try:
        if isinstance(tree, Applied) and tree.sign in COMPARISONS:
            left, right = map(_value, tree.given)
            return Worked("true" if COMPARISONS[tree.sign](left, right) else "false", True)
        return _told(_value(tree))
    except ZeroDivisionError:
        raise BadInput("The expression divides by zero.") from None
    except OverflowError:
        raise _too_large() from None


# One frame for each level of the tree, which may have as many as it has parts.
def _value(node: Node) -> Number:
    if isinstance(node, formula.Number):
        return _checked(node.value)
    given = list(map(_value, node.given))
    if isinstance(node, Called):
        return _checked(_function(node.name, len(given)).run(*given))
    if node.sign in COMPARISONS:
        raise BadInput("A comparison can only be the whole expression.")
    if node.sign in ("+", "-") and formula.is_percent(node.given[1]):
        given[1] *= given[0]
    return _checked(SIGNS[node.sign](*given))


def _function(name: str, count: int) -> "Function":
    function = FUNCTIONS.get(name)
    if function is None:
        raise BadInput(f"There is no function `{name[:20]}`. There are: {', '.join(sorted(FUNCTIONS))}.")
    if not function.least <= count <= function.most:
        raise BadInput(f"{name} takes {function.told} arguments, not {count}.")
    return function


def _checked(value: Number) -> Number:
    """A value within its bounds; what is too long for a fraction goes on as a float."""
    if isinstance(value, Fraction):
        longest = max(value.numerator.bit_length(), value.denominator.bit_length())
        if longest <= MOST_BITS:
            return value
        if value.denominator == 1:
            raise _too_large()
        value = value.numerator / value.denominator
    if not math.isfinite(value):
        raise _too_large()
    return value


def _too_large() -> BadInput:
    return BadInput(
        f"A number becomes too large: whole numbers may have {MOST_BITS:,} bits (1,233 digits), others 1e308."
    )


# --- signs -----------------------------------------------------------------------------------------------------------


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1 and (made := _whole_power(base, exponent.numerator)) is not None:
            return made
        if exponent.denominator == 2 and base >= 0 and isinstance(root := _sqrt(base), Fraction):
            return _power(root, Fraction(exponent.numerator))
    try:
        return math.pow(base, exponent)
    except ValueError:
        raise BadInput("That power is no real number.") from None


def _whole_power(base: Fraction, exponent: int) -> Fraction | None:
    """An exact power; None where it would be too long but a float can hold it."""
    if base in (0, 1, -1):
        return Fraction(1) if exponent == 0 else 1 / base if exponent < 0 else base if exponent % 2 else abs(base)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    # A number of n bits is at least 2^(n-1), so this cuts nothing that fits and lets through twice of it at most.
    if (bits - 1) * abs(exponent) <= MOST_BITS:
        return Fraction(base**exponent)
    if base.denominator == 1 and exponent > 0:
        raise _too_large()
    return None


def _floor_divided(left: Number, right: Number) -> Number:
    made = left // right
    return Fraction(made) if isinstance(made, int) else made


def _factorial(number: Number) -> Fraction:
    return Fraction(math.factorial(_whole("factorial", number, MOST_FACTORIAL)))


COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}
SIGNS: dict[str, Callable[..., Number]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "//": _floor_divided,
    "mod": lambda left, right: left % right,
    "of": lambda share, whole: share * whole,
    "^": _power,
    "negated": lambda value: -value,
    "group": lambda value: value,
    "percent": lambda value: value / 100,
    "factorial": _factorial,
    "pi": lambda: math.pi,
    "e": lambda: math.e,
    "tau": lambda: math.tau,
}


# --- functions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """A function, and how many arguments it takes."""

    run: Callable[..., Number]
    least: int = 1
    most: int = 1

    @property
    def told(self) -> str:
        """The number of arguments in words."""
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


def _whole(name: str, number: Number, most: int) -> int:
    """A whole number from 0 up, as counting functions want it."""
    if not isinstance(number, Fraction) or number.denominator != 1 or not 0 <= number <= most:
        raise BadInput(f"{name} takes whole numbers from 0 to {most}.")
    return number.numerator


def _wholes(name: str, numbers: tuple[Number, ...]) -> list[int]:
    exact = [number for number in numbers if isinstance(number, Fraction) and number.denominator == 1]
    if len(exact) != len(numbers):
        raise BadInput(f"{name} takes whole numbers.")
    return [number.numerator for number in exact]


def _sqrt(number: Number) -> Number:
    if number < 0:
        raise BadInput("A negative number has no square root among the real numbers.")
    if isinstance(number, Fraction):
        up, down = math.isqrt(number.numerator), math.isqrt(number.denominator)
        if up * up == number.numerator and down * down == number.denominator:
            return Fraction(up, down)
    return math.sqrt(number)


def _real(run: Callable[..., float], name: str) -> Callable[..., float]:
    """A function of floats that has no value everywhere."""

    def made(*given: Number) -> float:
        try:
            return run(*(float(one) for one in given))
        except ValueError:
            raise BadInput(f"{name} has no value there.") from None

    return made


def _turned(run: Callable[[float], float]) -> Callable[[Number], float]:
    """A function of an angle: what a float cannot tell from zero is zero, so that sin(pi) is."""

    def made(angle: Number) -> float:
        turned = float(angle)
        value = run(turned)
        return 0.0 if abs(value) < 1e-15 and abs(turned) >= 1 else value

    return made


def _log(number: Number, base: Number = Fraction(10)) -> float:
    """To base ten where none is given, as on a calculator."""
    if base == 1:
        raise BadInput("There is no logarithm to base 1.")
    if base in (2, 10):
        return _logarithm(number, math.log2 if base == 2 else math.log10)
    return _logarithm(number, math.log) / _logarithm(base, math.log)


def _logarithm(number: Number, run: Callable[[float], float]) -> float:
    if number <= 0:
        raise BadInput("Only a number above zero has a logarithm.")
    if isinstance(number, Fraction):
        # Their difference, because a float may not hold a fraction of long numbers.
        return run(number.numerator) - run(number.denominator)
    return run(number)


def _rounded(number: Number, digits: Number = Fraction(0)) -> Number:
    """To so many decimals, halves away from zero, as people round."""
    if not isinstance(digits, Fraction) or digits.denominator != 1 or abs(digits) > MOST_DECIMALS:
        raise BadInput(f"round takes a whole number of decimals, from -{MOST_DECIMALS} to {MOST_DECIMALS}.")
    exact = Fraction(number)
    scaled = abs(exact) * Fraction(10) ** digits.numerator
    made = (1 if exact >= 0 else -1) * math.floor(scaled + Fraction(1, 2)) / Fraction(10) ** digits.numerator
    return made if isinstance(number, Fraction) else float(made)


def _stepped(run: Callable[[Number], int]) -> Callable[[Number], Number]:
    """floor and its like: a whole number, exact if it was made from an exact one."""

    def made(number: Number) -> Number:
        return Fraction(run(number)) if isinstance(number, Fraction) else float(run(number))

    return made


def _summed(*numbers: Number) -> Number:
    # Checked at every step: the sum of many long fractions is as long as all of them.
    made: Number = Fraction(0)
    for number in numbers:
        made = _checked(made + number)
    return made


def _median(*numbers: Number) -> Number:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(numbers) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _chosen(name: str, run: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    def made(number: Number, taken: Number) -> Number:
        return Fraction(run(_whole(name, number, MOST_CHOSEN), _whole(name, taken, MOST_CHOSEN)))

    return made


def _perm(number: int, taken: int) -> int:
    if taken > MOST_FACTORIAL:
        raise _too_large()
    return math.perm(number, taken)


_MANY = formula.MOST_PARTS
FUNCTIONS: dict[str, Function] = {
    "abs": Function(abs),
    "sign": Function(lambda number: Fraction((number > 0) - (number < 0))),
    "sqrt": Function(_sqrt),
    "cbrt": Function(_real(math.cbrt, "cbrt")),
    "exp": Function(_real(math.exp, "exp")),
    "ln": Function(lambda number: _logarithm(number, math.log)),
    "log": Function(_log, 1, 2),
    "log2": Function(lambda number: _log(number, Fraction(2))),
    "log10": Function(_log),
    "sin": Function(_turned(math.sin)),
    "cos": Function(_turned(math.cos)),
    "tan": Function(_turned(math.tan)),
    "asin": Function(_real(math.asin, "asin")),
    "acos": Function(_real(math.acos, "acos")),
    "atan": Function(_real(math.atan, "atan")),
    "atan2": Function(_real(math.atan2, "atan2"), 2, 2),
    "sinh": Function(_real(math.sinh, "sinh")),
    "cosh": Function(_real(math.cosh, "cosh")),
    "tanh": Function(_real(math.tanh, "tanh")),
    "degrees": Function(_real(math.degrees, "degrees")),
    "radians": Function(_real(math.radians, "radians")),
    "hypot": Function(_real(math.hypot, "hypot"), 2, _MANY),
    "floor": Function(_stepped(math.floor)),
    "ceil": Function(_stepped(math.ceil)),
    "trunc": Function(_stepped(math.trunc)),
    "round": Function(_rounded, 1, 2),
    "min": Function(lambda *numbers: min(numbers), 1, _MANY),
    "max": Function(lambda *numbers: max(numbers), 1, _MANY),
    "sum": Function(_summed, 1, _MANY),
    "mean": Function(lambda *numbers: _summed(*numbers) / len(numbers), 1, _MANY),
    "median": Function(_median, 1, _MANY),
    "gcd": Function(lambda *numbers: Fraction(math.gcd(*_wholes("gcd", numbers))), 1, _MANY),
    "lcm": Function(lambda *numbers: Fraction(_lcm(_wholes("lcm", numbers))), 1, _MANY),
    "factorial": Function(_factorial),
    "comb": Function(_chosen("comb", math.comb), 2, 2),
    "perm": Function(_chosen("perm", _perm), 2, 2),
}


def _lcm(numbers: list[int]) -> int:
    made = 1
    for number in numbers:
        made = math.lcm(made, number)
        if made.bit_length() > MOST_BITS:
            raise _too_large()
    return made


# --- telling ---------------------------------------------------------------------------------------------------------


def _told(value: Number) -> Worked:
    if not isinstance(value, Fraction):
        return Worked(f"{value:.15g}" if value else "0", False)
    if value.denominator == 1:
        return Worked(str(value.numerator), True)
    decimals = _decimals(value.denominator)
    if decimals is not None and decimals <= MOST_DECIMALS:
        digits = str(abs(value.numerator) * (10**decimals // value.denominator)).zfill(decimals + 1)
        return Worked(f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}", True)
    fraction = f"{value.numerator}/{value.denominator}"
    context = Context(prec=ROUNDED_TO)
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Worked(f"{rounded:g}".lower(), False, fraction if len(fraction) <= LONGEST_FRACTION else "")


def _decimals(denominator: int) -> int | None:
    """How many decimals a fraction has; None where they never end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None
