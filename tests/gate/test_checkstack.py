"""The checkstack endpoint, as its page says it is."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from keepsake.tools import catalog, gate
from tests.surfaces import serving
from tests.surfaces.serving import Client, Json, called, initialize, notification, request

TOOLS = ["incident.list", "healthcheck.status", "anomaly.list", "propose", "apply", "proposal_status"]
Of = Callable[..., Client]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    return {
        "full": serving.made_key(folder, "full", "--allow-destructive"),
        "watcher": serving.made_key(folder, "watcher", "--scope", "watch:read"),
        "reader": serving.made_key(folder, "reader", "--scope", "memory:read"),
        "core": serving.made_key(folder, "core", "--tier", "core"),
    }


@pytest.fixture(scope="module")
def address(folder: Path, keys: dict[str, str]) -> Iterator[str]:
    with serving.serving(folder, rate_limit=100_000) as address:
        yield address


@pytest.fixture
def of(address: str, keys: dict[str, str]) -> Of:
    """A client that holds the key of that name."""

    def client(key: str, path: str = "/api/ai/mcp") -> Client:
        return Client(f"{address}{path}", {"Authorization": f"Bearer {keys[key]}"})

    return client


def told(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, answer.json()["error"]["code"]


def listed(client: Client) -> list[str]:
    return [tool["name"] for tool in client.post(request("tools/list")).json()["result"]["tools"]]


def test_the_pages_own_curl_works(address: str, keys: dict[str, str]) -> None:
    script = """
SESSION=$(curl -sD - -o /dev/null -X POST $URL/api/ai/mcp \\
  -H "authorization: Bearer $TOKEN" \\
  -H "content-type: application/json" \\
  -d '{"jsonrpc":"2.0","id":1,"method":"initialize"}' \\
  | grep -i '^mcp-session-id:' | tr -d '\\r' | awk '{print $2}')
curl -s -X POST $URL/api/ai/mcp -H "authorization: Bearer $TOKEN" -H "mcp-session-id: $SESSION" \\
  -H "content-type: application/json" -d '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
echo
curl -s -X POST $URL/api/ai/mcp -H "authorization: Bearer $TOKEN" -H "mcp-session-id: $SESSION" \\
  -H "content-type: application/json" \\
  -d '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"incident.list","arguments":{}}}'
"""

    environment = {"URL": address, "TOKEN": keys["full"], "PATH": "/usr/bin:/bin", "no_proxy": "*"}
    ran = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    tools, call = (json.loads(line) for line in ran.stdout.splitlines())

    assert [tool["name"] for tool in tools["result"]["tools"]] == TOOLS
    assert all("inputSchema" in tool and "outputSchema" in tool for tool in tools["result"]["tools"])
    assert call["result"]["structuredContent"] == {"incidents": [], "total": 0}
    assert json.loads(call["result"]["content"][0]["text"]) == call["result"]["structuredContent"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (None, "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-06-18"),
        ("2026-07-28", "2025-06-18"),
    ],
)
def test_a_revision_that_we_speak_is_echoed(of: Of, asked: str | None, answered: str) -> None:
    message = request("initialize") if asked is None else initialize(asked)

    result = of("full").post(message).json()["result"]

    assert (result["protocolVersion"], result["serverInfo"]["name"]) == (answered, "checkstack")


@pytest.mark.parametrize("message", [request("tools/list"), called("incident.list"), request("ping")])
def test_a_request_without_a_session_of_ours_is_404(of: Of, message: Json) -> None:
    client, others = of("full"), of("watcher").session()
    ids = ["unknown", others.headers["Mcp-Session-Id"], of("full", "/mcp").session().headers["Mcp-Session-Id"]]

    answers = [client.post(message), *(client.post(message, Mcp_Session_Id=id) for id in ids)]

    assert [told(answer) for answer in answers] == [(404, -32000)] * 4
    assert answers[0].json()["id"] == message["id"]


def test_notifications_and_batches_need_a_session_too(of: Of) -> None:
    client = of("full")
    message = notification("notifications/initialized")

    bare = [client.post(message), client.post([called("incident.list")]), httpx.get(client.url, headers=client.headers)]
    within = client.session().post(message)

    assert [told(answer) for answer in bare] == [(404, -32000)] * 3
    assert within.status_code == 202


def test_a_session_that_was_ended_is_404(of: Of) -> None:
    client = of("full").session()
    headers = {**client.headers, "Accept": serving.BOTH}

    ended = httpx.delete(client.url, headers=headers)

    assert ended.status_code == 200
    assert told(client.post(request("tools/list"))) == (404, -32000)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:3000", "http://127.0.0.1:1", "null"])
def test_a_page_of_another_site_is_403_before_anything_is_looked_at(of: Of, origin: str) -> None:
    client = of("full")

    answers = [
        client.post(request("initialize"), Origin=origin),
        client.post(b"{broken", Origin=origin),
        client.post(request("tools/list"), Origin=origin, Authorization="Bearer wrong"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3
    assert all("mcp-session-id" not in answer.headers for answer in answers)


def test_a_page_of_this_site_is_let_in(of: Of, address: str) -> None:
    assert of("full").post(request("initialize"), Origin=address).status_code == 200


def test_every_principal_is_offered_what_it_may_call(of: Of) -> None:
    assert listed(of("full").session()) == TOOLS
    assert listed(of("watcher").session()) == ["incident.list", "healthcheck.status", "anomaly.list", "proposal_status"]
    assert listed(of("reader").session()) == ["proposal_status"]
    assert listed(of("core").session()) == ["propose", "apply", "proposal_status"]


def test_propose_names_what_this_principal_may_propose(of: Of) -> None:
    def offered(key: str) -> list[str]:
        tools = of(key).session().post(request("tools/list")).json()["result"]["tools"]
        found: list[str] = next(tool for tool in tools if tool["name"] == "propose")["inputSchema"]["properties"][
            "operation"
        ]["enum"]
        return found

    full = offered("full")
    assert {"memory.retain", "memory.forget", "bank.delete", "bank.create"} <= set(full)
    assert not any(name.startswith(("key.", "user.", "exec.", "proposal.")) or ".get" in name for name in full)
    assert offered("core") == ["memory.retain"]


@pytest.mark.parametrize("name", ["change", "destroy", "retain"])
def test_what_changes_something_is_neither_listed_nor_run_whatever_is_registered(
    of: Of, folder: Path, name: str
) -> None:
    client = of("full", "/gated").session()

    refused = client.post(called(name, {"mark": name} if name != "retain" else {"content": "No."}))
    batch = of("full", "/gated").session("2025-03-26").post([called(name, {"mark": name})])

    assert name not in listed(client) and "look" in listed(client)
    assert told(refused) == (403, -32003)
    assert refused.json()["error"]["message"].startswith("403") and "propose" in refused.json()["error"]["message"]
    assert batch.json()[0]["error"]["code"] in (-32003, -32602)
    assert not (folder / name).exists()


def test_a_tool_beyond_the_scopes_is_refused_before_it_is_entered(of: Of, folder: Path) -> None:
    refused = of("watcher", "/gated").session().post(called("look", {"mark": "beyond"}))
    allowed = of("full", "/gated").session().post(called("look", {"mark": "within"}))

    assert told(refused) == (403, -32003)
    assert "research:read" in refused.json()["error"]["message"]
    assert not (folder / "beyond").exists()
    assert allowed.json()["result"]["structuredContent"] == {"done": True}
    assert (folder / "within").read_text() == "probe.look"


def test_propose_and_apply_work_here_and_by_name_in_every_dialect(of: Of) -> None:
    counts = {"hindsight": 29, "kiro": 4, "keystone": 4}
    paths = {"/mcp": "hindsight", "/kiro/mcp": "kiro", "/api/mcp": "keystone", "/api/ai/mcp": "checkstack"}
    for path, dialect in paths.items():
        client = of("full", path).session(accept="application/json")
        wanted = {"operation": "memory.retain", "arguments": {"content": f"Through {dialect}."}, "reason": "to try"}

        made = client.post(called("propose", wanted)).json()["result"]["structuredContent"]
        applied = client.post(called("apply", {"token": made["token"]})).json()["result"]
        status = client.post(called("proposal_status", {"id": made["id"]})).json()["result"]["structuredContent"]

        assert applied["structuredContent"]["status"] == "stored"
        assert (status["state"], status["reason"]) == ("succeeded", "to try")
        assert len(listed(client)) == counts.get(dialect, len(TOOLS))
        assert dialect == "checkstack" or not set(gate.TOOLS) & set(catalog.DIALECTS[dialect].tools)


def test_a_refusal_names_the_way_by_proposal(of: Of) -> None:
    client = of("reader", "/mcp")

    refused = [
        client.post(called("retain", {"content": "x"})),
        client.post(called("delete_memory", {"memory_id": "1"})),
    ]
    nothing = of("watcher").session().post(called("propose", {"operation": "memory.retain", "arguments": {}}))

    assert [told(answer) for answer in [*refused, nothing]] == [(403, -32003)] * 3
    assert all("`propose`" in answer.json()["error"]["message"] for answer in [*refused, nothing])


def test_the_modern_era_is_served_without_a_session_and_behind_the_same_gate(of: Of) -> None:
    client = of("full")

    assert client.modern(called("incident.list")).json()["result"]["structuredContent"]["incidents"] == []
    assert told(of("full", "/gated").modern(called("change", {"mark": "modern"}))) == (403, -32003)


def test_stdio_speaks_checkstack_too(tmp_path: Path) -> None:
    with serving.piped(tmp_path, "-m", "keepsake", "stdio", "--dialect", "checkstack") as pipe:
        begun = pipe.ask(request("initialize"))
        tools = pipe.ask(request("tools/list", id=2))["result"]["tools"]
        refused = pipe.ask(called("retain", {"content": "x"}, id=3))

    assert begun["result"]["serverInfo"]["name"] == "checkstack"
    assert begun["result"]["protocolVersion"] == "2025-06-18"
    assert [tool["name"] for tool in tools] == TOOLS
    assert refused["error"]["code"] == -32602


def test_a_session_of_another_server_is_unknown_here(tmp_path: Path) -> None:
    with serving.serving(tmp_path) as one, serving.serving(tmp_path) as two:
        strict, lenient = Client(f"{one}/api/ai/mcp").session(), Client(f"{one}/mcp").session()

        answers = [
            Client(f"{two}/api/ai/mcp", strict.headers).post(request("tools/list")),
            Client(f"{two}/mcp", lenient.headers).post(request("tools/list")),
        ]

    assert told(answers[0]) == (404, -32000)
    assert answers[1].status_code == 200
