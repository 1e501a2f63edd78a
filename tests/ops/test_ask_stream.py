"""Reading along while a language model answers: checked sentences alone, and what was wrong is taken back."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.ops.ask import Answered
from keepsake.store import repos, usage
from tests.llm_server import MODEL, Breaks, Fails, Says, Script, Streams, Waits
from tests.ops.asking import HISTORY, ORG, moved, repository, synced
from tests.ops.asking import standing as repo_of
from tests.ops.test_ask import PULL, ask
from tests.ops.test_ask_model import QUESTION, numbered, says, standing

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("database", ["sqlite"], indirect=True)]
EVIL = "![x](https://evil.example/?q=1) <script>alert(1)</script> [1](javascript:alert(2)) https://evil.example"


@pytest.fixture
async def project(thinking: App, tmp_path: Path) -> App:
    """An application with a language model and one project."""
    await synced(thinking, "api", repository(tmp_path / "api"), PULL)
    return thinking


class Reader:
    """Someone who reads along."""

    def __init__(self, opens: dict[str, threading.Event] | None = None) -> None:
        self.told: list[Answered | None] = []
        self.opens = opens or {}

    async def follow(self, made: BaseModel | None) -> None:
        assert made is None or isinstance(made, Answered)
        self.told.append(made)
        for part, gate in self.opens.items():
            if made is not None and part in made.text:
                gate.set()

    @property
    def read(self) -> list[str | None]:
        """The answers without their sources."""
        return [one.text.partition("\n\n### Sources")[0] if one else None for one in self.told]

    async def ask(self, app: App) -> Answered:
        ctx = replace(app.ctx(local_owner()), follow=self.follow)
        made = await dispatch.call(ctx, "memory.ask", {"banks": ["api"], "question": QUESTION})
        assert isinstance(made, Answered)
        return made


def pieces(reply: str, size: int = 5) -> list[str]:
    return [reply[at : at + size] for at in range(0, len(reply), size)]


async def test_a_sentence_is_read_before_the_next_one_is_written(project: App, script: Script) -> None:
    gates = {"held first": threading.Event(), "And": threading.Event()}
    first, second = gates.values()
    head, middle, tail = (
        '{"look": [], "answer": "They are held first [3]. A',
        "nd then? Settled [1]. T",
        'he end [3]."}',
    )
    script.will(Streams((*pieces(head), Waits(first), *pieces(middle), Waits(second), *pieces(tail))))
    reader = Reader(gates)

    made = await reader.ask(project)

    assert reader.read == ["They are held first [1].", "They are held first [1]. And then? Settled [2]."]
    assert made.text.startswith("They are held first [1]. And then? Settled [2]. The end [1].\n")
    last = reader.told[-1]
    assert last is not None and last.citations == made.citations and last.made_by == MODEL
    rows = await project.store.read(ORG, lambda tx: usage.recorded(tx, ORG, 0))
    assert [(row.tokens_in, row.tokens_out) for row in rows] == [(made.tokens_in, made.tokens_out)]
    assert await standing(project) == usage.Standing(0, made.tokens_in + made.tokens_out)


async def test_an_answer_is_the_same_whether_someone_reads_along_or_not(project: App, script: Script) -> None:
    script.will(*[says("First. Held [2].\n\n- one [1]\n- two [3]\n\n```py\nx[9]\n```\nLast [2].")] * 2)

    read, alone = await Reader().ask(project), await ask(project, QUESTION)

    assert read == alone
    assert [request.get("stream", False) for request in script.asked] == [True, False]


@pytest.mark.parametrize(
    ("bad", "seen"),
    [
        (says("Held first [1]. On Mars [77]. And so on [1]. End [1]."), ["Held first [1]."]),
        (says("On Mars [0]. Held [1]. End."), []),
        (says("On Mars. On Mars again. And more."), []),
        ('{"answer": "Held [1]. On M', ["Held [1]."]),
        ('{"answer": "Held [1]. On M\\ud83d. Held [1]. And", "look": []}', ["Held [1]."]),
        (Says("Mars, " * 40), []),
    ],
)
async def test_a_draft_that_cannot_be_used_is_taken_back(
    project: App, script: Script, bad: Any, seen: list[str]
) -> None:
    script.will(bad, says("Settled [1]. Yes [1]."))
    reader = Reader()

    made = await reader.ask(project)

    assert reader.read == [*seen, *([None] if seen else []), "Settled [1]."]
    assert (made.made_by, made.text.splitlines()[0]) == (MODEL, "Settled [1]. Yes [1].")
    assert "Mars" not in str(reader.read)


async def test_what_breaks_off_is_taken_back_and_rules_answer_in_the_end(project: App, script: Script) -> None:
    broken = Streams((*pieces(says("Held [1]. And then"))[:-1], Breaks()))
    script.will(broken, Fails(500), broken)
    reader = Reader()

    made = await reader.ask(project)

    assert reader.read == ["Held [1].", None, "Held [1]."]
    assert (made.made_by, made.note) == ("rules", f"Made by rules: The model {MODEL} broke off its answer, 3 times.")
    row = (await project.store.read(ORG, lambda tx: usage.recorded(tx, ORG, 0)))[0]
    # It may have worked for nothing: all that was set aside is counted.
    assert row.tokens_out == 4096


async def test_who_leaves_in_the_middle_has_made_the_model_work(project: App, script: Script) -> None:
    script.will(Streams((*pieces('{"answer": "Held [1]. And'), Waits(threading.Event()))))
    reader = Reader()
    asking = asyncio.create_task(reader.ask(project))
    while not reader.told and not asking.done():
        await asyncio.sleep(0.005)

    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    row = (await project.store.read(ORG, lambda tx: usage.recorded(tx, ORG, 0)))[0]
    assert row.tokens_in > 100 and row.tokens_out == 4096
    assert await standing(project) == usage.Standing(0, row.tokens_in + row.tokens_out)


async def test_nothing_that_no_longer_exists_is_read_along(project: App, script: Script, tmp_path: Path) -> None:
    less = moved(await repo_of(project, "api"), repository(tmp_path / "less", HISTORY[:2]))
    await project.store.write(ORG, lambda tx: repos.put(tx, less))

    def both(request: Any) -> str:
        kept, lost = numbered(script, "set aside before a call"), numbered(script, "Try calls again")
        return says(f"It tries again [{lost}]. Well. They are held [{kept}]. Both [{kept}][{lost}]. End [{kept}].")

    script.will(both)
    reader = Reader()

    made = await reader.ask(project)

    assert reader.read == ["Well. They are held [1].", "Well. They are held [1]. Both [1]."]
    assert made.text.startswith("Well. They are held [1]. Both [1]. End [1].\n")


async def test_a_draft_leads_away_as_little_as_the_answer(project: App, script: Script) -> None:
    script.will(says(f"Held [1]. {EVIL} and [2]. {EVIL} so [1]. End [2]."))
    reader = Reader()

    made = await reader.ask(project)

    for text in (made.text, *(one.text for one in reader.told if one)):
        head = text.partition("\n### Sources")[0]
        assert "](" not in head and "<script" not in head and " https://evil" not in head
    assert len(reader.told) == 3


async def test_a_server_without_pieces_answers_all_the_same(project: App, script: Script) -> None:
    script.will(Fails(501), says("Held [1]. End [1]."), says("Held [2]. End [2]."))
    reader = Reader()

    first, second = await reader.ask(project), await reader.ask(project)

    assert reader.told == []
    assert (first.made_by, second.made_by) == (MODEL, MODEL)
    assert [request.get("stream", False) for request in script.asked] == [True, False, False]
