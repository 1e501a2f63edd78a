"""Observations by rules: from a tool's use to words that can be found again."""

import pytest

from keepsake.core import observation, summary
from keepsake.core.envelope import Envelope, Tool
from keepsake.core.summary import Seen


def used(name: str, response: str = "", is_ok: bool = True, files: tuple[str, ...] = (), **given: object) -> Envelope:
    return Envelope(
        "claude-code", "s", "tool", 1, "/projects/api", "k", tool=Tool(name, given, response, is_ok), files=files
    )


def narrative(*events: Envelope) -> list[str]:
    return [one.narrative for one in observation.observed(events, "/projects/api")]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            used("Edit", files=("/projects/api/src/auth.ts",), new_lines=45, old_lines=45),
            "Modified auth.ts at src/auth.ts — updating 45 lines",
        ),
        (
            used("Edit", files=("src/routes.ts",), new_lines=18, old_lines=12),
            "Modified routes.ts at src/routes.ts — replacing 12 lines with 18 lines",
        ),
        (used("Write", files=("src/new.ts",), new_lines=1), "Modified new.ts at src/new.ts — writing 1 line"),
        (used("create_file", files=("src/new.ts",)), "Created new.ts at src/new.ts"),
        (
            used("Bash", "Tests: 2 failed, 45 passed", command="npm test"),
            "Ran npm test — Tests: 2 failed, 45 passed (failure)",
        ),
        (used("Bash", "== 47 passed in 2.1s ==", command="pytest"), "Ran pytest — 47 passed in 2.1s == (success)"),
        (used("Bash", "boom", is_ok=False, command="make build"), "Ran make build — boom (failure)"),
        (used("shell", "ok", command=["bash", "-lc", "cargo build"]), "Ran cargo build — ok (success)"),
        (used("WebSearch", "…", query="jwt expiry"), "Searched the web for “jwt expiry”"),
        (
            used("Task", "", description="Review auth", subagent_type="reviewer"),
            "Delegated to reviewer: Review auth (success)",
        ),
        (used("mcp__github__create_issue", title="Bug"), "Used github create_issue with title=Bug (success)"),
        (used("Read", files=("/elsewhere/x.md",)), "Read x.md to understand its structure"),
    ],
)
def test_a_tools_use_is_told(event: Envelope, told: str) -> None:
    assert narrative(event) == [told]


@pytest.mark.parametrize(
    "event",
    [
        used("Grep", pattern="x"),
        used("LS", path="/work"),
        used("TodoWrite"),
        used("Bash", command="cd src && ls -la | head"),
        used("Bash", command="git status; git diff"),
        used("Edit", is_ok=False, files=("a.ts",)),
        used("Read"),
    ],
)
def test_looking_around_is_not(event: Envelope) -> None:
    assert narrative(event) == []


def test_the_same_twice_is_told_once() -> None:
    run = used("Bash", "ok", command="make")

    assert narrative(run, run, used("Bash", "bad", is_ok=False, command="make"), run) == [
        "Ran make — ok (success)",
        "Ran make — bad (failure)",
        "Ran make — ok (success)",
    ]


def test_writing_through_a_shell_is_no_look() -> None:
    assert narrative(used("Bash", "", command="echo x > file.txt")) == ["Ran echo x > file.txt (success)"]


def test_a_summary_says_what_was_done_and_what_is_left() -> None:
    seen = [
        Seen("prompt", "Fix login", "Fix login"),
        Seen("file-read", "auth.ts", "Read auth.ts", ("src/auth.ts",)),
        Seen("command", "npm test", "Ran npm test — 1 failed (failure)"),
        Seen("file-write", "Modified auth.ts", "Modified auth.ts at src/auth.ts"),
        Seen("command", "npm test", "Ran npm test — 47 passed (success)"),
    ]
    said = "Login works now. The root cause was a stale cookie.\n\n## Next steps\n\n1. Rotate the keys\n2. Add a test"

    made = summary.by_rules(summary.Session(seen, said, place="codex on main"))

    assert made == {
        "request": "Fix login",
        "investigated": "Read src/auth.ts",
        "learned": "The root cause was a stale cookie.",
        "completed": "Modified auth.ts, Ran npm test — 47 passed (success)",
        "next_steps": "Rotate the keys\nAdd a test",
        "notes": "codex on main",
    }


def test_what_was_learned_stays_and_what_was_left_is_told_anew() -> None:
    before = {"request": "Fix login", "learned": "The cookie was stale.", "next_steps": "Rotate the keys"}
    seen = [Seen("prompt", "Rotate the keys", "Rotate the keys")]

    made = summary.by_rules(summary.Session(seen, "The keys are rotated.", before=before))

    assert made == {"request": "Fix login", "learned": "The cookie was stale."}


@pytest.mark.parametrize("said", ["Added the check. Next: add rate limiting.", "Done.\nNext up: add rate limiting."])
def test_what_an_answer_calls_next_is_the_next_step(said: str) -> None:
    assert summary.by_rules(summary.Session([], said, place=""))["next_steps"] == "add rate limiting."
