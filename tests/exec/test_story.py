"""An agent deploys over MCP with a person's consent, in both eras: a real command, a real target, a real server."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.exec.executing import ANY, needs_sandbox
from tests.exec.targets import Target, target
from tests.surfaces import serving
from tests.surfaces.serving import Client, Json, called, messages, request
from tests.surfaces.xerotiering import Place, error, place, result, structure

pytestmark = needs_sandbox
Send = Callable[..., httpx.Response]
STEPS = "for n in one two three; do echo $n {text}; sleep 0.4; done"


@dataclass
class Shop:
    """A server whose operator has enrolled a few things, and a place to deploy to."""

    here: Place
    there: Target

    def client(self, era: str, key: str) -> tuple[Send, Client]:
        """How an agent sends its messages."""
        client = self.here.client(self.here.key(key), "alpha")
        if era == "2026":
            return client.modern, client
        session = client.session()
        session.post(serving.notification("notifications/initialized"))
        return session.post, session

    def decide(self, id: str, approve: bool) -> Json:
        """What an approver says, with a key of their own."""
        headers = {"Authorization": f"Bearer {self.here.keys['ada']}"}
        told = httpx.post(
            f"{self.here.address}/v1/operations/approval.decide", json={"id": id, "approve": approve}, headers=headers
        )
        assert told.status_code == 200, told.text
        made: Json = told.json()
        return made


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder: Path = tmp_path_factory.mktemp("exec")
    with target() as there, place(folder, worker="true", exec_hosts="127.0.0.1") as here:
        here.make("alpha")
        here.run("user.add", name="ada")
        here.run("user.add", name="bob")
        here.run("user.role", name="ada", role="approver")
        here.key("ada", user="ada")
        http = {"url": f"{there.url}/deploy", "body": {"ref": "{text}"}}
        for given in (
            {"name": "deploy.staging", "argv": ["echo", "deployed", "{text}"], "description": "Deploys to staging."},
            {"name": "deploy.web", "http": http},
            {"name": "wipe", "argv": ["echo", "{text}"], "effect": "destructive"},
            {"name": "steps", "argv": ["sh", "-c", STEPS], "effect": "read", "approval": "none"},
            {"name": "ask", "argv": ["echo", "{text}"], "approval": "elicitation"},
        ):
            here.run("exec.enrol", **{"parameters": ANY, "concurrency": 8, **given})
        yield Shop(here, there)


def call(tool: str, id: object = 5, **arguments: object) -> Json:
    return called(f"xerotier.exec.{tool}", arguments, id)


def polled(send: Send, id: str) -> Json:
    """How an invocation stands once it has ended."""
    end = time.monotonic() + 20
    while (told := structure(send(call("poll", invocation_id=id))))["status"] in ("queued", "running"):
        assert time.monotonic() < end, told
        time.sleep(0.05)
    return told


@pytest.mark.parametrize("era", ["2025", "2026"])
@pytest.mark.parametrize("tool", ["deploy.staging", "deploy.web"])
def test_a_deployment_waits_for_a_person_and_then_runs(shop: Shop, era: str, tool: str) -> None:
    send, _ = shop.client(era, "agent")
    given = {"tool_name": tool, "arguments": {"text": f"main-{era}"}, "reason": "The tests are green."}

    asked = structure(send(call("invoke", **given)))
    again = structure(send(call("invoke", **given)))
    waits = structure(send(call("poll", invocation_id=asked["invocation_id"])))
    shop.decide(asked["invocation_id"], approve=True)
    told = polled(send, asked["invocation_id"])

    assert set(asked) == {"invocation_id", "status", "approval_url"}
    assert (asked["status"], waits["status"]) == ("awaiting_approval", "awaiting_approval")
    assert asked["approval_url"].endswith(f"/console/approve/{asked['invocation_id']}")
    assert again["invocation_id"] == asked["invocation_id"]
    assert told["status"] == "succeeded", told
    sent = [one for one in shop.there.at("/deploy") if f"main-{era}".encode() in one[3]]
    assert len(sent) == (tool == "deploy.web")
    assert tool == "deploy.web" or told["output"] == f"deployed main-{era}\n"


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_blocking_streams_progress_and_output_over_the_same_call(shop: Shop, era: str) -> None:
    send, _ = shop.client(era, "agent")
    wanted = call("invoke_blocking", tool_name="steps", arguments={"text": f"of {era}"})
    wanted["params"]["_meta"] = {"progressToken": 3}

    found = messages(send(wanted))

    progress = [one["params"] for one in found if one.get("method") == "notifications/progress"]
    lines = "".join(one["message"] for one in progress if "\n" in one["message"])
    steps = [one["progress"] for one in progress]
    told = found[-1]["result"]["structuredContent"]
    assert (told["status"], told["output"]) == ("succeeded", f"one of {era}\ntwo of {era}\nthree of {era}\n")
    assert lines == told["output"] and len(progress) >= 4
    assert steps == sorted(set(steps))
    assert json.loads(found[-1]["result"]["content"][0]["text"]) == told


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_a_key_sees_and_calls_what_it_may_run(shop: Shop, era: str) -> None:
    key = "destroyer" if era == "2026" else "agent"
    shop.here.key("destroyer", allow_destructive=True)
    send, _ = shop.client(era, key)

    listed = {tool["name"]: tool for tool in result(send(request("tools/list")))["tools"]}
    refusals = [
        error(send(call("invoke", tool_name=name, arguments={"text": "x"})))
        for name in (["wipe"] if key == "agent" else []) + ["no.such.tool"]
    ]

    invoke = listed["xerotier.exec.invoke"]
    names = ["ask", "deploy.staging", "deploy.web", "steps", *(["wipe"] if key == "destroyer" else [])]
    assert invoke["inputSchema"]["properties"]["tool_name"]["enum"] == names
    assert "deploy.staging(text)" in invoke["description"]
    assert ("wipe" in json.dumps(listed)) == (key == "destroyer")
    assert {code for code, _ in refusals} == {-32602}
    assert len({message.replace("wipe", "X").replace("no.such.tool", "X") for _, message in refusals}) == 1


def test_cancelling_is_idempotent_and_a_foreign_id_is_unknown(shop: Shop) -> None:
    send, _ = shop.client("2025", "agent")
    other, _ = shop.client("2025", "other")
    asked = structure(send(call("invoke", tool_name="deploy.staging", arguments={"text": "never"})))

    ended = [structure(send(call("cancel", invocation_id=asked["invocation_id"])))["status"] for _ in range(2)]
    foreign = [result(other(call(tool, invocation_id=asked["invocation_id"]))) for tool in ("poll", "cancel")]

    assert ended == ["cancelled", "cancelled"]
    assert all(one["isError"] and "No invocation" in one["content"][0]["text"] for one in foreign)


def test_a_client_of_the_2026_era_agrees_where_the_policy_lets_it(shop: Shop) -> None:
    send, _ = shop.client("2026", "agent")
    able: Json = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    wanted = call("invoke", tool_name="ask", arguments={"text": "please"})

    asked = result(send(wanted, **able))
    [(about, question)] = asked["inputRequests"].items()
    wanted["params"]["inputResponses"] = {about: {"action": "accept", "content": {"choice": "approve"}}}
    agreed = structure(send(wanted, **able))
    told = polled(send, agreed["invocation_id"])

    assert asked["resultType"] == "input_required" and '["echo","please"]' in question["params"]["message"]
    assert (agreed["status"], told["status"]) == ("queued", "succeeded")


def test_a_client_of_the_2025_era_is_asked_on_the_stream_of_its_call(shop: Shop) -> None:
    client = shop.here.client(shop.here.key("agent"), "alpha")
    able = {"capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}}
    begun = client.post(request("initialize", {"protocolVersion": "2025-11-25", **able}))
    used = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    session = Client(client.url, client.headers | used)
    session.post(serving.notification("notifications/initialized"))
    headers = {"Accept": serving.BOTH, **session.headers}
    wanted = call("invoke", tool_name="ask", arguments={"text": "no, thank you"})

    found: list[Json] = []
    with httpx.stream("POST", session.url, json=wanted, headers=headers, timeout=30) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line.removeprefix("data: ")))
                if found[-1].get("method") == "elicitation/create":
                    session.post({"jsonrpc": "2.0", "id": found[-1]["id"], "result": {"action": "decline"}})

    assert found[-1]["result"]["structuredContent"]["status"] == "denied"
