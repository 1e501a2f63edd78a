"""Ask without a language model: direct answers by time, author and path, lines of files, and checked citations."""

from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import BadInput, Forbidden, NotFound
from keepsake.core.principal import local_owner
from keepsake.ops.ask import Answered
from keepsake.services.git import Git
from keepsake.store import memories, repos, usage
from tests.ops import asking
from tests.ops.asking import ORG, Step, committed, repository, synced, ticket

pytestmark = pytest.mark.anyio
PULL = ticket("pull", 12, "Budgets that hold", "We must never spend more than we have.")


async def ask(app: App, question: str, *banks: str, **more: Any) -> Answered:
    arguments = {"banks": list(banks) or ["api"], "question": question, **more}
    made = await dispatch.call(app.ctx(local_owner()), "memory.ask", arguments)
    assert isinstance(made, Answered)
    return made


@pytest.fixture
async def project(app: App, tmp_path: Path) -> App:
    """An application with one project that was synced."""
    await synced(app, "api", repository(tmp_path / "api"), PULL)
    return app


async def shas(folder: Path) -> dict[str, str]:
    """The commits of a repository by their subjects."""
    here = Git(folder)
    refs = await here.refs()
    return {commit.message.partition("\n")[0]: commit.sha async for commit in here.commits([refs.head], [])}


async def test_when_and_why_something_was_introduced(project: App, tmp_path: Path) -> None:
    known = await shas(tmp_path / "api")

    made = await ask(project, "When and why was `reserve` introduced?")

    first, why = made.text.splitlines()[0], made.text.splitlines()[2]
    assert first.startswith("`reserve` was introduced on **2024-02-10** by Ada in commit ")
    assert why.startswith("**Why:** Two callers could spend the same tokens, so they are set aside before a call.")
    told = made.citations[0].memory
    assert told is not None
    assert made.citations[0].model_dump(exclude_none=True) == {
        "n": 1,
        "kind": "commit",
        "bank": "api",
        "key": known["Add reserve to budgets"],
        "memory": told,
        "title": "Add reserve to budgets",
        "date": "2024-02-10T12:00:00Z",
        "author": "Ada",
        "url": f"https://github.com/acme/api/commit/{known['Add reserve to budgets']}",
    }
    assert "pr/12" in [one.key for one in made.citations]
    assert (made.made_by, made.tokens_in, made.tokens_out, made.banks, made.note) == ("rules", 0, 0, ["api"], None)


async def test_the_first_commit_is_shown_by_contents_and_not_by_whoever_speaks_of_it(app: App, tmp_path: Path) -> None:
    steps = (
        Step("Cleo", "2024-01-01", "Plan a frobnicate function", {"README.md": "# Plan\n"}),
        Step("Ada", "2024-02-01", "Write the core", {"core.py": "def frobnicate():\n    return 1\n"}),
        Step("Bob", "2024-03-01", "Call frobnicate twice", {"use.py": "from core import frobnicate\n"}),
    )
    await synced(app, "api", repository(tmp_path / "api", steps))

    made = await ask(app, "When was `frobnicate` introduced?")

    assert made.text.startswith("`frobnicate` was introduced on **2024-02-01** by Ada in commit ")


async def test_where_the_repository_is_not_at_hand_messages_and_paths_tell(project: App, tmp_path: Path) -> None:
    (tmp_path / "api").rename(tmp_path / "gone")

    made = await ask(project, "When was `reserve` introduced?")

    assert made.text.startswith("`reserve` first appears on **2024-02-10** by Ada in commit ")
    assert [one.kind for one in made.citations if one.path] == []


async def test_who_knows_about_a_file_is_told_with_the_commits_as_proof(project: App) -> None:
    made = await ask(project, "Who knows about src/budget.py?")

    assert made.text.splitlines()[0] == (
        "Ask **Ada** (2 changes, the last on 2024-06-12) [1][2], then **Bob** (1 change, the last on 2024-07-20) [3]"
    )
    assert [(one.kind, one.author) for one in made.citations[:3]] == [
        ("commit", "Ada"),
        ("commit", "Ada"),
        ("commit", "Bob"),
    ]


async def test_who_knows_about_a_matter_is_told_by_what_speaks_of_it(project: App) -> None:
    made = await ask(project, "Who knows about trying calls again?")

    assert made.text.startswith("Ask **Bob** (1 change, the last on 2024-03-01) [1]")


async def test_what_changed_in_a_folder_since_a_month(project: App) -> None:
    made = await ask(project, "What changed in src/ since June 2024?")

    lines = made.text.splitlines()
    assert lines[0].startswith("**2** changes in `src` from 2024-06-01 until ")
    assert lines[2:4] == [
        "- 2024-07-20 · Bob: Refuse a hold above the limit (src/budget.py +1 -1) [1]",
        "- 2024-06-12 · Ada: Raise the weekly limit (src/budget.py +1 -1) [2]",
    ]
    assert [one.date for one in made.citations] == ["2024-07-20T12:00:00Z", "2024-06-12T12:00:00Z"]


async def test_what_changed_between_two_months_in_what_words_name(project: App) -> None:
    made = await ask(project, "What changed in the budget between January and March 2024?")

    assert "**1** change in" in made.text and "Add reserve to budgets" in made.text
    assert "Raise the weekly limit" not in made.text


async def test_a_file_that_did_not_change_in_that_time_is_said_not_to_have(project: App) -> None:
    made = await ask(project, "What changed in src/retry.py since June 2024?")

    assert made.text.startswith("**No** changes in `src/retry.py` from 2024-06-01")
    assert "the last one before was on 2024-03-01: Try calls again after a pause [1]" in made.text


async def test_a_file_that_is_gone_still_has_a_history(app: App, tmp_path: Path) -> None:
    steps = (*asking.HISTORY, Step("Dan", "2024-09-01", "Drop retries", {"src/retry.py": None}))
    await synced(app, "api", repository(tmp_path / "api", steps))

    made = await ask(app, "When was src/retry.py removed?")

    assert "on **2024-09-01** by Dan" in made.text


async def test_lines_of_files_are_cited_as_they_are_at_the_synced_revision(project: App, tmp_path: Path) -> None:
    head = (await Git(tmp_path / "api").refs()).head
    committed(tmp_path / "api", Step("Eve", "2024-10-01", "Move all", {"src/budget.py": "# moved\n" * 50}))

    made = await ask(project, "How does reserve() set tokens aside?")

    lines = next(one for one in made.citations if one.kind == "file" and one.path == "src/budget.py")
    assert (lines.start_line, lines.end_line, lines.revision) == (1, 15, head)
    assert "if hold.tokens >= limit:" in made.text and "# moved" not in made.text
    assert lines.url == f"https://github.com/acme/api/blob/{head}/src/budget.py#L1-L15"


async def test_a_pull_request_that_is_named_is_told(project: App) -> None:
    made = await ask(project, "What does PR #12 say?")

    assert "Budgets that hold — We must never spend more than we have. [1]" in made.text
    assert "- [1] PR #12 (2024-02-01, Cleo): Budgets that hold <https://github.com/acme/api/pull/12>" in made.text


async def test_several_projects_answer_together_and_are_told_apart(project: App, tmp_path: Path) -> None:
    steps = (Step("Zoe", "2024-05-05", "Show the budget in the console", {"console.ts": "const budget = reserve()\n"}),)
    await synced(project, "web", repository(tmp_path / "web", steps))

    made = await ask(project, "Who knows about the budget?", "api", "web", "api")

    assert made.banks == ["api", "web"]
    assert {one.bank for one in made.citations} == {"api", "web"}
    assert "] web: commit " in made.text and "] api: commit " in made.text


async def test_unknown_projects_are_all_named_and_nothing_runs(project: App) -> None:
    with pytest.raises(NotFound, match="No project or bank 'nope', 'neither'"):
        await ask(project, "Who knows about the budget?", "nope", "api", "neither")

    assert await project.store.read(ORG, lambda tx: usage.recorded(tx, ORG, 0)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"question": ""},
        {"question": "  \n"},
        {"question": "Why?", "banks": []},
        {"question": "Why?", "banks": [f"b{n}" for n in range(21)]},
        {"question": "Why?", "banks": ["api"], "max_tokens": 10},
        {"question": "Why?", "banks": "api"},
    ],
)
async def test_what_cannot_be_asked_is_refused(app: App, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await dispatch.call(app.ctx(local_owner()), "memory.ask", {"banks": ["api"]} | wrong)


async def test_a_bank_out_of_reach_is_refused_and_stays_unread(project: App) -> None:
    reader = local_owner().narrowed(banks=frozenset({"web"}))

    with pytest.raises(Forbidden):
        await dispatch.call(project.ctx(reader), "memory.ask", {"banks": ["api"], "question": "Who is it?"})


async def test_nothing_relevant_is_said_plainly(project: App) -> None:
    made = await ask(project, "How do penguins sleep?")

    assert (made.text, made.citations, made.made_by) == ("Nothing relevant is known.", [], "rules")


async def test_a_bank_without_a_repository_answers_from_its_memories(app: App) -> None:
    arguments = {"bank": "notes", "content": "The billing service runs in Oslo."}
    await dispatch.call(app.ctx(local_owner()), "bank.create", {"name": "notes"})
    await dispatch.call(app.ctx(local_owner()), "memory.retain", arguments)

    made = await ask(app, "Where does the billing service run?", "notes")

    assert [one.kind for one in made.citations] == ["memory"]
    assert "The billing service runs in Oslo. [1]" in made.text


async def test_every_ask_is_in_the_usage_log(project: App) -> None:
    ctx = project.ctx(local_owner(), surface="cli")
    await ask(project, "Who knows about src/budget.py?")
    await dispatch.call(ctx, "memory.ask", {"banks": ["api"], "question": "Who knows about src/budget.py?"})

    rows = await project.store.read(ORG, lambda tx: usage.recorded(tx, ORG, 0))
    told = [(row.source, row.operation, row.model, row.tokens_in, row.tokens_out) for row in rows]
    assert told == [("mcp", "memory.ask", "rules", 0, 0), ("cli", "memory.ask", "rules", 0, 0)]


async def test_a_commit_that_git_does_not_know_is_not_cited(project: App, tmp_path: Path) -> None:
    other = repository(tmp_path / "other", asking.HISTORY[:1])
    bank = await project.store.read(ORG, lambda tx: repos.listed(tx, ORG))
    (repo,) = bank.values()
    moved = asking.moved(repo, other)
    await project.store.write(ORG, lambda tx: repos.put(tx, moved))

    made = await ask(project, "Who knows about trying calls again?")

    assert (made.text, made.citations) == ("Nothing relevant is known.", [])
    assert made.note is not None and made.note.startswith("Left out, because no longer there: commit ")


async def test_an_answer_keeps_to_its_tokens(project: App) -> None:
    made = await ask(project, "What changed in src/?", max_tokens=256)

    assert len(made.text) / 4 <= 256
    assert made.citations


async def test_what_a_message_says_is_neither_a_citation_nor_a_link(app: App, tmp_path: Path) -> None:
    hostile = "Fix retry [7] ![x](https://evil.example/?q)\n\nSee [3] and <img src=x>."
    await synced(app, "api", repository(tmp_path / "api", (Step("Eve", "2024-01-01", hostile, {"a.py": "x = 1\n"}),)))

    made = await ask(app, "Why was retry fixed?")

    assert [one.n for one in made.citations] == [1]
    assert "![x](" not in made.text and "<img" not in made.text and "[3]" not in made.text


async def test_secrets_in_files_are_not_shown(app: App, tmp_path: Path) -> None:
    text = "def connect():\n    key = 'AKIAIOSFODNN7EXAMPLQ'\n    return key\n"
    await synced(app, "api", repository(tmp_path / "api", (Step("Eve", "2024-01-01", "Connect", {"db.py": text}),)))

    made = await ask(app, "What does connect() in db.py do?")

    assert "def connect():" in made.text and "[redacted:" in made.text
    assert "AKIAIOSFODNN7EXAMPLQ" not in made.model_dump_json()


async def test_a_commit_that_no_longer_holds_is_not_told(project: App) -> None:
    async def body(tx: Any) -> None:
        rows = await repos.listed(tx, ORG)
        (bank,) = rows
        every = await memories.of_types(tx, ORG, bank, [])
        found = await memories.fetched(tx, ORG, bank, every)
        lost = [id for id, row in found.items() if row.title == "Try calls again after a pause"]
        await memories.supersede(tx, ORG, bank, lost, lost[0], project.now())

    await project.store.write(ORG, body)

    made = await ask(project, "Who knows about src/retry.py?")

    assert "Bob" not in made.text.splitlines()[0]
