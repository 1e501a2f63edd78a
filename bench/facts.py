"""A thousand short facts with questions in other words, and identifiers that must be found exactly; all made up."""

import random
import uuid
from dataclasses import dataclass
from pathlib import Path

SEED = 20_261
#: Names in a group of subjects, and facts made from one template.
SUBJECTS, EACH = 60, 20
TEMPLATES = Path(__file__).with_name("facts.txt")

#: How an identifier looks, and the sentences that mention it.
SHAPES: list[tuple[str, tuple[str, ...]]] = [
    ("{P}-{n}", ("{i} is about slow checkouts on old phones.", "We closed {i} without a fix.")),
    ("#{n}", ("Issue {i} asks for dark mode.", "Pull request {i} was merged by mistake.")),
    ("E{n}", ("Error {i} means the disk quota is spent.", "{i} appears when the token has expired.")),
    ("ERR_{P}_{Q}", ("{i} is raised when the pool is empty.", "Clients must retry on {i}.")),
    ("v{v}", ("{i} broke the import of old archives.", "Customers should skip {i} and wait.")),
    ("{v}", ("Release {i} drops support for the old API.", "The regression came in with {i}.")),
    ("{p}_{q}()", ("{i} must never be called twice.", "The leak is in {i}.")),
    ("{p}{Q1}{P1}", ("{i} swallows the exception.", "We renamed it to {i} last week.")),
    ("/srv/{p}/{q}{n}.yaml", ("{i} holds the feature flags.", "Never edit {i} by hand.")),
    ("src/{p}/{q}.py", ("The parser lives in {i}.", "{i} needs a rewrite.")),
    ("{u}", ("The orphaned record is {i}.", "Tenant {i} was migrated first.")),
    ("{h}", ("Commit {i} introduced the race.", "We reverted {i} on the same day.")),
    ("10.{b}.{c}.{d}", ("{i} is the standby database.", "The printer answers on {i}.")),
    ("--{p}-{q}", ("The flag {i} turns the cache off.", "{i} is needed on Windows only.")),
    ("{P}_{Q}_URL", ("{i} must point to the replica.", "Staging reads {i} from the vault.")),
    ("{p}.{q}@example.com", ("Alerts go to {i}.", "{i} bounces since the rename.")),
]
_PARTS = "pay ship cart auth sync node queue index merge token cache route batch lease audit probe".split()
_QUESTIONS = ("{i}", "what do we know about {i}?", "{i} meaning", "tell me about {i} please", "why {i}?")


@dataclass(frozen=True, slots=True)
class Fact:
    """A short text and a question that it answers."""

    key: str
    text: str
    question: str


def paraphrased() -> list[Fact]:
    """A thousand facts, each with a question in other words; names may be the same, as they would be.

    About each subject there are some six facts, and parts of its name stand in those about others.
    """
    dice = random.Random(SEED)
    lines = [line for line in TEMPLATES.read_text().splitlines() if line and not line.startswith("#")]
    given = dict(line.split(": ", 1) for line in lines if " | " not in line)
    words = {group: _names(dice, given[group].split("; ")) for group in given}
    made: list[Fact] = []
    for number, line in enumerate(line for line in lines if " | " in line):
        subjects, values, text, *questions = line.split(" | ")
        for n, subject in enumerate(dice.sample(words[subjects], EACH)):
            value = dice.choice([one for one in words[values] if one != subject])
            filled = {"a": subject, "b": value, "n": str(dice.randrange(3, 95))}
            question = dice.choice(questions).format(**filled)
            made.append(Fact(f"fact{number}.{n}", text.format(**filled), question))
    return made


def _names(dice: random.Random, given: list[str]) -> list[str]:
    """Sixty names where they have two words, made from the parts of those given."""
    if any(" " not in name for name in given):
        return given
    parts = [name.split(" ", 1) for name in given]
    pairs = [f"{first} {last}" for first, _ in parts for _, last in parts]
    return dice.sample(pairs, SUBJECTS)


def identified(each: int = 15) -> list[Fact]:
    """Facts that mention an identifier each; many differ by one digit or word, or by the order of the same parts."""
    dice = random.Random(SEED)
    made: dict[str, Fact] = {}
    for shape, sentences in SHAPES:
        count = 0
        while count < each:
            identifier = shape.format(**_drawn(dice))
            if identifier in made:
                continue
            text = dice.choice(sentences).format(i=identifier)
            question = dice.choice(_QUESTIONS).format(i=identifier)
            made[identifier] = Fact(f"id{len(made)}", text, question)
            count += 1
    return list(made.values())


def _drawn(dice: random.Random) -> dict[str, str | int]:
    one, other = dice.sample(_PARTS, 2)
    return {
        "p": one,
        "q": other,
        "P": one.upper(),
        "Q": other.upper(),
        "P1": one.title(),
        "Q1": other.title(),
        "n": dice.choice((dice.randrange(1, 60), dice.randrange(1_000, 1_200))),
        "v": f"{dice.randrange(1, 4)}.{dice.randrange(0, 6)}.{dice.randrange(0, 12)}",
        "u": str(uuid.UUID(int=dice.getrandbits(128))),
        "h": f"{dice.getrandbits(40):010x}",
        "b": dice.randrange(0, 4),
        "c": dice.randrange(0, 4),
        "d": dice.randrange(1, 30),
    }
