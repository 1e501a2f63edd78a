"""The xerotier endpoint: who is let in, which workspace they work in, and what their tier shows."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.surfaces import serving
from tests.surfaces.serving import META, Client, called, request
from tests.surfaces.xerotiering import HEADER, OWNER, UNBOUND, Place, error, place, result, structure, told

SEARCH = called("xerotier.memory.search", {"query": "anything"})


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with three workspaces."""
    with place(tmp_path_factory.mktemp("xerotier")) as made:
        made.make("alpha", "beta", "gamma")
        yield made


def ids(here: Place, name: str) -> list[str]:
    known = here.workspaces[name]
    return [known["workspace"], known["uuid"], known["uuid"].upper()]


def test_a_workspace_is_pinned_by_either_id_in_both_eras(here: Place) -> None:
    for named in ids(here, "alpha"):
        client = here.client(workspace=named)

        assert structure(client.post(called("xerotier.workspace.get")))["workspace"]["name"] == "alpha"
        assert structure(client.modern(called("xerotier.workspace.get")))["workspace"]["name"] == "alpha"
    session = here.client(workspace="alpha").session()
    assert structure(session.post(called("xerotier.workspace.get")))["workspace"]["name"] == "alpha"


def test_every_wrong_workspace_is_refused_in_the_same_words(here: Place) -> None:
    narrow = here.key("beta only", banks=["beta"])
    wrong = ["alpha-name", "ws_", "ws_xyz", "ws_" + "0" * 16, "ws_" + "f" * 65, str(uuid.uuid4()), "'; --", "ws_%00"]
    wrong += ids(here, "alpha")

    answers = [here.client(narrow, named).post(SEARCH) for named in wrong]
    answers.append(here.client(narrow, "alpha").modern(request("tools/list", {})))
    answers.append(here.client(narrow, "alpha").post(serving.initialize()))

    assert {(answer.status_code, error(answer)) for answer in answers} == {(400, error(answers[0]))}
    assert error(answers[0])[0] == -32602


def test_a_header_does_not_outlive_the_right_to_its_workspace(here: Place) -> None:
    here.make("passing")
    pinned = here.client(workspace="passing")
    session = pinned.session()
    bound = here.client().session()
    assert structure(bound.post(called("xerotier.session.init", {"workspace": "passing"})))

    here.run("bank.delete", bank="passing")

    assert pinned.post(SEARCH).status_code == 400
    assert session.post(SEARCH).status_code == 400
    assert error(bound.post(SEARCH)) == (-32600, UNBOUND)


@pytest.mark.parametrize("accept", [serving.BOTH, "application/json"])
def test_a_session_is_bound_by_session_init_and_remembers_it(here: Place, accept: str) -> None:
    session = here.client().session(accept=accept)
    before = session.post(SEARCH)

    by_id = structure(session.post(called("xerotier.session.init", {"workspace": here.workspaces["beta"]["uuid"]})))
    after = structure(session.post(called("xerotier.workspace.get")))
    by_name = structure(session.post(called("xerotier.session.init", {"workspace": "gamma"})))
    again = structure(session.post(called("xerotier.session.init")))

    assert before.status_code == 200 and error(before) == (-32600, UNBOUND)
    assert after["workspace"] == {key: by_id["workspace"][key] for key in ("id", "uuid", "name")} | {
        "created_at": after["workspace"]["created_at"]
    }
    assert by_name["workspace"]["name"] == again["workspace"]["name"] == "gamma"
    assert by_name["project"].startswith("proj_") and by_name["tier"] == "all"
    assert error(here.client().session().post(SEARCH)) == (-32600, UNBOUND)


def test_a_header_sent_on_connecting_binds_the_session(here: Place) -> None:
    pinned = here.client(workspace="beta").session()
    session = Client(pinned.url, {name: told for name, told in pinned.headers.items() if name != HEADER})

    assert structure(session.post(called("xerotier.workspace.get")))["workspace"]["name"] == "beta"
    assert structure(session.post(called("xerotier.session.init", {"workspace": "gamma"})))
    assert structure(session.post(called("xerotier.workspace.get")))["workspace"]["name"] == "gamma"


def test_the_header_wins_over_the_session(here: Place) -> None:
    session = here.client().session()
    structure(session.post(called("xerotier.session.init", {"workspace": "gamma"})))

    pinned = structure(session.post(called("xerotier.workspace.get"), **{HEADER: here.workspaces["beta"]["workspace"]}))
    refused = result(
        session.post(
            called("xerotier.session.init", {"workspace": "gamma"}), **{HEADER: here.workspaces["beta"]["workspace"]}
        )
    )

    assert pinned["workspace"]["name"] == "beta"
    assert refused["isError"] and "pinned" in refused["content"][0]["text"]


def test_without_a_session_init_says_which_header_to_send(here: Place) -> None:
    for answer in (
        here.client().post(called("xerotier.session.init", {"workspace": "alpha"})),
        here.client().modern(called("xerotier.session.init", {"workspace": "alpha"})),
    ):
        refused = result(answer)

        assert refused["isError"]
        assert f"{HEADER}: {here.workspaces['alpha']['workspace']}" in refused["content"][0]["text"]


def test_init_needs_no_name_where_there_is_one_workspace_and_hides_the_others(here: Place) -> None:
    session = here.client(here.key("beta only", banks=["beta"])).session()

    told = structure(session.post(called("xerotier.session.init")))
    refused = result(session.post(called("xerotier.session.init", {"workspace": "alpha"})))
    foreign = result(session.post(called("xerotier.session.init", {"workspace": "nowhere"})))
    listed = structure(session.post(called("xerotier.workspace.list")))

    assert told["workspace"]["name"] == "beta"
    assert refused["isError"] and refused["content"] == foreign["content"]
    assert "alpha" not in refused["content"][0]["text"]
    assert [one["name"] for one in listed["workspaces"]] == ["beta"]


def test_nothing_but_header_and_session_binds(here: Place) -> None:
    narrow = here.key("beta only", banks=["beta"])
    client = here.client(narrow)

    assert error(client.post(SEARCH, X_Bank_Id="beta")) == (-32600, UNBOUND)
    assert error(client.modern(SEARCH)) == (-32600, UNBOUND)
    extra = result(
        here.client(workspace="alpha").post(called("xerotier.memory.search", {"query": "x", "bank": "beta"}))
    )
    assert extra["isError"]


def test_what_needs_no_workspace_works_without_one(here: Place) -> None:
    client = here.client()

    assert structure(client.post(called("xerotier.workspace.list")))["workspaces"]
    assert result(client.post(request("tools/list", {})))["tools"]
    assert result(client.post(request("prompts/list", {})))["prompts"]
    assert result(client.post(request("resources/list", {})))["resources"]
    assert result(client.post(request("ping"))) == {}
    assert error(client.post(request("prompts/get", {"name": "session.init"}))) == (-32600, UNBOUND)
    uri = "xerotier://workspace/current/brief"
    assert error(client.post(request("resources/read", {"uri": uri}))) == (-32600, UNBOUND)


def test_the_path_names_the_credentials_own_project_or_none(here: Place) -> None:
    project = structure(here.client(workspace="alpha").post(called("xerotier.session.init")))["project"]

    own = here.client(workspace="alpha", path=f"/{project}/v1/mcp")
    foreign = [here.client(path=f"/{name}/v1/mcp").post(SEARCH) for name in ("proj_00", f"{project}0", "x", "%2e")]
    nobody = httpx.post(f"{here.address}/proj_00/v1/mcp", json=SEARCH)

    assert structure(own.post(called("xerotier.workspace.get")))["workspace"]["name"] == "alpha"
    assert {(answer.status_code, error(answer)) for answer in foreign} == {(404, error(foreign[0]))}
    assert nobody.status_code == 401
    # A session of one path goes on at the other, for it is the same endpoint.
    session = own.session()
    assert structure(Client(f"{here.address}/v1/mcp", session.headers).post(called("xerotier.workspace.get")))


def test_the_inference_scope_is_asked_for_first(here: Place) -> None:
    outside = here.key("no inference", scopes=["memory:read", "memory:write"])

    answers = [
        here.client(outside, "no such workspace").post(SEARCH),
        here.client(outside).post(serving.initialize()),
        here.client(outside).modern(request("tools/list", {})),
        here.client(outside, path="/proj_other/v1/mcp").post(request("ping")),
        here.client(outside).post(request("ping"), Mcp_Session_Id="unknown"),
    ]

    for answer in answers:
        assert answer.status_code == 403
        assert error(answer)[0] == -32003 and error(answer)[1].startswith("403")
        assert 'scope="inference"' in answer.headers["www-authenticate"]
    assert here.client("wrong").post(SEARCH).status_code == 401


@pytest.mark.parametrize("tier,hidden", [("core", "xerotier.artifact.create"), ("exec", "xerotier.artifact.create")])
def test_what_is_above_the_tier_is_unknown_everywhere(here: Place, tier: str, hidden: str) -> None:
    client = here.client(here.key(tier, tier=tier), "alpha")

    above = error(client.post(called(hidden, {"title": "t", "content": "c"})))
    unknown = error(client.post(called("xerotier.no.such", {})))
    prompt = error(client.post(request("prompts/get", {"name": "brief"})))
    no_prompt = error(client.post(request("prompts/get", {"name": "nothing"})))
    resource = told(client.post(request("resources/read", {"uri": "xerotier://workspace/current/brief"})))["error"]
    no_resource = told(client.post(request("resources/read", {"uri": "xerotier://nothing"})))["error"]
    elsewhere = httpx.post(f"{here.address}/v1/operations/artifact.create", json={}, headers=client.headers, timeout=30)

    assert above[0] == unknown[0] == prompt[0] == no_prompt[0] == -32602
    assert above[1].replace(hidden, "xerotier.no.such") == unknown[1]
    assert prompt[1].replace("brief", "nothing") == no_prompt[1]
    assert (resource["code"], resource["message"]) == (no_resource["code"], no_resource["message"])
    assert elsewhere.status_code == 404
    assert [one["name"] for one in result(client.post(request("prompts/list", {})))["prompts"]] == [
        "session.init",
        "save-this",
    ]


def test_a_saved_memory_has_a_slug_and_the_alias_of_its_seed_saves_too(here: Place) -> None:
    client = here.client(here.key("core", tier="core"), "alpha")
    content = "Shipped MCP M8 with sampling-based approvals."

    first = structure(client.post(called("xerotier.memory.save", {"content": content, "category": "decision"})))
    alias = structure(client.post(called("x_save_memory", {"content": "Tea is served at four.", "title": "Tea time"})))
    read = result(client.post(request("resources/read", {"uri": first["uri"]})))["contents"][0]
    listed = [tool["name"] for tool in result(client.post(request("tools/list", {})))["tools"]]

    assert first["slug"] == "shipped-mcp-m8-with-sampling-based-approvals"
    assert alias["slug"] == "tea-time"
    assert content in read["text"] and read["mimeType"] == "text/markdown"
    assert "x_save_memory" not in listed


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_client_that_can_ask_is_asked_for_the_workspace_once(here: Place, version: str) -> None:
    client = here.client(here.key("two", banks=["beta", "gamma"]))
    begun = client.post(
        request(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
    )
    session = Client(client.url, client.headers | {"Mcp-Session-Id": begun.headers["mcp-session-id"]})
    session.headers["MCP-Protocol-Version"] = version
    session.post(serving.notification("notifications/initialized"))

    asked, answered = elicited(session, called("xerotier.workspace.get", id=7), "gamma")
    later = structure(session.post(called("xerotier.workspace.get", id=8)))

    assert asked["params"]["requestedSchema"]["properties"]["choice"]["enum"] == ["beta", "gamma"]
    assert answered["result"]["structuredContent"]["workspace"]["name"] == "gamma"
    assert later["workspace"]["name"] == "gamma"


def elicited(session: Client, call: dict[str, object], choice: str) -> tuple[serving.Json, serving.Json]:
    """Make a call, answer the question that comes back on its stream, and give the question and the answer."""
    headers = {"Accept": serving.BOTH, "Content-Type": "application/json"} | session.headers
    with httpx.stream("POST", session.url, json=call, headers=headers, timeout=30) as stream:
        found: list[serving.Json] = []
        for line in stream.iter_lines():
            if not line.startswith("data: {"):
                continue
            found.append(json.loads(line.removeprefix("data: ")))
            if found[-1].get("method") == "elicitation/create":
                reply = {"action": "accept", "content": {"choice": choice}}
                session.post({"jsonrpc": "2.0", "id": found[-1]["id"], "result": reply})
    return found[0], found[-1]


def test_a_client_of_the_2026_era_that_can_ask_gets_the_question_as_its_answer(here: Place) -> None:
    client = here.client(here.key("two", banks=["beta", "gamma"]))
    able: serving.Json = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    call = called("xerotier.workspace.get")

    asked = result(client.modern(call, **able))
    reply = {"workspace": {"action": "accept", "content": {"choice": "gamma"}}}
    call["params"]["inputResponses"] = reply
    answered = structure(client.modern(call, **able))
    call["params"]["inputResponses"] = {"workspace": {"action": "accept", "content": {"choice": "alpha"}}}
    foreign = error(client.modern(call, **able))
    call["params"]["inputResponses"] = {"workspace": {"action": "decline"}}
    declined = error(client.modern(call, **able))

    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["workspace"]["params"]["requestedSchema"]["properties"]["choice"]["enum"] == [
        "beta",
        "gamma",
    ]
    assert answered["workspace"]["name"] == "gamma"
    assert foreign == declined == (-32600, UNBOUND)
    assert META["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_legacy_answers_in_plain_json_alone_and_sessions_end_by_their_own_ttl(tmp_path: Path) -> None:
    settings = {"xerotier_transport": "legacy", "xerotier_session_ttl": 1}
    with place(tmp_path, **settings) as here:
        here.make("alpha")
        session = here.client(workspace="alpha").session()
        elsewhere = Client(f"{here.address}/mcp", {"Authorization": f"Bearer {OWNER}"}).session()
        call = called("xerotier.workspace.get", None, 2, progressToken=1)

        answers = [session.post(call), here.client(workspace="alpha").post(call)]
        got = httpx.get(session.url, headers=session.headers | {"Accept": "text/event-stream"}, timeout=30)
        listening = here.client(workspace="alpha").modern(request("subscriptions/listen", {"notifications": {}}))
        told = result(here.client().post(serving.initialize()))["capabilities"]
        serving.until(lambda: session.post(request("ping")).status_code == 404 or _pause())

    assert all(answer.headers["content-type"].startswith("application/json") for answer in answers)
    assert got.status_code == 405
    assert error(listening)[0] == -32601
    assert "subscribe" not in told["resources"] or not told["resources"]["subscribe"]
    assert elsewhere.headers["Mcp-Session-Id"]


def _pause() -> bool:
    """A session must be left alone to become idle."""
    time.sleep(1.2)
    return False


def test_a_pipe_is_bound_by_its_flag_or_by_session_init(tmp_path: Path) -> None:
    command = ("-m", "keepsake", "stdio", "--dialect", "xerotier")
    with serving.piped(tmp_path, *command, "--bank", "alpha") as pipe:
        pipe.ask(serving.initialize())
        saved = pipe.ask(called("xerotier.memory.save", {"content": "The pipe is bound."}, 2))
        there = pipe.ask(called("xerotier.workspace.get", id=3))
    with serving.piped(tmp_path, *command) as pipe:
        pipe.ask(serving.initialize())
        unbound = pipe.ask(called("xerotier.workspace.get", id=2))
        bound = pipe.ask(called("xerotier.session.init", {"workspace": "alpha"}, 3))
        after = pipe.ask(called("xerotier.memory.recall", {}, 4))

    assert saved["result"]["structuredContent"]["slug"] == "the-pipe-is-bound"
    assert there["result"]["structuredContent"]["workspace"]["id"].startswith("ws_")
    assert unbound["error"] == {"code": -32600, "message": UNBOUND}
    assert bound["result"]["structuredContent"]["workspace"]["name"] == "alpha"
    assert [one["content"] for one in after["result"]["structuredContent"]["results"]] == ["The pipe is bound."]
