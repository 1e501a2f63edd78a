"""Who may do what over HTTP, and how each refusal looks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from keepsake.core.operation import Effect
from keepsake.tools import catalog
from tests.surfaces import probes, serving
from tests.surfaces.serving import Client, called, messages, notification, request

Of = Callable[..., Client]
TOOLS = catalog.DIALECTS["hindsight"].tools


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """Keys with rights of every kind."""
    return {
        "full": serving.made_key(folder, "full", "--allow-destructive"),
        "plain": serving.made_key(folder, "plain"),
        "reader": serving.made_key(folder, "reader", "--scope", "memory:read"),
        "writer": serving.made_key(folder, "writer", "--scope", "memory:read", "--scope", "memory:write"),
        "core": serving.made_key(folder, "core", "--tier", "core"),
        "narrow": serving.made_key(folder, "narrow", "--bank", "mine", "--allow-destructive"),
    }


@pytest.fixture(scope="module")
def address(folder: Path, keys: dict[str, str]) -> Iterator[str]:
    with serving.serving(folder) as address:
        yield address


@pytest.fixture
def of(address: str, keys: dict[str, str]) -> Of:
    """A client that holds the key of that name."""

    def client(key: str, path: str = "/mcp") -> Client:
        return Client(f"{address}{path}", {"Authorization": f"Bearer {keys[key]}"})

    return client


def told(answer: httpx.Response) -> tuple[int, int]:
    """The status and code of a refusal."""
    return answer.status_code, messages(answer)[0]["error"]["code"]


@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", "Bearer", "Basic YTpi", "Bearer ks_live_" + "0" * 64, "Bearer é"]
)
def test_a_missing_or_wrong_credential_is_401(address: str, given: str | None) -> None:
    client = Client(f"{address}/mcp", {"Authorization": given} if given else {})

    answers = [
        client.post(request("tools/list")),
        client.post(request("initialize")),
        client.modern(request("tools/list")),
    ]

    for answer in answers:
        assert told(answer) == (401, -32001)
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_of_two_credentials_neither_counts(address: str, keys: dict[str, str]) -> None:
    both = [("Authorization", f"Bearer {keys['full']}"), ("Authorization", "Bearer wrong")]

    answers = [httpx.post(f"{address}/mcp", json=request("ping"), headers=pair) for pair in (both, both[::-1])]

    assert [told(answer) for answer in answers] == [(401, -32001)] * 2


def test_a_wrong_credential_is_not_repeated(address: str) -> None:
    answer = Client(f"{address}/mcp", {"Authorization": "Bearer my-secret-word"}).post(request("tools/list"))

    assert "my-secret-word" not in answer.text


def test_tools_list_shows_what_the_principal_may_call(of: Of) -> None:
    def listed(key: str) -> set[str]:
        return {tool["name"] for tool in of(key).post(request("tools/list")).json()["result"]["tools"]}

    read = {name for name, tool in TOOLS.items() if tool.operation.scopes == {"memory:read"}}
    harmless = {name for name, tool in TOOLS.items() if tool.operation.effect is not Effect.DESTRUCTIVE}
    assert listed("full") == set(TOOLS)
    assert listed("plain") == harmless
    assert listed("reader") == read
    assert len(TOOLS) - len(harmless) >= 4


@pytest.mark.parametrize("way", ["bare", "session", "modern"])
@pytest.mark.parametrize(
    ("key", "tool", "arguments", "word"),
    [
        ("reader", "retain", {"content": "no"}, "memory:write"),
        ("reader", "delete_memory", {"memory_id": "1"}, "memory:delete"),
        ("plain", "clear_memories", {}, "memory:delete"),
        ("narrow", "recall", {"query": "x", "bank_id": "theirs"}, "bank"),
    ],
)
def test_a_missing_right_is_403(of: Of, way: str, key: str, tool: str, arguments: dict[str, str], word: str) -> None:
    client = of(key)
    call = called(tool, arguments, id=4)

    answer = {
        "bare": lambda: client.post(call),
        "session": lambda: client.session().post(call),
        "modern": lambda: client.modern(call),
    }[way]()

    assert told(answer) == (403, -32003)
    message = answer.json()["error"]["message"]
    assert message.startswith("403")
    assert word in message
    assert word == "bank" or all(name in message for name in ("`propose`", "`apply`", "`proposal_status`"))
    assert answer.json()["id"] == 4


@pytest.mark.parametrize("way", ["bare", "session", "modern"])
def test_a_bank_that_is_not_there_is_made_by_nobody_who_may_make_none(of: Of, way: str) -> None:
    client = of("writer", "/mcp/unmade/")
    client = client.session() if way == "session" else client
    change = {"content": "Nowhere to go"}

    for call in (called("retain", change), called("propose", {"operation": "memory.retain", "arguments": change})):
        answer = client.modern(call) if way == "modern" else client.post(call)
        assert told(answer) == (403, -32003)
        assert 'scope="bank:admin"' in answer.headers["www-authenticate"]
        assert "Ask its owner" in answer.json()["error"]["message"]
    assert client.modern(called("recall", {"query": "x"})).status_code == 200


def test_a_key_of_one_bank_reaches_no_other_by_path_header_or_argument(of: Of) -> None:
    theirs = [
        of("narrow", "/mcp/theirs/").post(called("recall", {"query": "x"})),
        of("narrow").post(called("recall", {"query": "x"}), X_Bank_Id="theirs"),
        of("narrow").post(called("recall", {"query": "x", "bank_id": "theirs"})),
        of("narrow").post(called("recall", {"query": "x"})),
        of("narrow").post(called("create_bank", {"bank_id": "theirs"})),
    ]
    mine = [
        of("narrow", "/mcp/mine/").post(called("retain", {"content": "Mine alone"})),
        of("narrow").post(called("recall", {"query": "x"}), X_Bank_Id="mine"),
        of("narrow").post(called("recall", {"query": "x", "bank_id": "mine"})),
    ]

    assert [told(answer) for answer in theirs] == [(403, -32003)] * 5
    assert [answer.json()["result"].get("isError", False) for answer in mine] == [False] * 3


def test_unknown_tools_are_refused_in_the_same_words(of: Of) -> None:
    answers = [of(key).post(called("no_such_tool")) for key in ("full", "reader")]

    assert [told(answer) for answer in answers] == [(200, -32602)] * 2
    assert answers[0].json() == answers[1].json()
    assert "tools/list" in answers[0].json()["error"]["message"]


@pytest.mark.parametrize("way", ["bare", "session", "modern"])
def test_a_tool_above_the_tier_is_as_unknown_as_none(of: Of, way: str) -> None:
    client = of("core").session() if way == "session" else of("core")

    answers = [
        client.modern(called(name)) if way == "modern" else client.post(called(name))
        for name in ("list_tags", "clear_memories", "no_such_tool")
    ]

    errors = [messages(answer)[0]["error"] for answer in answers]
    assert {error["code"] for error in errors} == {-32602}
    assert len({error["message"].partition(".")[2] for error in errors}) == 1
    assert {answer.status_code for answer in answers} == {400 if way == "modern" else 200}


def test_bad_arguments_and_unknown_ids_are_results_that_say_what_to_do(of: Of) -> None:
    client = of("full")

    results = [
        client.call("retain")["result"],
        client.call("get_memory", {"memory_id": "999"})["result"],
        client.call("recall", {"query": "x", "bank_id": "no-such-bank"})["result"],
    ]

    assert [result["isError"] for result in results] == [True] * 3
    words = [result["content"][0]["text"] for result in results]
    assert "`content` is required" in words[0]
    assert "list_memories" in words[1]
    assert "list_banks" in words[2]


@pytest.mark.parametrize("way", ["bare", "session", "modern"])
def test_a_fault_of_ours_is_told_by_its_request_id_alone(of: Of, way: str) -> None:
    client, call = of("plain", "/probe"), called("broken")
    client = client.session() if way == "session" else client

    answer = client.modern(call) if way == "modern" else client.post(call)

    assert told(answer) == (200, -32603)
    assert "request id" in messages(answer)[0]["error"]["message"]
    assert probes.SECRET not in answer.text
    assert "RuntimeError" not in answer.text


def test_a_key_that_is_revoked_is_out_at_once(folder: Path, address: str) -> None:
    secret = serving.made_key(folder, "brief")
    client = Client(f"{address}/mcp", {"Authorization": f"Bearer {secret}"})
    assert client.post(request("tools/list")).status_code == 200

    serving.keepsake(folder, "key", "revoke", "brief")

    assert told(client.post(request("tools/list"))) == (401, -32001)


def test_over_the_limit_is_429_with_the_four_headers(tmp_path: Path) -> None:
    key = serving.made_key(tmp_path, "busy")
    with serving.serving(tmp_path, rate_limit=3) as address:
        client = Client(f"{address}/mcp", {"Authorization": f"Bearer {key}"})
        session = client.session()
        allowed = serving.within_a_minute(lambda: [session.post(called("list_banks", id=n)) for n in range(3)])
        over = [session.post(called("list_banks", id=9)), client.modern(called("list_banks"))]
        exempt = [session.post(request("tools/list")), client.post(notification("notifications/initialized"))]
        begun = client.session()

    assert [answer.headers["x-ratelimit-remaining"] for answer in allowed] == ["2", "1", "0"]
    for answer in over:
        assert told(answer) == (429, -32005)
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert answer.headers["x-ratelimit-limit"] == "3"
        assert answer.headers["x-ratelimit-remaining"] == "0"
        assert int(answer.headers["x-ratelimit-reset"]) > 0
    assert [answer.status_code for answer in exempt] == [200, 202]
    assert "Mcp-Session-Id" in begun.headers


def test_every_call_of_a_batch_counts(tmp_path: Path) -> None:
    key = serving.made_key(tmp_path, "busy")
    with serving.serving(tmp_path, rate_limit=3) as address:
        client = Client(f"{address}/mcp", {"Authorization": f"Bearer {key}"})
        batch = [called("list_banks", id=1), called("list_banks", id=2)]
        first, second = serving.within_a_minute(lambda: [client.post(batch), client.post(batch)])

    assert (first.status_code, first.headers["x-ratelimit-remaining"]) == (200, "1")
    assert told(second) == (429, -32005)


def test_the_tenant_key_of_the_hindsight_seed_may_do_everything(tmp_path: Path) -> None:
    with serving.serving(tmp_path, tenant_api_key="your-secret-key") as address:
        client = Client(f"{address}/mcp", {"Authorization": "Bearer your-secret-key", "X-Bank-Id": "my-bank"})

        tools = client.post(request("tools/list")).json()["result"]["tools"]
        closed = Client(f"{address}/mcp").post(request("tools/list"))

    assert {tool["name"] for tool in tools} == set(TOOLS)
    assert closed.status_code == 401
