"""`keepsake stdio --bank .`: a server for the project of the folder that it is started in."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.hooks.running import made, ran, start
from tests.surfaces import serving
from tests.surfaces.serving import Pipe, called, initialize, notification, request, until

Json = dict[str, Any]


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    if remote:
        subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    return folder


@contextmanager
def inside(folder: Path, cwd: Path, *words: str, **settings: object) -> Iterator[Pipe]:
    with serving.piped(
        folder, "-m", "keepsake", "stdio", "--dialect", "hindsight", "--bank", ".", *words, cwd=cwd, **settings
    ) as pipe:
        pipe.ask(initialize())
        pipe.send(notification("notifications/initialized"))
        yield pipe


def told(pipe: Pipe, tool: str, **arguments: object) -> Json:
    answer = pipe.ask(called(tool, arguments))["result"]
    assert not answer.get("isError"), answer
    given: Json = answer["structuredContent"]
    return given


def recalled(pipe: Pipe, query: str) -> list[str]:
    return [one["text"] for one in told(pipe, "recall", query=query)["results"]]


def banks(folder: Path) -> dict[str, set[str]]:
    """Every bank that there is, with the places that it belongs to."""
    connection = apsw.Connection(str(folder / "keepsake.db"))
    found: dict[str, set[str]] = {name: set() for (name,) in connection.execute("SELECT name FROM banks")}
    sql = "SELECT b.name, n.name FROM banks b JOIN bank_names n ON n.bank = b.bank WHERE n.name <> b.name"
    for name, other in connection.execute(sql):
        found[name].add(other)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return made(tmp_path / "data")


def test_two_projects_of_one_name_never_mix(tmp_path: Path, data: Path) -> None:
    acme = repository(tmp_path / "acme" / "api", "git@github.com:acme/api.git")
    local = repository(tmp_path / "local" / "api")
    with inside(data, acme) as first, inside(data, local) as second:
        assert recalled(first, "port") == recalled(second, "port") == []
        told(first, "retain", content="Acme listens on port 4711.")
        between = recalled(second, "port")
        told(second, "retain", content="Local listens on port 1234.")
        found = recalled(first, "Which port?"), recalled(second, "Which port?")

    assert between == []
    assert found == (["Acme listens on port 4711."], ["Local listens on port 1234."])
    assert banks(data) == {"api": {"git:github.com/acme/api"}, "local-api": {f"dir:{local}/.git"}}


def test_what_hooks_captured_is_recalled(tmp_path: Path, data: Path) -> None:
    api = repository(tmp_path / "api")
    prompt = {**start(api), "hook_event_name": "UserPromptSubmit", "prompt": "We always deploy on Thursdays."}
    assert ran(data, "claude-code", prompt, event="prompt").returncode == 0

    with inside(data, api, worker="true") as pipe:
        until(lambda: any("Thursdays" in text for text in recalled(pipe, "When do we deploy?")))

    assert banks(data) == {"api": {f"dir:{api}/.git"}}


def test_a_folder_below_belongs_to_the_same_project(tmp_path: Path, data: Path) -> None:
    api = repository(tmp_path / "api")
    (api / "src").mkdir()
    with inside(data, api) as above:
        told(above, "retain", content="Tea is at four.")
    with inside(data, api / "src") as below:
        assert recalled(below, "tea") == ["Tea is at four."]


def test_reading_makes_no_bank_and_names_the_one_to_come(tmp_path: Path, data: Path) -> None:
    with inside(data, repository(tmp_path / "api")) as pipe:
        assert recalled(pipe, "tea") == []
        assert told(pipe, "get_bank")["bank_id"] == "api"

    assert banks(data) == {}


def test_a_bank_made_by_hand_is_the_first_writers(tmp_path: Path, data: Path) -> None:
    serving.keepsake(data, "call", "retain", "--dialect", "hindsight", "--content", "Tea is at four.", "--bank", "api")
    one, two = repository(tmp_path / "one" / "api"), repository(tmp_path / "two" / "api")
    with inside(data, one) as first, inside(data, two) as second:
        before = recalled(first, "tea")
        told(first, "retain", content="Coffee is at two.")
        after = recalled(second, "tea")

    assert (before, after) == (["Tea is at four."], [])
    assert banks(data) == {"api": {f"dir:{one}/.git"}}


def test_a_deleted_bank_is_forgotten_by_the_server_too(tmp_path: Path, data: Path) -> None:
    one, two = repository(tmp_path / "one" / "api"), repository(tmp_path / "two" / "api")
    with inside(data, one) as first, inside(data, two) as second:
        told(first, "retain", content="Tea is at four.")
        told(first, "delete_bank")
        told(second, "retain", content="Coffee is at two.")
        assert recalled(first, "coffee") == []
        told(first, "retain", content="Tea is at five.")

    assert banks(data) == {"api": {f"dir:{two}/.git"}, "one-api": {f"dir:{one}/.git"}}


def test_an_override_file_names_the_bank(tmp_path: Path, data: Path) -> None:
    api = repository(tmp_path / "api")
    (api / ".keepsake").write_text("shared\n")
    with inside(data, api) as pipe:
        told(pipe, "retain", content="Tea is at four.")

    assert banks(data) == {"shared": set()}


@pytest.mark.parametrize("place", ["home", "root", "gone"])
def test_where_there_is_no_project_it_is_the_default_bank(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    home, gone = tmp_path / "ada", tmp_path / "gone"
    home.mkdir()
    gone.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with inside(data, {"home": home, "root": Path("/"), "gone": gone}[place], default_bank="mine") as pipe:
        gone.rmdir()
        told(pipe, "retain", content="Tea is at four.")

    assert banks(data) == {"mine": set()}


def test_a_key_that_may_make_no_banks_makes_none(tmp_path: Path, data: Path) -> None:
    key = serving.made_key(data, "writer", "--scope", "memory:read", "--scope", "memory:write")
    with inside(data, repository(tmp_path / "api"), api_key=key) as pipe:
        assert recalled(pipe, "tea") == []
        refused = pipe.ask(called("retain", {"content": "Tea is at four."}))["error"]

    assert refused["code"] == -32003
    assert banks(data) == {}


def test_kiro_knows_this_project_and_no_other(tmp_path: Path, data: Path) -> None:
    serving.keepsake(
        data, "call", "retain", "--dialect", "hindsight", "--content", "Their tea is at four.", "--bank", "theirs"
    )
    one, two = repository(tmp_path / "one" / "api"), repository(tmp_path / "two" / "api")
    for place in (one, two):
        with inside(data, place) as pipe:
            told(pipe, "retain", content=f"Tea of {place.parent.name}.")
    with inside(data, two, "--dialect", "kiro") as kiro:
        mine, by_folder, theirs, nobodys = (
            told(kiro, "get_context", project=name) for name in ("two-api", "api", "theirs", "nobody")
        )
        everywhere = told(kiro, "search", query="tea")
        elsewhere = told(kiro, "search", query="tea", project="theirs")

    assert [item["content"] for item in mine["items"]] == ["Tea of two."]
    # Agents call a project by its folder; here that can only mean this one.
    assert (by_folder["project"], by_folder["items"]) == ("two-api", mine["items"])
    assert (theirs["items"], theirs["summaries"], nobodys["items"]) == ([], [], [])
    assert [one["project"] for one in everywhere["observations"]] == ["two-api"]
    assert elsewhere == {"observations": [], "summaries": []}


def test_an_unreadable_folder_is_no_project(tmp_path: Path, data: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    closed = tmp_path / "closed"
    closed.mkdir()
    with inside(data, closed) as pipe:
        closed.chmod(0)
        told(pipe, "retain", content="Tea is at four.")
        closed.chmod(0o700)

    assert banks(data) == {"default": set()}


def answered(pipe: Pipe, message: Json, *roots: Path | str) -> Json:
    """Ask something, and answer the server's own question on the way: which folders the client has open."""
    reply: Json = pipe.ask(message)
    while reply.get("method") == "roots/list":
        uris = [root if isinstance(root, str) else root.as_uri() for root in roots]
        reply = pipe.ask({"jsonrpc": "2.0", "id": reply["id"], "result": {"roots": [{"uri": uri} for uri in uris]}})
    return reply


@contextmanager
def with_roots(data: Path, cwd: Path) -> Iterator[Pipe]:
    first = initialize()
    first["params"]["capabilities"] = {"roots": {"listChanged": True}}
    with serving.piped(data, "-m", "keepsake", "stdio", "--dialect", "hindsight", "--bank", ".", cwd=cwd) as pipe:
        pipe.ask(first)
        pipe.send(notification("notifications/initialized"))
        yield pipe


def retained(text: str) -> Json:
    return called("retain", {"content": text})


def test_a_client_that_tells_its_folder_is_served_there_wherever_it_starts_servers(tmp_path: Path, data: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    api, web = repository(tmp_path / "my api"), repository(tmp_path / "web")
    with with_roots(data, installed) as pipe:
        assert "method" not in pipe.ask(request("tools/list", {}))
        assert not answered(pipe, retained("Tea is at four."), api)["result"].get("isError")
        # It is asked once, until it says that another folder is open.
        assert pipe.ask(retained("Cake is at five."))["result"]["structuredContent"]
        pipe.send(notification("notifications/roots/list_changed"))
        answered(pipe, retained("Coffee is at nine."), web)

    assert set(banks(data)) == {"my-api", "web"}


@pytest.mark.parametrize("roots", [[], ["https://example.com/api"], ["file:///no/such/folder"], ["file://%00"]])
def test_what_tells_no_folder_leaves_the_process_where_it_is(tmp_path: Path, data: Path, roots: list[str]) -> None:
    with with_roots(data, repository(tmp_path / "api")) as pipe:
        answered(pipe, retained("Tea is at four."), *roots)

    assert set(banks(data)) == {"api"}


def test_a_client_that_does_not_say_which_folder_is_open_is_served_where_the_process_is(
    tmp_path: Path, data: Path
) -> None:
    with with_roots(data, repository(tmp_path / "api")) as pipe:
        asked = pipe.ask(retained("Tea is at four."))
        assert asked["method"] == "roots/list"
        refused = pipe.ask({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32603, "message": "no"}})
        assert not refused["result"].get("isError")

    assert set(banks(data)) == {"api"}
