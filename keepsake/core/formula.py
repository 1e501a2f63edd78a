"""Reading an expression: its characters become tokens and these a tree, within bounds and not by Python's parser."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from keepsake.core.errors import BadInput

#: Characters and parts of an expression, and how deep it may nest.
LONGEST, MOST_PARTS, DEEPEST = 1_000, 200, 40
#: A number with more digits than this, or a larger exponent, cannot stay within the bits of a result.
MOST_DIGITS = 1_300
CONSTANTS = ("pi", "e", "tau")
#: How tightly each sign binds what stands beside it.
_BINDS = {"<": 1, "<=": 1, ">": 1, ">=": 1, "==": 1, "!=": 1, "+": 2, "-": 2}
_BINDS |= {"*": 3, "/": 3, "//": 3, "mod": 3, "of": 3, "^": 5, "percent": 6, "factorial": 6}
_UNARY = 4
#: Other ways of writing the same, and blanks that come along when a number is copied.
_READ_AS = str.maketrans(
    {"×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "≠": "!="}
    | {"²": "^2", "³": "^3", "π": "pi", "τ": "tau", "√": " sqrt ", "\u00a0": " ", "\u2009": " ", "\u202f": " "}
)
_DIGITS = r"\d(?:_?\d)*+"
_TOKEN = re.compile(
    r"[ \t\r\n]*+(?:(?P<number>0[xX][0-9a-fA-F]++|0[bB][01]++"
    rf"|(?>(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?\d{{1,9}})?)(?![\d.]))"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*+)|(?P<sign>\*\*|//|<=|>=|==|!=|[-+*/^%!(),<>]))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Applied:
    """A sign with what it stands at; a constant stands at nothing."""

    sign: str
    given: "tuple[Node, ...]" = ()


@dataclass(frozen=True, slots=True)
class Called:
    """A function, known or not, with its arguments."""

    name: str
    given: "tuple[Node, ...]"


Node = Number | Applied | Called


@dataclass(frozen=True, slots=True)
class Token:
    """A number, name or sign, and where it begins; the last one is empty."""

    kind: str
    text: str
    at: int


def parsed(expression: str) -> Node:
    """The tree of an expression; BadInput says what is wrong with it and where."""
    if len(expression) > LONGEST:
        raise BadInput(f"The expression has {len(expression):,} characters; at most {LONGEST:,} are read.")
    tokens = list(_tokens(expression.translate(_READ_AS)))
    if len(tokens) == 1:
        raise BadInput("The expression is empty. Give one such as 2 * (3 + 4).")
    reader = _Reader(tokens)
    tree = reader.operand(0)
    if reader.token.kind != "end":
        raise _unexpected(reader.token)
    return tree


def _tokens(text: str) -> Iterator[Token]:
    at, end = 0, len(text.rstrip(" \t\r\n"))
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unreadable(text, at)
        kind = str(found.lastgroup)
        # Capitals mean nothing here, save in the digits of a hexadecimal number, where they mean the same.
        yield Token(kind, found[kind].lower(), found.start(kind))
        at = found.end()
    yield Token("end", "", at)


def _unreadable(text: str, at: int) -> BadInput:
    at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
    letter = text[at]
    if letter.isascii() and letter.isprintable():
        told = letter
    else:
        told = f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".rstrip()
    return BadInput(
        f"The expression cannot be read at character {at + 1} ({told}). It may hold numbers, + - * / // ^ % ! ( ) ,"
        " < > and the names of functions and constants."
    )


def _unexpected(token: Token) -> BadInput:
    if token.kind == "end":
        return BadInput("The expression ends too early: something is missing at its end.")
    if token.text == ",":
        return BadInput(f"The comma at character {token.at + 1} separates nothing. Write 1000 or 1_000 for a thousand.")
    hint = " Write * for a product." if token.kind != "sign" or token.text == "(" else ""
    return BadInput(f"The expression is wrong at character {token.at + 1} (`{token.text[:20]}`).{hint}")


@dataclass(slots=True)
class _Reader:
    """Where in the tokens we are, and how much of the bounds is used."""

    tokens: list[Token]
    at: int = 0
    parts: int = 0
    depth: int = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def operand(self, binding: int) -> Node:
        """What stands here, with every sign that binds it more tightly than `binding`."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadInput(f"The expression nests deeper than {DEEPEST} levels. Work it out in steps.")
        left = self._first()
        while (bound := _BINDS.get(sign := self._sign(), 0)) > binding:
            self.at += 1
            left = self._joined(sign, left, bound)
        self.depth -= 1
        return left

    def _sign(self) -> str:
        """The sign that follows an operand: % is a remainder before an operand, and per cent elsewhere."""
        token = self.token
        if token.text == "%":
            after = self.tokens[self.at + 1]
            is_operand = after.kind == "number" or after.text == "(" or (after.kind == "name" and after.text != "of")
            return "mod" if is_operand and after.text != "mod" else "percent"
        return {"**": "^", "!": "factorial"}.get(token.text, token.text) if token.kind in ("sign", "name") else ""

    def _joined(self, sign: str, left: Node, bound: int) -> Node:
        if sign in ("percent", "factorial"):
            return self._made(sign, left)
        if sign == "of" and not is_percent(left):
            raise BadInput("`of` needs a percentage before it, as in 15% of 80.")
        # A power is read from the right: 2^3^2 is 2^9.
        right = self.operand(bound - 1 if sign == "^" else bound)
        if bound == 1 and _BINDS.get(self._sign()) == 1:
            raise BadInput("Only two things can be compared at a time.")
        return self._made(sign, left, right)

    def _made(self, sign: str, *given: Node) -> Applied:
        self._count()
        return Applied(sign, given)

    def _called(self, name: str, *given: Node) -> Called:
        self._count()
        return Called(name, given)

    def _count(self) -> None:
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise BadInput(f"The expression has more than {MOST_PARTS} parts. Work it out in steps.")

    def _first(self) -> Node:
        token = self.token
        self.at += token.kind != "end"
        if token.kind == "number":
            self._count()
            return Number(_number(token))
        if token.kind == "name":
            return self._named(token)
        if token.text in ("-", "+"):
            inner = self.operand(_UNARY)
            return self._made("negated", inner) if token.text == "-" else inner
        if token.text == "(":
            # Marked, so that (15%) is a number like any other.
            inner = self._made("group", self.operand(0))
            self._close()
            return inner
        raise _unexpected(token)

    def _named(self, token: Token) -> Node:
        if self.token.text != "(":
            if token.text in CONSTANTS:
                return self._made(token.text)
            # √9 needs no parentheses.
            if token.text == "sqrt" and self.token.kind == "number":
                return self._called("sqrt", self._first())
            raise BadInput(
                f"`{token.text[:20]}` at character {token.at + 1} is no constant; there are {', '.join(CONSTANTS)}."
                " A function needs its parentheses, as in sqrt(2)."
            )
        self.at += 1
        given: list[Node] = []
        while self.token.text != ")":
            given.append(self.operand(0))
            if self.token.text != ",":
                break
            self.at += 1
        self._close()
        return self._called(token.text, *given)

    def _close(self) -> None:
        if self.token.text != ")":
            raise _unexpected(self.token)
        self.at += 1


def is_percent(node: Node) -> bool:
    """Whether a part is a bare percentage."""
    return isinstance(node, Applied) and node.sign == "percent"


def _number(token: Token) -> Fraction:
    text = token.text.replace("_", "")
    if text[:2] in ("0x", "0b"):
        return Fraction(int(text, 0))
    digits, _, exponent = text.partition("e")
    if len(digits) > MOST_DIGITS or abs(int(exponent or 0)) > MOST_DIGITS:
        raise BadInput(f"The number at character {token.at + 1} is too large or too small to be worked with.")
    return Fraction(text.removesuffix(".") if "e" not in text else text)
