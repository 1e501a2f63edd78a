"""Summaries by a language model: held to the events, paid from the background's budget, and rules where it fails."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keepsake import dispatch, settings
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.services import llm
from keepsake.tools import catalog
from tests.hooks.replaying import all_rows, kept, recorded, tell, worked
from tests.llm_server import MODEL, Fails, Script, serving


@pytest.fixture
def thinking(app: App) -> Any:
    """The application with a language model, and what that will say."""
    with serving() as script:
        environment = {"KEEPSAKE_LLM_BASE_URL": script.url, "KEEPSAKE_LLM_MODEL": MODEL, "KEEPSAKE_LLM_TIMEOUT": "10"}
        made = replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))
        asked = llm.configured(made.settings)
        assert asked is not None
        asked.pause_s = 0.01
        yield made, script


async def session(app: App, root: Path) -> None:
    for _, given in recorded("claude-code", root):
        await tell(app, "claude-code", given, root)
    await worked(app)


def fields(**told: str) -> str:
    names = ("request", "investigated", "learned", "completed", "next_steps", "notes")
    return json.dumps({name: told.get(name, "") for name in names})


async def test_a_model_sums_up_what_the_events_bear_out(thinking: tuple[App, Script], root: Path) -> None:
    app, script = thinking
    script.will(fields(completed="Modified auth.ts so that the API checks JWT", learned="Unicorns sang of 99 zebras"))

    await session(app, root)

    (found,) = await kept(app, root, "summary")
    assert found.author == MODEL
    assert found.parts["completed"] == "Modified auth.ts so that the API checks JWT"
    assert found.parts["learned"] == "The problem was that the router skipped the middleware."
    assert len(script.asked) == 1
    rows = await all_rows(app, "SELECT operation, principal FROM usage")
    assert [(row["operation"], row["principal"]) for row in rows] == [("session.summarise", "background")]


@pytest.mark.parametrize("line", [Fails(500), "no JSON at all", fields(notes="Zebras dance 12345 tangos")])
async def test_rules_sum_up_where_a_model_fails(thinking: tuple[App, Script], root: Path, line: Any) -> None:
    app, script = thinking
    script.will(*[line] * 6)

    await session(app, root)

    (found,) = await kept(app, root, "summary")
    assert found.author == "rules"
    assert found.parts["completed"] == "Modified auth.ts, Ran npm test — 47 tests passed (success)"


async def test_forgetting_a_rule_takes_its_prompt_and_the_summary_along(app: App, root: Path) -> None:
    await session(app, root)
    decision, constraint = await kept(app, root, "decision", "constraint")
    door = dispatch.Door(catalog.DIALECTS["hindsight"])
    bank = (await all_rows(app, "SELECT name FROM banks"))[0]["name"]

    arguments = {"memory_id": str(decision.id), "bank_id": bank}
    await dispatch.call_tool(app.ctx(local_owner()), door, "delete_memory", arguments)

    left = json.dumps([dict(row) for row in await all_rows(app, "SELECT title, text, parts FROM memories")])
    assert "We decided" not in left and constraint.text in left
    indexed = await all_rows(app, "SELECT body FROM search_docs")
    assert not [row for row in indexed if "decid" in row["body"]]
