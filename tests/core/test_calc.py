"""Expressions: what they come to, exactly where they can, and a thousand that are meant to harm."""

import random
import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.formulas import hostile
from keepsake.core import calc, formula
from keepsake.core.calc import Worked
from keepsake.core.errors import BadInput


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("2 * (3 + 4)", "14"),
        ("0.1 + 0.2", "0.3"),
        ("1.10 * 3", "3.3"),
        ("2^3^2", "512"),
        ("2**10", "1024"),
        ("-2^2", "-4"),
        ("2^-3", "0.125"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("7 % 3", "1"),
        ("-7 mod 3", "2"),
        ("7.5 mod 2", "1.5"),
        ("5!", "120"),
        ("3!^2", "36"),
        ("0xff + 0b11 + 1_000", "1258"),
        (".5 + 5. + 1e3 + 1.5E-1", "1005.65"),
        ("sqrt(16) + √9", "7"),
        ("sqrt(2.25)", "1.5"),
        ("4^0.5", "2"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.675, 2)", "2.68"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5) + ceil(1.2) + trunc(-1.9)", "-1"),
        ("min(3, 1, 2) + max(3, 1, 2)", "4"),
        ("mean(1, 2, 3, 4)", "2.5"),
        ("median(5, 1, 4) + median(1, 2)", "5.5"),
        ("sum(0.1, 0.1, 0.1)", "0.3"),
        ("gcd(48, 36) + lcm(4, 6)", "24"),
        ("factorial(20)", "2432902008176640000"),
        ("comb(49, 6)", "13983816"),
        ("perm(5, 2)", "20"),
        ("abs(-3) + sign(-2)", "2"),
        ("2^0.5 < 1.5", "true"),
        ("0.1 + 0.2 == 0.3", "true"),
        ("1 ≠ 1", "false"),
        ("2 × 3 ÷ 4 − 1", "0.5"),
        ("3² + 2³", "17"),
        ("10^60 + 1", "1" + "0" * 59 + "1"),
        ("0^0", "1"),
        ("(-1)^99999999999999999999", "-1"),
    ],
)
def test_what_is_exact_is_told_exactly(expression: str, told: str) -> None:
    assert calc.worked(expression) == Worked(told, True)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("15% of 80", "12"),
        ("15 % of 80", "12"),
        ("80 + 15%", "92"),
        ("80 - 15%", "68"),
        ("100 + 10% + 10%", "121"),
        ("80 * 15%", "12"),
        ("15%", "0.15"),
        ("80 + (15%)", "80.15"),
        ("80 + 15% of 20", "83"),
        ("80 + 2 * 15%", "80.3"),
        ("15 % 4", "3"),
        ("15 % (2 + 2)", "3"),
    ],
)
def test_a_percentage_is_of_what_it_is_added_to(expression: str, told: str) -> None:
    assert calc.worked(expression) == Worked(told, True)


@pytest.mark.parametrize(
    ("expression", "worked"),
    [
        ("1/3", Worked("0." + "3" * 30, False, "1/3")),
        ("-22/7", Worked("-3.14285714285714285714285714286", False, "-22/7")),
        ("2^-100", Worked("7.88860905221011805411728565283e-31", False, f"1/{2**100}")),
        ("sqrt(2)", Worked("1.4142135623731", False)),
        ("pi", Worked("3.14159265358979", False)),
        ("2*π - tau", Worked("0", False)),
        ("sin(pi) + cos(2*pi)", Worked("1", False)),
        ("ln(e^2)", Worked("2", False)),
        ("log(1000) + log2(8) + log10(10) + log(9, 3)", Worked("9", False)),
        ("log(10^1000)", Worked("1000", False)),
        ("degrees(pi)", Worked("180", False)),
        ("hypot(3, 4)", Worked("5", False)),
        ("1.00416667^360", Worked("4.46774965305652", False)),
    ],
)
def test_what_cannot_be_exact_says_so(expression: str, worked: Worked) -> None:
    assert calc.worked(expression) == worked


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "The expression is empty"),
        ("   ", "The expression is empty"),
        ("2 +", "ends too early"),
        ("(2", "ends too early"),
        ("2)", r"wrong at character 2 \(`\)`\)"),
        ("2 pi", "Write \\* for a product"),
        ("2(3)", "Write \\* for a product"),
        ("1,000", "Write 1000 or 1_000"),
        ("1.2.3", "cannot be read at character 1"),
        ("1/0", "divides by zero"),
        ("5 mod 0", "divides by zero"),
        ("0^-1", "divides by zero"),
        ("0^-0.5", "divides by zero"),
        ("sqrt(-1)", "no square root"),
        ("(-8)^(1/3)", "no real number"),
        ("ln(0)", "above zero"),
        ("log(5, 1)", "base 1"),
        ("asin(2)", "asin has no value there"),
        ("exp(1000)", "too large"),
        ("9**9**9", "too large"),
        ("2^4096", "too large"),
        ("1e2000", "too large"),
        ("factorial(501)", "whole numbers from 0 to 500"),
        ("2.5!", "whole numbers from 0 to 500"),
        ("comb(10^6, 3)", "whole numbers from 0 to 1000"),
        ("gcd(1.5, 2)", "gcd takes whole numbers"),
        ("max()", "1 to 200 arguments, not 0"),
        ("sqrt(1, 2)", "sqrt takes 1 arguments, not 2"),
        ("round(1, 100)", "whole number of decimals"),
        ("nope(1)", "There is no function `nope`. There are: abs, acos"),
        ("mod(7, 3)", "There is no function `mod`"),
        ("percent(7)", "There is no function `percent`"),
        ("pi(1)", "There is no function `pi`"),
        ("nope", "is no constant"),
        ("sqrt", "is no constant"),
        ("1 < 2 < 3", "two things can be compared"),
        ("(1 < 2) + 1", "can only be the whole expression"),
        ("3 of 5", "needs a percentage"),
        ("１ + １", "U\\+FF11 FULLWIDTH DIGIT ONE"),
        ("1 ⁄ 2", "U\\+2044 FRACTION SLASH"),
        ("ѕin(1)", "U\\+0455 CYRILLIC SMALL LETTER DZE"),
        ("2 ∗ 3", "U\\+2217"),
        ("1\u200b+1", "U\\+200B"),
        ("١+١", "U\\+0661"),
        ("().__class__", "cannot be read"),
        ("__import__('os')", "cannot be read"),
        ("'%1000000000d' % 1", "cannot be read"),
        ("[1 for x in 1]", "cannot be read"),
        ("lambda: 1", "cannot be read"),
        ("f'{1}'", "cannot be read"),
        ("1 if 1 else 2", "Write \\* for a product"),
        ("1 << 9999", "wrong at character 4"),
        ("~1", "cannot be read"),
        ("1 = 1", "cannot be read"),
        ("nan", "is no constant"),
        ("inf - inf", "is no constant"),
        ("+".join("1" * 150), "more than 200 parts"),
        ("(" * 60 + "1" + ")" * 60, "deeper than 40 levels"),
        ("-" * 60 + "1", "deeper than 40 levels"),
        ("1" * 1_001, "at most 1,000 are read"),
    ],
)
def test_what_is_no_expression_is_refused_with_a_reason(expression: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        calc.worked(expression)


def answered(expression: str) -> str:
    """What comes of it; anything but an answer or a refusal fails the test."""
    try:
        return calc.worked(expression).text
    except BadInput as refused:
        return str(refused)


def test_a_thousand_hostile_expressions_are_answered_or_refused_with_little_work() -> None:
    expressions = hostile(random.Random(7), 1_000)
    work: dict[str, int] = {}

    for expression in expressions:
        calls = 0

        def counted(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            told = answered(expression)
        finally:
            sys.setprofile(None)
        work[expression] = calls
        assert len(told) < 1_400

    assert len(work) > 950
    # Steps, each on numbers of at most twice the bits that a value may have; the time of it is in `bench.formulas`.
    assert max(work.values()) < 40_000


def test_no_value_on_the_way_outgrows_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    checked = calc._checked

    def watched(value: calc.Number) -> calc.Number:
        made = checked(value)
        if isinstance(made, Fraction):
            seen.append(max(made.numerator.bit_length(), made.denominator.bit_length()))
        return made

    monkeypatch.setattr(calc, "_checked", watched)
    for expression in hostile(random.Random(8), 300):
        answered(expression)

    assert 3_000 < max(seen) <= calc.MOST_BITS


@given(st.text(max_size=60) | st.text("0123456789.+-*/^%!(),<>=epi √²of ", max_size=60))
def test_no_text_is_answered_with_anything_but_a_value_or_a_refusal(expression: str) -> None:
    assert answered(expression)


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30), st.integers(1, 10**9))
def test_whole_numbers_and_decimals_are_what_they_are_in_mathematics(left: int, right: int, under: int) -> None:
    assert calc.worked(f"({left}) * ({right}) + ({right})").text == str(left * right + right)
    assert calc.worked(f"({left})/{under} * {under}") == Worked(str(left), True)


def test_the_deepest_and_the_longest_that_is_allowed_works() -> None:
    assert calc.worked("(" * 39 + "1" + ")" * 39).text == "1"
    assert calc.worked("+".join("1" * 100)).text == "100"
    assert formula.LONGEST == 1_000
