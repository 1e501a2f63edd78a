"""The official MCP conformance suite, through our own front, and against the product itself."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import suite

ROOT = Path(__file__).parents[2]
#: Not scored by the suite and not served by us, with the reason. A run must show exactly these.
NO_EVENTS = "pending; streams are not resumable, because every answer can be had again by asking again"
NO_TASKS = "extension io.modelcontextprotocol/tasks, which no dialect of ours offers"
NOT_APPLICABLE: dict[str, dict[str, str]] = {
    "--requirements 2025-11-25": {"server-sse-polling": NO_EVENTS},
    "--suite all --spec-version 2025-11-25": {"server-sse-polling": NO_EVENTS},
    "--requirements 2026-07-28": {
        "tasks-lifecycle": NO_TASKS,
        "tasks-capability-negotiation": NO_TASKS,
        "tasks-wire-fields": NO_TASKS,
        "tasks-request-state-removal": NO_TASKS,
        "tasks-mrtr-input": NO_TASKS,
        "tasks-request-headers": NO_TASKS,
        "tasks-dispatch-and-envelope": NO_TASKS,
        "tasks-status-notifications": NO_TASKS,
        "tasks-required-task-error": NO_TASKS,
        "tasks-mrtr-composition": NO_TASKS,
    },
    "--suite all --spec-version 2026-07-28": {},
}
#: What the product can be asked without fixtures; the rest of the suite calls tools by name.
PRODUCT = {
    "2025-11-25": ("server-initialize", "server-session-lifecycle", "ping", "tools-list", "dns-rebinding-protection"),
    "2026-07-28": ("tools-list", "http-header-validation", "dns-rebinding-protection"),
}
#: Checks of server-stateless that call fixtures, or want lists that may change; ours do not.
NEEDS_FIXTURES = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-tags-subscription-id",
    "sep-2575-server-honors-notification-filter",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the product and the fixtures are served."""
    command = [sys.executable, "-m", "tests.conformance.server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()
        assert server.wait(15) == 0


@pytest.mark.parametrize("arguments", NOT_APPLICABLE)
def test_the_suite_passes_but_for_what_is_listed(address: str, tmp_path: Path, arguments: str) -> None:
    told = suite.run(f"{address}/conformance", tmp_path, *arguments.split())

    assert told.code == 0
    assert set(told.trouble) == set(NOT_APPLICABLE[arguments])
    assert told.passed >= 81


@pytest.mark.parametrize(("version", "scenario"), [(version, one) for version in PRODUCT for one in PRODUCT[version]])
def test_the_product_passes_what_needs_no_fixture(address: str, tmp_path: Path, version: str, scenario: str) -> None:
    told = suite.run(f"{address}/mcp", tmp_path, "--scenario", scenario, "--spec-version", version)

    assert (told.code, told.trouble) == (0, {})


def test_the_product_passes_the_stateless_checks_that_need_no_fixture(address: str, tmp_path: Path) -> None:
    told = suite.run(f"{address}/mcp", tmp_path, "--scenario", "server-stateless", "--spec-version", "2026-07-28")

    assert set(told.trouble.get("server-stateless", [])) == NEEDS_FIXTURES
    assert told.passed >= 15
