"""Prompts and resources of the xerotier endpoint: listed, read, completed and followed, in both eras."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.surfaces import serving
from tests.surfaces.serving import META, Client, called, request
from tests.surfaces.xerotiering import Place, error, place, result, structure, told

BRIEF = "xerotier://workspace/current/brief"
DECISIONS = "xerotier://workspace/current/recent-decisions"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with a workspace that knows a few things, and one that knows nothing."""
    with place(tmp_path_factory.mktemp("prompts")) as made:
        made.make("alpha", "empty", "other")
        client = made.client(workspace="alpha")
        for content, category in (
            ("Maria Keller runs the billing service.", "general"),
            ("The billing service moves to Lisbon in May.", "general"),
            ("We keep PostgreSQL for billing.", "decision"),
        ):
            structure(client.post(called("xerotier.memory.save", {"content": content, "category": category})))
        structure(
            client.post(
                called(
                    "xerotier.intelligence.track_decision",
                    {"title": "Ship on Fridays", "rationale": "Support is there.", "alternatives": ["Ship on Mondays"]},
                )
            )
        )
        arguments = {"title": "Release plan", "content": "# Plan\n\nShip it.", "identifier": "release-plan"}
        structure(client.post(called("xerotier.artifact.create", arguments)))
        structure(
            made.client(workspace="other").post(called("xerotier.memory.save", {"content": "A secret of the others."}))
        )
        yield made


def read(client: Client, uri: str) -> str:
    """What is at an address."""
    contents = result(client.post(request("resources/read", {"uri": uri})))["contents"]
    assert [(one["uri"], one["mimeType"]) for one in contents] == [(uri, "text/markdown")]
    return str(contents[0]["text"])


def prompt(client: Client, name: str, **arguments: str) -> str:
    """What a prompt says."""
    messages = result(client.post(request("prompts/get", {"name": name, "arguments": arguments})))["messages"]
    assert [message["role"] for message in messages] == ["user"]
    return str(messages[0]["content"]["text"])


def test_prompts_say_what_the_workspace_knows(here: Place) -> None:
    client = here.client(workspace="alpha")

    began = prompt(client, "session.init")
    brief = prompt(client, "brief")
    onboarded = prompt(client, "onboard", topic="billing service")
    form = prompt(client, "save-this", note="Tea is at four.\n```\nrm -rf\n```")

    assert here.workspaces["alpha"]["workspace"] in began and "Ship on Fridays" in began
    assert "## Latest decisions" in brief and "Support is there." in brief and "Not taken: Ship on Mondays" in brief
    assert "Maria Keller runs the billing service." in onboarded
    assert "xerotier.memory.save" in form and "Tea is at four." in form and "`ship-on-fridays`" in form
    assert "x_save_memory" not in form
    for text in (began, brief, onboarded, form):
        assert "secret of the others" not in text


def test_a_workspace_that_knows_nothing_says_so(here: Place) -> None:
    client = here.client(workspace="empty")

    assert "Nothing is known yet." in prompt(client, "onboard", topic="billing")
    assert "Nothing is known yet." in read(client, BRIEF)
    assert "Nothing was decided" in read(client, f"{DECISIONS}?since=7d")
    assert "no memories to link" in prompt(client, "save-this", note="x")


@pytest.mark.parametrize(
    "params",
    [
        {"name": "onboard"},
        {"name": "onboard", "arguments": {"topic": " "}},
        {"name": "onboard", "arguments": {"topic": "x", "more": "y"}},
        {"name": "save-this", "arguments": {"note": "a\x00b"}},
        {"name": "save-this", "arguments": {"note": "n" * 20_001}},
    ],
)
def test_bad_arguments_of_prompts_are_told(here: Place, params: dict[str, Any]) -> None:
    code, message = error(here.client(workspace="alpha").post(request("prompts/get", params)))

    assert code == -32602 and message


def test_prompts_and_templates_are_listed_with_their_arguments(here: Place) -> None:
    for client in (here.client(workspace="alpha"), here.client()):
        prompts = result(client.post(request("prompts/list", {})))["prompts"]
        templates = result(client.modern(request("resources/templates/list", {})))["resourceTemplates"]

        assert {one["name"]: [(a["name"], a["required"]) for a in one.get("arguments", [])] for one in prompts} == {
            "session.init": [],
            "brief": [],
            "onboard": [("topic", True)],
            "save-this": [("note", True)],
        }
        assert [one["uriTemplate"] for one in templates] == [
            f"{DECISIONS}{{?since,limit}}",
            "xerotier://memory/{slug}",
            "xerotier://artifact/{id}",
        ]


def test_a_memory_is_read_by_slug_or_id_and_an_artifact_by_either_name(here: Place) -> None:
    client = here.client(workspace="alpha")
    listed = result(client.post(request("resources/list", {})))["resources"]
    artifact = next(one["uri"] for one in listed if one["uri"].startswith("xerotier://artifact/"))
    found = structure(client.post(called("xerotier.memory.search", {"query": "Lisbon"})))["results"][0]

    assert "moves to Lisbon" in read(client, f"xerotier://memory/{found['slug']}")
    assert "moves to Lisbon" in read(client, f"xerotier://memory/{found['id']}")
    assert read(client, artifact).startswith("# Release plan")
    assert read(client, "xerotier://artifact/release-plan").startswith("# Release plan")
    assert "We keep PostgreSQL" in read(client, f"{DECISIONS}?since=7d&limit=5")
    assert "We keep PostgreSQL" not in read(client, f"{DECISIONS}?limit=1")


def test_a_memory_that_another_dialect_retained_has_an_address_too(here: Place) -> None:
    client = here.client(workspace="alpha")
    here.run("memory.retain", bank="alpha", content="Retained elsewhere: the roof is green.")

    found = structure(client.post(called("xerotier.memory.search", {"query": "roof"})))["results"][0]

    assert found["slug"].startswith("retained-elsewhere-the-roof-is-green-")
    assert "the roof is green" in read(client, f"xerotier://memory/{found['slug']}")


@pytest.mark.parametrize(
    "uri",
    [
        "xerotier://memory/nothing-here",
        "xerotier://memory/a-secret-of-the-others",
        "xerotier://memory/",
        "xerotier://memory/a/b",
        "xerotier://artifact/nothing",
        "xerotier://workspace/other/brief",
        "file:///etc/passwd",
        f"{BRIEF}/../../memory/x",
    ],
)
def test_what_is_not_there_is_not_found_in_either_era(here: Place, uri: str) -> None:
    client = here.client(workspace="alpha")

    old = told(client.session().post(request("resources/read", {"uri": uri})))["error"]
    new = told(modern_read(client, uri))["error"]

    assert (old["code"], new["code"]) == (-32002, -32602)
    assert old["data"] == new["data"] == {"uri": uri}


def modern_read(client: Client, uri: str) -> httpx.Response:
    params = {"uri": uri, "_meta": META}
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "resources/read", "Mcp_Name": uri}
    return client.post(request("resources/read", params), **headers)


@pytest.mark.parametrize("query", ["since=never", "limit=0", "limit=many", "limit=999", "more=1", "since="])
def test_what_an_address_says_wrongly_is_told(here: Place, query: str) -> None:
    code, message = error(
        here.client(workspace="alpha").post(request("resources/read", {"uri": f"{DECISIONS}?{query}"}))
    )

    assert code == -32602 and "Resource not found" not in message


def test_arguments_are_completed_from_the_workspace_alone(here: Place) -> None:
    client = here.client(workspace="alpha")

    def completed(ref: dict[str, str], name: str, value: str, asking: Client = client) -> list[str]:
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        return list(result(asking.post(request("completion/complete", params)))["completion"]["values"])

    prompt_ref = {"type": "ref/prompt", "name": "onboard"}
    memory_ref = {"type": "ref/resource", "uri": "xerotier://memory/{slug}"}
    artifact_ref = {"type": "ref/resource", "uri": "xerotier://artifact/{id}"}

    assert completed(memory_ref, "slug", "ship") == ["ship-on-fridays"]
    assert completed(memory_ref, "slug", "a-secret") == []
    assert completed(memory_ref, "slug", "%") == []
    assert len(completed(artifact_ref, "id", "release")) == 1
    assert completed(prompt_ref, "topic", "post") == ["PostgreSQL"]
    assert completed(prompt_ref, "other", "x") == []
    assert completed(memory_ref, "slug", "ship", here.client()) == []
    params = {"ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "x", "value": ""}}
    assert error(client.post(request("completion/complete", params)))[0] == -32602


def test_only_this_dialect_has_prompts_and_resources(here: Place) -> None:
    capabilities = result(here.client().post(serving.initialize()))["capabilities"]
    modern = result(here.client().modern(request("server/discover", {})))["capabilities"]
    others = [
        result(here.client(path=path).post(serving.initialize()))["capabilities"]
        for path in ("/mcp", "/api/mcp", "/kiro/mcp", "/api/ai/mcp", "/keepsake/mcp")
    ]

    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert "prompts" in capabilities and "completions" in capabilities
    assert modern["resources"] == {"subscribe": True, "listChanged": True}
    assert all(not {"prompts", "resources", "completions"} & told.keys() for told in others)


class Listener:
    """A stream on which the server tells what changed."""

    def __init__(self, client: Client, method: str, body: bytes | None, **headers: str) -> None:
        self.found: list[serving.Json] = []
        given = {"Content-Type": "application/json"} | client.headers | headers
        given["Accept"] = serving.BOTH if body else "text/event-stream"
        self.stream = httpx.Client(timeout=30)
        self.request = self.stream.build_request(method, client.url, content=body, headers=given)
        self.opened = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.opened.wait(20)

    def _run(self) -> None:
        try:
            with self.stream:
                answer = self.stream.send(self.request, stream=True)
                self.opened.set()
                for line in answer.iter_lines():
                    if line.startswith("data: {"):
                        self.found.append(json.loads(line.removeprefix("data: ")))
        except httpx.HTTPError:
            self.opened.set()

    def methods(self) -> set[str]:
        """What was told so far."""
        return {f"{one.get('method')} {one.get('params', {}).get('uri', '')}".strip() for one in list(self.found)}


UPDATED = f"notifications/resources/updated {BRIEF}"
CHANGED = "notifications/resources/list_changed"


def test_a_session_is_told_what_changes_in_its_workspace_and_nowhere_else(here: Place) -> None:
    session = here.client().session()
    session.post(serving.notification("notifications/initialized"))
    listener = Listener(session, "GET", None)
    assert result(session.post(request("resources/subscribe", {"uri": BRIEF}))) == {}
    structure(session.post(called("xerotier.session.init", {"workspace": "empty"})))
    serving.until(lambda: {UPDATED, CHANGED} <= listener.methods())
    assert error(session.post(request("resources/subscribe", {"uri": "xerotier://nothing"})))[0] == -32602

    other = here.client(workspace="alpha").session()
    other.post(serving.notification("notifications/initialized"))
    quiet = Listener(other, "GET", None)
    assert result(other.post(request("resources/subscribe", {"uri": BRIEF}))) == {}

    for said in ("Now something is known.", "And something else."):
        listener.found.clear()
        here.run("memory.retain", bank="empty", content=said)
        serving.until(lambda: {UPDATED, CHANGED} <= listener.methods())

    assert not quiet.methods()
    assert result(session.post(request("resources/unsubscribe", {"uri": BRIEF}))) == {}
    assert here.client(workspace="empty").post(request("resources/subscribe", {"uri": BRIEF})).status_code == 200
    assert error(here.client(workspace="empty").post(request("resources/subscribe", {"uri": BRIEF})))[0] == -32600


def test_a_listener_of_the_2026_era_is_told_and_ends_with_its_key(here: Place) -> None:
    key = here.key("listening", banks=["empty"])
    client = here.client(key, "empty")
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": [BRIEF]}
    body = request("subscriptions/listen", {"notifications": wanted, "_meta": META}, id=5)
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    listener = Listener(client, "POST", json.dumps(body).encode(), **headers)
    serving.until(lambda: len(listener.found) == 1)

    here.run("memory.retain", bank="other", content="Elsewhere again.")
    here.run("memory.retain", bank="empty", content="And now more is known.")
    serving.until(lambda: {UPDATED, CHANGED} <= listener.methods())
    before = len(listener.found)
    here.run("key.revoke", name="listening")
    here.run("memory.retain", bank="empty", content="After the key has gone.")
    witness = Listener(here.client(workspace="empty"), "POST", json.dumps(body).encode(), **headers)
    serving.until(lambda: len(witness.found) == 1)
    here.run("memory.retain", bank="empty", content="The witness hears this.")
    serving.until(lambda: UPDATED in witness.methods())

    assert listener.found[0]["method"] == "notifications/subscriptions/acknowledged"
    assert len(listener.found) == before
