"""The keepsake dialect over the real wires: what a newcomer's agent meets at its address and over stdio."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepsake.surfaces import mcp
from keepsake.tools import catalog
from keepsake.tools.dialect import Dialect
from tests.surfaces import serving
from tests.surfaces.helpers import Terminal, keepsake
from tests.surfaces.serving import Client, Json, called, initialize, notification, request

__all__ = ["keepsake"]
NAMES = ["context", "recall", "ask", "timeline", "get", "status", "remember", "decide", "correct", "forget"]
#: Tokens, by characters / 4, that listing all tools may cost.
BUDGET = 2_500


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """Keys of a server that asks for one."""
    made = {"owner": serving.made_key(folder, "owner", "--scope", "admin", "--scope", "memory:read")}
    made["work"] = serving.made_key(folder, "work", "--bank", "work")
    return made | {"reader": serving.made_key(folder, "reader", "--scope", "memory:read")}


@pytest.fixture
def clients(address: str, keys: dict[str, str]) -> dict[str, Client]:
    return {name: Client(f"{address}/keepsake/mcp", {"Authorization": f"Bearer {key}"}) for name, key in keys.items()}


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[serving.Pipe]:
    with serving.piped(tmp_path, "-m", "keepsake", "stdio") as pipe:
        yield pipe


def text(answer: Json) -> str:
    assert "isError" not in answer["result"] or not answer["result"]["isError"], answer
    (part,) = answer["result"]["content"]
    return str(part["text"])


@pytest.mark.parametrize("dialect", [catalog.DIALECTS["keepsake"], catalog.BOUND["keepsake"]], ids=["any", "one"])
def test_listing_every_tool_costs_little_and_says_when_to_use_it(dialect: Dialect) -> None:
    listed = [mcp.listed(tool) for tool in dialect.tools.values()]

    told = json.dumps({"tools": [one.model_dump(by_alias=True, exclude_none=True) for one in listed]})
    assert [one.name for one in listed] == NAMES
    assert len(told) / 4 < BUDGET
    for one in listed:
        assert one.description is not None and re.search("Use it|Call it|Only when", one.description), one.name
        assert all("description" in argument for argument in one.input_schema["properties"].values()), one.name
    assert all(
        ("bank" in one.input_schema["properties"]) is (dialect is catalog.DIALECTS["keepsake"]) for one in listed
    )


def test_a_key_of_one_bank_works_there_and_nowhere_else(clients: dict[str, Client]) -> None:
    work, reader = clients["work"], clients["reader"]
    stored = text(work.call("remember", {"content": "The pager number is 4711."}))

    assert re.fullmatch(r"Remembered as \[\d+\] in bank `work`\.", stored)
    assert "4711" in text(work.call("recall", {"query": "pager number"}))
    assert "4711" not in text(reader.call("recall", {"query": "pager number"}))
    assert "4711" in text(reader.call("recall", {"query": "pager number", "bank": "work"}))
    assert "4711" in text(reader.call("recall", {"query": "pager number"}, X_Bank_Id="work"))
    refused = work.post(called("recall", {"query": "x", "bank": "default"}))
    assert refused.status_code == 403 and refused.json()["error"]["code"] == -32003
    assert work.post(called("recall", {"query": "x"}), X_Bank_Id="default").status_code == 403


def test_tools_are_listed_by_right_and_forget_always_to_writers(clients: dict[str, Client]) -> None:
    listed = {
        name: [
            one["name"]
            for one in client.post(request("tools/list"), Accept="application/json").json()["result"]["tools"]
        ]
        for name, client in clients.items()
    }

    assert listed["work"] == NAMES
    assert listed["reader"] == listed["owner"] == NAMES[:6]
    refused = clients["reader"].post(called("forget", {"id": "1"}))
    assert refused.status_code == 403 and "memory:write" in refused.json()["error"]["message"]


def test_forgetting_without_the_right_gives_a_page_and_deletes_nothing(
    clients: dict[str, Client], folder: Path
) -> None:
    work = clients["work"]
    id = re.findall(r"\d+", text(work.call("remember", {"content": "The safe is behind the clock."})))[0]

    answer = work.post(called("forget", {"id": id, "reason": "asked"}), Accept="application/json")

    told = text(answer.json())
    page = re.search(r"http\S+/console/approve/(\d+)", told)
    token = re.search(r"ks_prop_\w+", told)
    assert answer.status_code == 200 and page and token
    assert "behind the clock" in text(work.call("get", {"ids": [id]}))
    serving.keepsake(folder, "approvals", "approve", page[1])
    assert text(work.call("forget", {"id": id, "token": token[0]})).startswith("Deleted for good: 1 memories.")
    assert work.call("get", {"ids": [id]})["result"]["isError"] is True


def test_stdio_speaks_it_unless_told_otherwise(pipe: serving.Pipe) -> None:
    begun = pipe.ask(initialize())["result"]
    pipe.send(notification("notifications/initialized"))
    listed = pipe.ask(request("tools/list", id=2))["result"]["tools"]
    decided = pipe.ask(called("decide", {"title": "Ship on Mondays", "rationale": "Fridays burnt us."}, id=3))
    known = pipe.ask(called("context", {"query": "when do we ship"}, id=4))
    wrong = pipe.ask(called("retain", {"content": "x"}, id=5))

    assert begun["serverInfo"]["name"] == "keepsake" and "`context`" in begun["instructions"]
    assert [one["name"] for one in listed] == NAMES and not any("outputSchema" in one for one in listed)
    assert text(decided).startswith("Recorded decision [")
    assert text(known).startswith("## Decided and ruled out\n- [") and "structuredContent" not in known["result"]
    assert wrong["error"]["code"] == -32602


def test_a_terminal_shows_the_text_itself(keepsake: Terminal) -> None:
    keepsake("call", "remember", "--content", "Tea is at four.")

    told = keepsake("call", "recall", "--query", "When is tea?").out
    as_json = keepsake("call", "recall", "--query", "When is tea?", "--json").json

    assert told.startswith("- [") and "Tea is at four." in told
    assert as_json == {"text": told.rstrip("\n")}
