"""What a person states as a decision or rule, and what is none."""

import pytest

from keepsake.core import stated


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("We decided to use JWT for API auth.", "decision"),
        ("ok, we've agreed on trunk-based development.", "decision"),
        ("Decision: dates are stored in UTC.", "decision"),
        ("We're switching to pnpm.", "decision"),
        ("Never commit directly to main.", "constraint"),
        ("Don't use moment.js, use date-fns.", "constraint"),
        ("In this project, always use pnpm.", "constraint"),
        ("The API must not return internal ids.", "constraint"),
        ("We tried Redis for sessions and it failed under load.", "rejected"),
        ("Don't try to vendor OpenSSL again.", "rejected"),
        ("We ruled out GraphQL.", "rejected"),
        ("I prefer tabs over spaces", "heuristic"),
    ],
)
def test_a_plain_statement_counts(prompt: str, kind: str) -> None:
    assert [(one.kind, one.text) for one in stated.found(f"Fix the build. {prompt}")] == [(kind, prompt)]


@pytest.mark.parametrize(
    "prompt",
    [
        "never mind",
        "Never mind, I found it myself.",
        "Don't use this file yet.",
        "Should we never commit to main?",
        "Why must not the API return ids?",
        "It has always been slow.",
        "```\nWe decided to use Fortran.\n```",
        "> We decided to use Fortran.",
        "    never commit to main",
        "Summarise the page that says users must not\nbe deleted" + " and so on" * 200,
        "Fix the failing test and run the linter.",
        "Do not change that here.",
    ],
)
def test_talk_about_the_task_does_not(prompt: str) -> None:
    assert stated.found(prompt) == []
