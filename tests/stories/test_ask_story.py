"""Before an agent touches code it asks why the code is as it is: by rules, then with a language model; both stores."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Database
from tests.llm_server import MODEL, Script, serving
from tests.ops.asking import BUDGET, Step, committed, repository
from tests.stories.living import Assistant, living
from tests.surfaces.serving import BOTH, called

pytestmark = pytest.mark.anyio
WHY = "When and why was `reserve` introduced?"
MORE = Step("Dan", "2026-11-17", "Grant holds again\n\nRefusing them broke imports.", {"src/budget.py": BUDGET})


@pytest.fixture
def script() -> Iterator[Script]:
    with serving() as script:
        yield script


@pytest.fixture
async def agent(database: Database, tmp_path: Path) -> AsyncIterator[Assistant]:
    async with living(database, tmp_path / "data", "2026-11-16T08:00:00Z") as agent:
        yield agent


async def ask(agent: Assistant, question: str, *slugs: str) -> tuple[str, bool]:
    """What the keystone tool answers, and whether it is an error."""
    message = called("ask", {"projectSlugs": list(slugs), "question": question})
    answer = await agent._http.post("/api/mcp", json=message, headers={"Accept": BOTH})
    result = answer.json()["result"]
    return result["content"][0]["text"], bool(result.get("isError"))


async def synced(agent: Assistant, bank: str, folder: Path, day: int) -> None:
    await agent.operation("bank.sync", bank=bank, repo=str(folder))
    await agent.day(day)


def reads(path: str) -> str:
    return json.dumps({"look": [{"action": "read", "bank": "api", "path": path}], "answer": ""})


def cites(request: dict[str, Any]) -> str:
    """An answer that cites what the model was given last."""
    lines = [line for line in request["messages"][-1]["content"].splitlines() if line.startswith('{"n"')]
    return json.dumps({"look": [], "answer": f"A hold is compared with the limit [{json.loads(lines[-1])['n']}]."})


async def test_an_agent_asks_before_it_changes_code(agent: Assistant, script: Script, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    await synced(agent, "api", folder, 1)

    # By rules: the commit, its reason and the lines, each with an address.
    told, is_error = await ask(agent, WHY, "api")
    assert not is_error
    assert told.startswith("`reserve` was introduced on **2024-02-10** by Ada in commit ")
    assert "**Why:** Two callers could spend the same tokens" in told
    assert "https://github.com/acme/api/commit/" in told and "src/budget.py#L" in told
    assert (await ask(agent, WHY, "api", "nope"))[0].startswith("No project or bank 'nope'.")

    # The code goes on; what was not synced is not known, and then it is.
    committed(folder, MORE)
    assert "Dan" not in (await ask(agent, "Who knows about src/budget.py?", "api"))[0]
    await synced(agent, "api", folder, 3)
    told, _ = await ask(agent, "What changed in src/budget.py since yesterday?", "api")
    assert "2026-11-17 · Dan: Grant holds again (src/budget.py " in told

    # With a language model, which looks into a file before it answers.
    await agent.restart(KEEPSAKE_LLM_BASE_URL=script.url, KEEPSAKE_LLM_MODEL=MODEL)
    script.will(reads("src/budget.py"), cites)
    made = await agent.operation("memory.ask", banks=["api"], question="How is a hold checked?")
    assert made["text"].startswith("A hold is compared with the limit [1].\n\n### Sources\n\n- [1] src/budget.py#L1-L")
    assert (made["made_by"], made["citations"][0]["path"]) == (MODEL, "src/budget.py")

    # All of it is in the usage log, and what the model cost is on the week's budget.
    used = await agent.operation("usage.get")
    asked = [(call["source"], call["model"]) for call in used["calls"] if call["operation"] == "memory.ask"]
    assert asked == [("web", MODEL), *[("mcp", "rules")] * 3]
    assert used["spent"] == made["tokens_in"] + made["tokens_out"] > 0 == used["reserved"]

    # Next to nothing is left: a refusal that says until when, and searching still costs nothing.
    limit = str(used["spent"] + 10)
    await agent.restart(KEEPSAKE_LLM_BASE_URL=script.url, KEEPSAKE_LLM_MODEL=MODEL, KEEPSAKE_WEEKLY_TOKEN_LIMIT=limit)
    told, is_error = await ask(agent, WHY, "api")
    assert is_error and "it begins anew on Monday, 2026-11-23T00:00:00Z." in told
    found = await agent.operation("memory.recall", bank="api", query="reserve tokens before a call")
    assert found["hits"] and len(script.asked) == 2
