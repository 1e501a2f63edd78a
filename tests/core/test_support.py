"""What a note supports of what a language model takes from it, and what it does not."""

from typing import Any

import pytest

from keepsake.core import clock, support
from keepsake.core.support import Claim, Ground
from keepsake.core.when import Window

AT = clock.parse("2026-03-12T10:00:00Z")
LEADS = "Marta leads the platform team at Acme."
MOVED = "She moved to Oslo last Tuesday."
PORT = "The billing service does not run on port 8080 any more."
MAY = "Pedro may join in May 2026."
DEPLOY = "`deploy.sh` failed twice."
NOTE = " ".join((LEADS, MOVED, PORT, MAY, DEPLOY))


def claim(line: str, told: str, **more: Any) -> Claim:
    """A claim about one of the sentences of the note."""
    start = NOTE.index(line)
    return Claim(start, start + len(line), told, "world", **more)


def fault(given: Claim, before: str = "") -> str | None:
    return support.fault(given, Ground(NOTE, before, AT))


@pytest.mark.parametrize(
    "given",
    [
        claim(LEADS, "Marta leads the platform team at Acme.", entities=("Marta", "Acme")),
        claim(LEADS, "Marta is the lead of the platform team."),
        claim(MOVED, "Marta moved to Oslo last Tuesday.", entities=("Marta", "Oslo"), time="2026-03-10"),
        claim(MOVED, "Marta moved to Oslo on 10 March 2026.", time="2026-03-10"),
        claim(MOVED, "Marta moved to Oslo in March 2026.", time="2026-03"),
        claim(PORT, "The billing service does not run on port 8080."),
        claim(MAY, "Pedro may join in May 2026.", time="2026-05"),
        claim(DEPLOY, "deploy.sh failed twice."),
    ],
)
def test_what_the_span_says_is_supported(given: Claim) -> None:
    assert fault(given) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (claim(LEADS, "Marta leads the platform team because she is brilliant."), "words"),
        (claim(LEADS, "Marta founded Acme."), "words"),
        (claim(LEADS, "Marta leads 12 people of the platform team."), "numbers"),
        (claim(PORT, "The billing service does not run on port 8081."), "numbers"),
        (claim(DEPLOY, "`rollback.sh` failed twice."), "numbers"),
        (claim(PORT, "The billing service runs on port 8080."), "negation"),
        (claim(LEADS, "Marta does not lead the platform team."), "negation"),
        (claim(MAY, "Pedro will join in May 2026."), "doubt"),
        (claim(LEADS, "Marta leads the platform team.", entities=("Globex",)), "entity"),
        (claim(LEADS, "Marta leads the platform team.", entities=("",)), "entity"),
        (claim(MOVED, "Marta moved to Oslo.", time="2026-03-09"), "time"),
        (claim(MAY, "Pedro may join.", time="2026-05-17"), "time"),
        (claim(LEADS, "Marta leads the platform team.", time="2019"), "time"),
        (claim(LEADS, "Marta leads the platform team.", time="some day"), "time"),
        (claim(MOVED, "Marta moved to Oslo on 11 March 2026."), "numbers"),
    ],
)
def test_what_it_does_not_say_is_not(given: Claim, expected: str) -> None:
    assert fault(given) == expected


def test_a_name_from_what_was_said_before_may_be_used() -> None:
    given = claim(DEPLOY, "The deploy.sh of Priya failed twice.", entities=("Priya",))

    assert (fault(given), fault(given, before="Priya wrote it.")) == ("words", None)


def test_the_time_is_the_one_that_the_span_tells() -> None:
    given = claim(MOVED, "Marta moved to Oslo.", time="2026-03-10T00:00:00Z")

    found = support.window(given, Ground(NOTE, "", AT))

    assert found == Window(clock.parse("2026-03-10"), clock.parse("2026-03-11"))


def renamed(note: str, line: str, told: str) -> str | None:
    start = note.index(line)
    return support.renamed(Claim(start, start + len(line), told, "world"), Ground(note, "", AT))


@pytest.mark.parametrize(
    ("note", "told", "expected"),
    [
        ("Marta leads the team. She moved to Oslo.", "Marta moved to Oslo.", True),
        ("Marta Silva leads the team. But she likes her desk.", "Marta Silva likes Marta's desk.", True),
        ("Marta leads the team. She moved to Oslo.", "Oslo is where Marta moved.", False),
        ("Marta leads the team. She moved to Oslo.", "Marta moved to Oslo with Pedro.", False),
        ("Marta leads the team. She moved to Oslo.", "Marta moved.", False),
        ("Marta leads the team. She moved to Oslo.", "She moved to Oslo.", False),
        ("Marta met Priya. She moved to Oslo.", "Marta moved to Oslo.", False),
        ("Marta leads the team. He told her everything.", "Marta told her everything.", False),
        ("The service is slow. It moved to Oslo.", "The service moved to Oslo.", False),
    ],
)
def test_a_name_stands_for_he_or_she_only_where_one_person_can_be_meant(note: str, told: str, expected: bool) -> None:
    line = note.split(". ", 1)[1]

    assert renamed(note, line, told) == (told if expected else None)
