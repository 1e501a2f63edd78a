"""Expressions that are meant to harm, and how long the worst of them takes."""

import contextlib
import random
import time

from keepsake.core import calc
from keepsake.core.errors import BadInput

#: What has stopped other calculators, and what would stop a careless one of our kind.
KNOWN = (
    *("9**9**9", "9**9**9**9**9", "2^2^2^2^2^2", "10^10^10", "(9^99)^99", "1e308*1e308", "1e1300*1e1300", "2^4095*2"),
    *("factorial(10^9)", "500!!", "500!*500!", "factorial(factorial(9))", "comb(10^9,10^8)", "comb(1000,500)^9"),
    *("perm(1000,1000)", "perm(1000,500)", "lcm(2^4000-1,3^2500,5^1700)", "gcd(2^4000-1,3^2500-1)"),
    *("1/3^2500+1/5^1700+1/7^1400", "sum(1/3^2500,1/5^1700,1/7^1400,1/11^1100,1/13^1100)", "mean(1e-1300,1/3^2500)"),
    *("(1+1/3^2500)^2", "1.0000001^99999999", "0.9999999^99999999", "(1/3)^-2500", "1/(1/7^1400)", "7^1400 mod 3^2500"),
    *("round(1e-300, 60)", "round(1e1200, -60)", "sqrt(2^4095)", "sqrt(2)^4096", "e^709^2", "tan(pi/2)", "ln(1e-1300)"),
    *("sin(1e308)", "sin(10^1000)", "hypot(1e200,1e200)", "exp(exp(exp(9)))", "cbrt(10^1200)", "floor(1e308*1.5)"),
    *("'%1000000000d' % 1", "'a'*10**9", "().__class__.__bases__[0]", "__import__('os').system('id')", "open('/x')"),
    *("[x for x in range(10**9)]", "(lambda: 1)()", "f'{9**9}'", "1 if 1 else 2", "exec('1')", "globals()", "1<<10**9"),
    *(
        "{1:2}",
        "x:=1",
        "yield",
        "await 1",
        "a.b",
        "a[0]",
        "print(1)",
        "1;2",
        "1\n2",
        "#1",
        "\\",
        "\x00",
        "１+１",
        "٣+٣",
    ),
    *("\\", "\x00", "½", "𝟙+𝟙", "ﬁ(1)", "1＋1", "1∗1", "1∕0", "ѕqrt(4)", "рi", "\u202e1+2", "1\u200d+1", "∞", "-inf"),
    *("(" * 500, ")" * 500, "(" * 45 + "1" + ")" * 45, "-" * 999 + "1", "+" * 999 + "1", "!" * 999, "1" + "!" * 500),
    *("1" + "%" * 900, "2" + "^2" * 300, "1" + "+1" * 499, "9" * 1_000, "9" * 500 + "^" + "9" * 400, "max(" * 200),
    *(
        "sqrt(" * 150 + "2" + ")" * 150,
        "max(" + ",".join("9" * 400) + ")",
        "," * 1_000,
        "1e" + "9" * 900,
        "0x" + "f" * 990,
    ),
    *(
        "." * 1_000,
        "1." * 400,
        "1_" * 400,
        "1e5" * 300,
        "(a" * 300,
        "((1)" * 200,
        " " * 1_000,
        "e" * 1_000,
        "\t\n" * 400,
    ),
)
_LEAVES = (
    "2",
    "3",
    "0.1",
    "1e-300",
    "1e300",
    "pi",
    "e",
    "9^999",
    "2^4000",
    "1/3^2000",
    "500!",
    "1/7",
    "0",
    "1e1200",
    "-1",
)
_SIGNS = ("+", "-", "*", "/", "//", "^", " mod ", "%", "<", "==")
_CALLS = ("sqrt", "exp", "ln", "sin", "factorial", "round", "floor", "abs", "cbrt", "degrees")
_MANY = ("sum", "mean", "median", "max", "gcd", "lcm", "hypot", "comb", "perm", "log")


def hostile(chance: random.Random, count: int) -> list[str]:
    """The known ones, and others of their kind made by chance."""
    return [*KNOWN, *(_spoilt(chance, _grown(chance, chance.randint(1, 6))) for _ in range(count - len(KNOWN)))]


def _grown(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(_LEAVES)
    kind = chance.randrange(6)
    if kind < 3:
        return f"({_grown(chance, depth - 1)}){chance.choice(_SIGNS)}({_grown(chance, chance.randrange(depth))})"
    if kind == 3:
        return f"{chance.choice(_CALLS)}({_grown(chance, depth - 1)})"
    if kind == 4:
        parts = ",".join(_grown(chance, chance.randrange(depth)) for _ in range(chance.randint(1, 5)))
        return f"{chance.choice(_MANY)}({parts})"
    return f"({_grown(chance, depth - 1)}){chance.choice(('!', '%', '^2', '²', '% of 7'))}"


def _spoilt(chance: random.Random, expression: str) -> str:
    """Sometimes with a character where it does not belong."""
    if chance.random() < 0.7:
        return expression
    at = chance.randrange(len(expression) + 1)
    return expression[:at] + chance.choice("(),.!%^_'\"[]{}\\\x00٣×½ѕ\u200b\ud800") + expression[at:]


def worst(count: int = 1_000) -> tuple[float, str]:
    """Milliseconds of CPU of the slowest, and which it is."""
    slowest, which = 0.0, ""
    for expression in hostile(random.Random(7), count):
        began = time.process_time()
        with contextlib.suppress(BadInput):
            calc.worked(expression)
        spent = (time.process_time() - began) * 1_000
        if spent > slowest:
            slowest, which = spent, expression
    return slowest, which


if __name__ == "__main__":
    for size in (1_000, 20_000):
        slowest, which = worst(size)
        print(f"calc: {size:,} hostile expressions, the slowest took {slowest:.2f} ms of CPU: {which[:60]!r}")
