"""`python -m bench.history`: how well a project's own history is found, on the commits of a public repository.

KEEPSAKE_BENCH_REPO names a clone of one; the figures in our papers are of https://github.com/pallets/flask.

A question is made by machine from one commit, and says what a person would know who does not have its message:

* **who is asked about**: 200 commits, drawn by a fixed seed from those that are no merge, change a line within a Python
  function, and whose message has at least four telling words (three letters or more, no stop word, no number;
  trailers, addresses and `#12` do not count);
* **the function**: the one around most of the changed lines, looked up in the file after the commit, in code rather
  than in tests; of `__init__` and its like, the class;
* **the intent**: the bullet that the commit adds to the changelog, where it adds one and says it in other words than
  its message; else every second of the message's first twelve telling words, in the order of the alphabet.

Asked is `When and why was FUNCTION changed: INTENT?`, of a bank that holds everything that a sync brings: every commit,
tag, document. The commit must be among the first five memories; a commit with the very same message counts as it, for
that is a cherry-pick.
"""

import asyncio
import os
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keepsake import context, dispatch, settings, worker
from keepsake.context import App
from keepsake.core import text
from keepsake.core.principal import local_owner

REPO = os.environ.get("KEEPSAKE_BENCH_REPO", "")
BANK = "history"
SEED, SAMPLE = 5, 200
#: Telling words that a message must have, and those of them that a question is made from.
LEAST, FIRST = 4, 12
#: Bullets that a commit may add to a changelog; more are a rewording of the whole.
BULLETS = 3
_TRAILER = re.compile(r"^\s*(?:[\w-]+-by:|git-svn-id:|Change-Id:).*$", re.MULTILINE | re.IGNORECASE)
_NOISE = re.compile(r"https?://\S+|\S+@\S+|(?:[\w-]+/[\w-]+)?#\d+|:(?:issue|pr):`\d+`|:\w+:(?=`)|[`*]")
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_OPENS = re.compile(r"^(\s*)(?:async\s+)?(def|class)\s+(\w+)")
_BULLET = re.compile(r"^\+\s*[-*]\s+(.+(?:\n\+[ \t]+[^\s*-].*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with what it changed, by path."""

    sha: str
    message: str
    changes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the commits that answer."""

    text: str
    gold: frozenset[str]
    #: `changelog` or `message`: where the intent comes from.
    kind: str


def git(repo: Path, *given: str) -> str:
    """What git says of the repository."""
    command = ["git", "-C", str(repo), *given]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")


def commits(repo: Path) -> Iterator[Commit]:
    """Every commit that is no merge, with its changes."""
    whole = git(repo, "log", "--no-merges", "-p", "-U0", "--no-ext-diff", "--format=%x00%H%x01%B%x01", "HEAD")
    for part in whole.split("\0")[1:]:
        sha, message, changes = part.split("\1", 2)
        files = re.split(r"^diff --git ", changes, flags=re.MULTILINE)[1:]
        yield Commit(sha, message.strip(), {file.split("\n", 1)[0].rpartition(" b/")[2]: file for file in files})


def telling(told: str) -> list[str]:
    """The words that say something, each once."""
    words = text.words(_NOISE.sub(" ", _TRAILER.sub("", told)))
    return [one for one in dict.fromkeys(words) if len(one) > 2 and one not in text.STOP_WORDS and not one.isdigit()]


def changed(commit: Commit) -> list[tuple[str, int]]:
    """The lines of Python that a commit changed: in code, or, where it changed none, in tests."""
    lines = [
        (path, int(match[1]) + n)
        for path, file in commit.changes.items()
        if path.endswith(".py")
        for match in _HUNK.finditer(file)
        for n in range(min(int(match[2] or 1), 200) or 1)
    ]
    return [one for one in lines if "test" not in one[0]] or lines


def around(lines: Sequence[str], number: int) -> str:
    """The function that a line stands in; the class, where that says more; empty for neither."""
    depth, name = 1_000, ""
    for line in reversed(lines[:number]):
        opened = _OPENS.match(line)
        if depth == 1_000 and line.strip() and not opened:
            depth = len(line) - len(line.lstrip())
        if opened and len(opened[1]) < depth:
            depth = len(opened[1])
            if opened[2] == "def" or name:
                name = opened[3]
            if name and not name.startswith("__"):
                return name
    return name


def function(repo: Path, commit: Commit) -> str:
    """The function that a commit changed most; empty when it changed none."""
    names: Counter[str] = Counter()
    files: dict[str, list[str]] = {}
    for path, number in changed(commit):
        if path not in files:
            is_there = "\n+++ b/" in commit.changes[path]
            files[path] = git(repo, "show", f"{commit.sha}:{path}").splitlines() if is_there else []
        names[around(files[path], number)] += 1
    del names[""]
    return min(names, key=lambda name: (-names[name], name), default="")


def bullet(commit: Commit) -> str:
    """What a commit says of itself in the changelog; empty where it says nothing."""
    added = [
        " ".join(_NOISE.sub("", match[1].replace("\n+", " ")).split())
        for path, file in commit.changes.items()
        if Path(path).name.upper().startswith(("CHANGE", "HISTORY", "NEWS"))
        for match in _BULLET.finditer(file)
    ]
    return added[0] if 0 < len(added) <= BULLETS else ""


def intent(commit: Commit) -> tuple[str, str]:
    """What a commit was for, and where that comes from."""
    told, words = bullet(commit), telling(commit.message)
    own = set(telling(told))
    if len(own) >= LEAST and not own <= set(words) and not set(telling(commit.message.split("\n")[0])) <= own:
        return told, "changelog"
    return " ".join(sorted(words[:FIRST:2])), "message"


def questions(repo: Path) -> list[Question]:
    """The sample: the same for everyone who has the repository."""
    every = list(commits(repo))
    twins: dict[str, set[str]] = {}
    for commit in every:
        twins.setdefault(commit.message, set()).add(commit.sha)
    asked: list[Question] = []
    dice = random.Random(SEED)
    for commit in dice.sample(every, len(every)):
        if len(telling(commit.message)) < LEAST or not (name := function(repo, commit)):
            continue
        what, kind = intent(commit)
        gold = frozenset(twins[commit.message])
        asked.append(Question(f"When and why was {name} changed: {what.rstrip('.')}?", gold, kind))
        if len(asked) == SAMPLE:
            break
    return asked


@dataclass(slots=True)
class Score:
    """Where the commits were found that answer."""

    ranks: list[int | None] = field(default_factory=list)

    def at(self, most: int) -> float:
        """The share of questions whose commit is among the first so many."""
        return sum(rank is not None and rank <= most for rank in self.ranks) / max(1, len(self.ranks))

    def row(self) -> str:
        """As percentages."""
        return "  ".join(f"{100 * self.at(most):5.1f}" for most in (1, 5, 10))


async def asked(app: App, questions: Sequence[Question]) -> dict[str, Score]:
    """Ask all of them; the scores by where the intent comes from, and of all."""
    scores = {kind: Score() for kind in ("all", "message", "changelog")}
    ctx = app.ctx(local_owner(), BANK)
    for question in questions:
        found = await dispatch.call(ctx, "memory.recall", {"query": question.text, "max_tokens": 100_000})
        keys = [hit["memory"]["metadata"].get("sha") for hit in found.model_dump()["hits"]]
        rank = next((n for n, key in enumerate(keys, 1) if key in question.gold), None)
        for kind in ("all", question.kind):
            scores[kind].ranks.append(rank)
    return scores


async def measured(repo: Path) -> None:
    """Sync the repository once, and ask with each model."""
    questions_ = questions(repo)
    with tempfile.TemporaryDirectory() as folder:
        async with context.open(settings.load({}, data_dir=Path(folder))) as app:
            await dispatch.call(app.ctx(local_owner(), BANK), "bank.sync", {"repo": str(repo)})
            while await worker.step(app, ["sync"]):
                pass
            print(f"History of {repo}, {len(questions_)} questions")
            print(f"{'':<24}hit@1  hit@5  hit@10")
            show("quick model", await asked(app, questions_))
            while await worker.step(app, ["embed"]):
                pass
            show("sharp model", await asked(app, questions_))
            await app.store.write(1, lambda tx: tx.run("DELETE FROM vectors WHERE org = 1"))
            show("words only", await asked(app, questions_))


def show(name: str, scores: dict[str, Score]) -> None:
    """One line for all questions, and one for each kind of them."""
    for kind, score in ((kind, score) for kind, score in scores.items() if score.ranks):
        bar = "   (bar: 80 at 5)" if kind == "all" and name != "words only" else ""
        print(f"  {name + ', ' + kind:<22}{score.row()}   ({len(score.ranks)}){bar}", flush=True)


def main() -> None:
    """Measure where there is a repository; else say what to fetch."""
    if not REPO:
        print("History: not measured. Clone https://github.com/pallets/flask and name it by KEEPSAKE_BENCH_REPO.")
        return
    asyncio.run(measured(Path(REPO)))


if __name__ == "__main__":
    main()
