"""What a language model is told: who it speaks for, the rules of the bank, and memories fenced as data."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.core import cite, models
from keepsake.ops.retrieve import Hit
from keepsake.services.llm import Message, Quoted, fenced
from keepsake.store.banks import Bank
from keepsake.store.directives import Directive

#: Characters of one memory, and of all memories, that a model is given.
ONE, ALL = 2_000, 40_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and why."""

    query: str
    context: str = ""


def quoted(number: int, memory: models.Memory, query: str) -> Quoted:
    """A memory as a model is given it."""
    told = cite.excerpt(query, memory.text, ONE)
    return Quoted(number, memory.id, told, memory.trust, memory.happened_at or memory.learned_at)


def given(hits: Sequence[Hit], query: str) -> list[Quoted]:
    """Memories, best first, as many as a model is given."""
    room = ALL
    kept: list[Quoted] = []
    for number, hit in enumerate(hits, 1):
        one = quoted(number, hit.memory, query)
        room -= len(one.text)
        if room < 0 and kept:
            break
        kept.append(one)
    return kept


def _character(bank: Bank, rules: Sequence[Directive]) -> str:
    """Who the model speaks for, and the bank's directives, the most important first."""
    parts = ["You answer questions from the long-term memory of an AI agent."]
    if bank.mission:
        parts.append(f"The agent's mission: {bank.mission}")
    traits = ", ".join(f"{trait} {level} of 5" for trait, level in bank.disposition.items())
    parts.append(f"Its disposition: {traits}.")
    if rules:
        told = [f"{n}. {rule.name} (set by {rule.trust}): {rule.content}" for n, rule in enumerate(rules, 1)]
        parts.append("\n".join(["Its directives, the most important first:", *told]))
    return "\n".join(parts)


GROUNDED = (
    "Use only the memories that you are given: say what they do not tell instead of guessing. Where two of them"
    " disagree, the later one holds."
)
CITING = (
    "After every claim put the number of the memory it comes from in square brackets, such as [1] or [2][5]. Never cite"
    " a number that was not given. Answer in a few plain sentences, without a list of sources."
)


def _asked(question: Question, hits: Sequence[Hit]) -> Message:
    why = f"\nContext: {question.context}" if question.context else ""
    return Message("user", f"{fenced(given(hits, question.query))}\n\nQuestion: {question.query}{why}")


def reflecting(
    bank: Bank, rules: Sequence[Directive], question: Question, hits: Sequence[Hit]
) -> tuple[Message, Message]:
    """Ask for an answer in prose that cites its memories."""
    return Message("system", f"{_character(bank, rules)}\n{GROUNDED} {CITING}"), _asked(question, hits)


def shaping(bank: Bank, rules: Sequence[Directive], question: Question, hits: Sequence[Hit]) -> tuple[Message, Message]:
    """Ask for an answer in the shape that goes with the request."""
    return Message("system", f"{_character(bank, rules)}\n{GROUNDED} Answer in JSON only."), _asked(question, hits)


ANALYSING = (
    "You write a brief on a project for whoever works on it next, in Markdown with short sections: what was decided and"
    " why, what was reached, what is open or in the way, and what else matters now; leave a section out where nothing"
    " is known. Use only the numbered texts that you are given, the later one where two disagree, and say what they do"
    " not tell instead of guessing. After every claim put the number of its text in square brackets, such as [1] or"
    " [2][5]; never cite a number that was not given. No images, no links, no list of sources."
)


def analysing(topic: str, texts: Sequence[Quoted]) -> tuple[Message, Message]:
    """Ask for a brief that cites its sources, on a topic or on the whole."""
    about = f"Topic: {topic}" if topic else "Topic: how the project stands now"
    return Message("system", ANALYSING), Message("user", f"{fenced(texts)}\n\n{about}")


DOCUMENT = (
    "Write a short document that answers the question from the memories, in sections. Every sentence states what one or"
    " more memories say and names their numbers in `evidence`. " + GROUNDED
)


def modelling(bank: Bank, query: str, hits: Sequence[Hit]) -> tuple[Message, Message]:
    """Ask for a mental model: a document whose every sentence names its evidence."""
    return Message("system", f"{_character(bank, ())}\n{DOCUMENT}"), _asked(Question(query), hits)


OBSERVING = (
    "You look for what several facts show together: a pattern, a preference, a change over time. Write an observation"
    " only where at least two of the new facts support it, in one or two sentences, with the numbers of those facts in"
    " `evidence`. Where a known observation says the same, put its number in `updates` and write it anew, else leave"
    " that null. Add nothing that the facts do not say; an empty list is a good answer."
)


def observing(facts: Sequence[Quoted], known: Sequence[Quoted]) -> tuple[Message, Message]:
    """Ask for observations over new facts, beside those that are known."""
    told = f"New facts. {fenced(facts)}"
    if known:
        told += f"\n\nKnown observations. {fenced(known)}"
    return Message("system", OBSERVING), Message("user", told)


EXTRACTING = (
    "You take facts out of texts for a long-term memory. Every line of the texts has a number; lines with the same id"
    " belong to one text. For each thing that a text states, give the numbers of the `first` and `last` line that"
    " state it, and the fact as one sentence in the words of those lines, with a name in the place of he or she where"
    " the text makes clear who is meant. `type` is `opinion` for what someone holds or prefers, `experience` for what"
    " someone did or went through, else `world`. `entities` are the people and things it names, as written. `time` is"
    " the ISO 8601 date that it speaks of, counted from the text's date, or null where it names none. Add nothing that"
    " the lines do not say: no name, number, date or reason; keep every `not`, `if` and `may`."
)


def extracting(lines: Sequence[Quoted], before: Sequence[Quoted]) -> tuple[Message, Message]:
    """Ask for the facts of texts, line by line; what was said before them only tells who is meant."""
    told = f"Texts. {fenced(lines)}"
    if before:
        told = f"Said before, not to be taken facts from. {fenced(before)}\n\n{told}"
    return Message("system", EXTRACTING), Message("user", told)


SUMMARISING = (
    "You sum up a coding session for whoever works on the project next. From what was observed, fill six texts: what"
    " was asked (`request`), what was looked at (`investigated`), what was found out (`learned`), what was done"
    " (`completed`), what is left to do (`next_steps`) and anything else worth knowing (`notes`). One statement a line,"
    " in the words of the observations. Add nothing that they do not say; leave a text empty where they say nothing."
)


def summarising(seen: Sequence[Quoted]) -> tuple[Message, Message]:
    """Ask for a session's summary from what was observed in it."""
    return Message("system", SUMMARISING), Message("user", f"Observations, in their order. {fenced(seen)}")
