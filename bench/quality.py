"""`make bench-quality`: how well recall finds what it should, with no model but the packaged ones, on both stores.

`--static` measures the quick model alone, `--sqlite` leaves PostgreSQL out.

The data stands in ../shared/data and is not part of the project; a folder named by KEEPSAKE_BENCH_DATA may replace it.
"""

import asyncio
import json
import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import facts, history
from bench.__main__ import postgres
from keepsake import context, dispatch, settings, worker
from keepsake.context import App
from keepsake.core import text
from keepsake.core.principal import local_owner
from keepsake.tools import catalog

DATA = Path(os.environ.get("KEEPSAKE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
#: Recalls with little room, and the tokens of an answer that says no more than that there is no room.
RECALLS, LEAST = 300, 16
KINDS = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the keys of what answers it."""

    question: str
    gold: frozenset[str]
    kind: str


@dataclass(slots=True)
class Score:
    """Averages over questions."""

    recall5: list[float] = field(default_factory=list)
    recall10: list[float] = field(default_factory=list)
    reciprocal: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)

    def add(self, found: Sequence[str], gold: frozenset[str]) -> None:
        """Count one question."""
        self.recall5.append(len(gold.intersection(found[:5])) / len(gold))
        self.recall10.append(len(gold.intersection(found[:10])) / len(gold))
        first = next((n for n, key in enumerate(found, 1) if key in gold), None)
        self.reciprocal.append(1 / first if first else 0.0)
        got = sum(1 / math.log2(n + 1) for n, key in enumerate(found[:10], 1) if key in gold)
        self.gain.append(got / sum(1 / math.log2(n + 1) for n in range(1, min(len(gold), 10) + 1)))

    def row(self) -> str:
        """As percentages."""
        parts = (self.recall5, self.recall10, self.reciprocal, self.gain)
        return "  ".join(f"{100 * sum(part) / max(1, len(part)):5.1f}" for part in parts)


async def load(app: App, bank: str, items: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Retain items in order, each with its key."""
    ctx = app.ctx(local_owner(), bank)
    for key, arguments in items:
        await dispatch.call(ctx, "memory.retain", {**arguments, "metadata": {"key": key}})


async def found(app: App, bank: str, question: str) -> list[str]:
    """The keys of what recall finds, best first, each once."""
    ctx = app.ctx(local_owner(), bank)
    result = await dispatch.call(ctx, "memory.recall", {"query": question, "max_tokens": 100_000})
    keys = [hit["memory"]["metadata"]["key"] for hit in result.model_dump()["hits"]]
    return list(dict.fromkeys(keys))


def turns(conversation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each turn as a memory, at the time of its session."""
    made = []
    numbers = sorted(int(name.split("_")[1]) for name in conversation if re.fullmatch(r"session_\d+", name))
    for number in numbers:
        held = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for n, turn in enumerate(conversation[f"session_{number}"]):
            moment = held.replace(tzinfo=UTC) + timedelta(seconds=n)
            shown = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            content = f"{turn['speaker']}: {turn['text']}{shown}"
            made.append((turn["dia_id"], {"content": content, "happened_at": moment.isoformat()}))
    return made


async def locomo(app: App, sharp: bool) -> None:
    """Conversations: one bank each, one memory a turn."""
    scores: dict[str, Score] = {}
    empty = [0, 0]
    for number, sample in enumerate(json.loads((DATA / "locomo-dev.json").read_text())):
        items = turns(sample["conversation"])
        known = {key for key, _ in items}
        await load(app, f"locomo{number}", items)
        await worked(app, sharp)
        for qa in sample["qa"]:
            gold = frozenset(known.intersection(qa.get("evidence", [])))
            keys = await found(app, f"locomo{number}", qa["question"])
            if qa["category"] == 5:
                empty[0] += not keys
                empty[1] += 1
            elif gold:
                for name in ("all", KINDS[qa["category"]]):
                    scores.setdefault(name, Score()).add(keys, gold)
    for name, score in scores.items():
        print(f"  locomo {name:<12} {score.row()}   ({len(score.gain)} questions)", flush=True)
    print(f"  locomo: nothing returned for {empty[0]} of {empty[1]} questions that have no answer")


async def commits(app: App, sharp: bool) -> None:
    """A changelog's bullets, answered by commits: one memory a commit."""
    data = json.loads((DATA / "commits-sqlite-utils.json").read_text())
    items = []
    for n, doc in enumerate(data["docs"]):
        content = f"{doc['subject']}\n\n{doc['body']}".strip() or "(no message)"
        filed = {"happened_at": doc["date"], "category": f"commit {doc['id']}", "whole": True}
        items.append((str(n), {"content": content, **filed}))
    await load(app, "commits", items)
    await worked(app, sharp)
    score = Score()
    for query in data["queries"]:
        gold = frozenset(str(id) for id in query["rel"])
        score.add(await found(app, "commits", query["q"]), gold)
    print(f"  commits             {score.row()}   ({len(score.gain)} questions)", flush=True)


async def worked(app: App, sharp: bool) -> None:
    """Let the background do its work; without the sharper vectors, all but them."""
    if not sharp:
        worker.HANDLERS["embed"] = _left_alone
    while await worker.step(app):
        pass


async def _left_alone(*_: object) -> None:
    """The static tier alone."""


async def short_facts(app: App, sharp: bool) -> None:
    """Our own facts: asked in other words, by their identifiers, and with little room for an answer."""
    asked, exact = facts.paraphrased(), facts.identified()
    await load(app, "facts", [(fact.key, {"content": fact.text}) for fact in asked])
    await load(app, "identifiers", [(fact.key, {"content": fact.text}) for fact in exact])
    await worked(app, sharp)
    hits = [fact.key in (await found(app, "facts", fact.question))[:5] for fact in asked]
    print(
        f"  paraphrased questions about {len(hits):,} facts: hit@5 {sum(hits) / len(hits):.3f}   (bar 0.9)", flush=True
    )
    hits = [(await found(app, "identifiers", fact.question))[:1] == [fact.key] for fact in exact]
    print(f"  exact identifiers, {len(hits)}: hit@1 {sum(hits) / len(hits):.3f}   (bar 1.0)", flush=True)
    over = await too_long(app, asked)
    print(f"  answers above max_tokens: {over} of {RECALLS}   (bar 0)", flush=True)


async def too_long(app: App, asked: Sequence[facts.Fact]) -> int:
    """How many answers cost more than they may, as JSON, with room for anything from nothing to all."""
    dice = random.Random(facts.SEED)
    door = dispatch.Door(catalog.DIALECTS["hindsight"])
    over = 0
    for fact in dice.sample(list(asked), RECALLS):
        most = dice.choice((dice.randrange(1, 100), dice.randrange(100, 1_000)))
        given = {"query": fact.question, "max_tokens": most, "bank_id": "facts"}
        result = await dispatch.call_tool(app.ctx(local_owner()), door, "recall", given)
        over += text.cost(result.model_dump_json(exclude_none=True)) > max(most, LEAST)
    return over


async def measured(sharp: bool, url: str = "") -> None:
    """Every set on a fresh store."""
    print(
        f"{'PostgreSQL' if url else 'SQLite':<24}R@5   R@10    MRR  nDCG@10"
        + ("" if sharp else "   (static tier alone)")
    )
    with tempfile.TemporaryDirectory() as folder:
        given = {"KEEPSAKE_DATABASE_URL": url} if url else {}
        async with context.open(settings.load(given, data_dir=Path(folder))) as app:
            await short_facts(app, sharp)
            await commits(app, sharp)
            await locomo(app, sharp)


def main() -> None:
    """Both stores, one after the other; their figures must be within one point of each other."""
    sharp = "--static" not in sys.argv
    asyncio.run(measured(sharp))
    if "--sqlite" not in sys.argv:
        with postgres() as url:
            asyncio.run(measured(sharp, url))
    history.main()


if __name__ == "__main__":
    main()
