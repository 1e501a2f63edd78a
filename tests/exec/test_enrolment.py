"""What can be enrolled and what not, and what of it each credential gets to know."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.errors import BadInput, KeepsakeError, UnknownTool
from keepsake.tools.xerotier_exec import EXEC
from tests.auth.conftest import opened
from tests.exec.executing import ANY, Json, agent, ask, enrolled, invoked, looked, owner

SAY: Json = {"name": "say", "argv": ["echo", "{text}"], "parameters": ANY}
CALL: Json = {"name": "call", "http": {"url": "https://deploy.example/{text}"}, "parameters": ANY}
OPTIONAL = {"properties": {"text": {"type": "string"}}}

#: What is wrong with each, and what is said of it.
WRONG: dict[str, tuple[Json, str]] = {
    "a shell's line": ({**SAY, "argv": "echo {text}"}, "argv"),
    "nothing to run": ({"name": "say"}, "either argv or http"),
    "both": ({**SAY, "http": CALL["http"]}, "either argv or http"),
    "an empty command": ({**SAY, "argv": []}, "argv"),
    "a program by argument": ({**SAY, "argv": ["{text}"]}, "program itself"),
    "an unknown place": ({**SAY, "argv": ["echo", "{other}"]}, "{other} is not among"),
    "a place that may stay empty": ({**SAY, "parameters": OPTIONAL}, "must be required"),
    "a lone brace": ({**SAY, "argv": ["echo", "{text"]}, "lone"),
    "a change without consent": ({**SAY, "approval": "none", "effect": "mutate"}, "only what reads"),
    "a deletion without consent": ({**SAY, "approval": "none", "effect": "destructive"}, "only what reads"),
    "a policy that is none": ({**SAY, "approval": "nobody"}, "approval"),
    "a name with blanks": ({**SAY, "name": "Say It"}, "small letters"),
    "a schema that is none": ({**SAY, "parameters": {**ANY, "required": "text"}}, "list of names"),
    "a type that is none": (
        {**SAY, "parameters": {"properties": {"text": {"type": "word"}}, "required": ["text"]}},
        "type",
    ),
    "a schema elsewhere": ({**SAY, "parameters": {**ANY, "$ref": "https://evil.example/s"}}, r"\$ref"),
    "a default that does not fit": (
        {**SAY, "parameters": {"properties": {"text": {"type": "integer", "default": "x"}}}},
        "not of type",
    ),
    "a schema of no object": ({**SAY, "parameters": {"type": "string"}}, "schema of an object"),
    "our own secrets": ({**SAY, "env": ["KEEPSAKE_API_KEY"]}, "Keepsake's own"),
    "the loader": ({**SAY, "env": ["LD_PRELOAD"]}, "loader"),
    "a secret in sight": ({**SAY, "env": ["TOKEN"], "argv": ["curl", "{env.TOKEN}"]}, "can see arguments"),
    "the root": ({**SAY, "sandbox": {"read_only": ["/"]}}, "root"),
    "a way up": ({**SAY, "sandbox": {"writable": ["/srv/../etc"]}}, "without"),
    "the kernel": ({**SAY, "sandbox": {"writable": ["/proc/sys"]}}, "/proc"),
    "root as user": ({**SAY, "sandbox": {"uid": 0}}, "uid"),
    "a host by argument": ({**CALL, "http": {"url": "https://{text}/x"}}, "host itself"),
    "a user in an address": ({**CALL, "http": {"url": "https://me:pw@deploy.example/{text}"}}, "without a user"),
    "a file": ({**CALL, "http": {"url": "file:///etc/{text}"}}, "host itself"),
    "another's host": ({**CALL, "http": {**CALL["http"], "headers": {"Host": "x"}}}, "not a header"),
    "a header of two lines": ({**CALL, "http": {**CALL["http"], "headers": {"A\r\nB": "x"}}}, "not a header"),
    "a variable that was not named": ({**CALL, "http": {**CALL["http"], "headers": {"A": "{env.T}"}}}, "not among env"),
    "a secret itself": (
        {**CALL, "http": {**CALL["http"], "headers": {"Authorization": "Bearer ghp_" + "a1B2" * 9}}},
        "holds a secret",
    ),
    "endless time": ({**SAY, "timeout_s": 10**9}, "timeout_s"),
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as app:
        yield app


async def test_what_is_wrong_is_refused_and_nothing_is_enrolled(app: App) -> None:
    for name, (given, reason) in WRONG.items():
        with pytest.raises(BadInput, match=reason):
            await ask(owner(app), "exec.enrol", **given)
            pytest.fail(f"{name} was enrolled")

    assert (await ask(owner(app), "exec.tools"))["tools"] == []


async def test_only_who_manages_the_org_enrols(app: App) -> None:
    for operation, given in {"exec.enrol": SAY, "exec.tools": {}, "exec.remove": {"name": "say"}}.items():
        with pytest.raises(KeepsakeError, match="admin"):
            await ask(agent(app), operation, **given)


#: Arguments that are outside the schema, or would be more than a value.
ARGUMENTS: dict[str, tuple[Json, str]] = {
    "none": ({}, "required"),
    "another": ({"text": "x", "more": 1}, "more"),
    "of another type": ({"text": 5}, "not of type"),
    "too long": ({"text": "x" * 200}, "too long"),
    "an option": ({"text": "--output=/etc/passwd"}, "must not begin with '-'"),
    "endless": ({"text": "x" * 200_000}, "at most|too long"),
}


async def test_arguments_outside_the_schema_are_refused(app: App) -> None:
    strict = {"properties": {"text": {"type": "string", "maxLength": 100}}, "required": ["text"]}
    await ask(owner(app), "exec.enrol", **{**SAY, "parameters": strict})

    for name, (given, reason) in ARGUMENTS.items():
        with pytest.raises(BadInput, match=reason):
            await invoked(agent(app), "say", **given)
            pytest.fail(f"{name} was taken")
    assert (await ask(owner(app), "invocation.list"))["invocations"] == []


async def test_a_secret_is_no_argument(app: App) -> None:
    await ask(owner(app), "exec.enrol", **SAY)

    with pytest.raises(BadInput, match="secret"):
        await invoked(agent(app), "say", text="ghp_" + "a1B2" * 9)


async def test_values_are_inert_in_addresses_and_headers(app: App) -> None:
    http = {"url": "https://deploy.example/a/{text}?q={text}", "headers": {"X-Text": "{text}"}, "body": {"t": "{text}"}}
    await ask(owner(app), "exec.enrol", **{**CALL, "http": http})

    made = await invoked(agent(app), "call", text="a/b?c#d&e f%2e")
    told = await ask(owner(app), "approval.get", id=made["id"])

    path = "a%2Fb%3Fc%23d%26e%20f%252e"
    assert told["does"].splitlines() == [
        f"POST https://deploy.example/a/{path}?q={path}",
        "X-Text: a/b?c#d&e f%2e",
        '{"t":"a/b?c#d&e f%2e"}',
    ]
    for text, reason in {"..": "'..'", "x\r\nEvil: 1": "newlines"}.items():
        with pytest.raises(BadInput, match=reason):
            await invoked(agent(app), "call", text=text)


async def test_what_destroys_is_hidden_from_keys_that_may_not(app: App) -> None:
    await enrolled(app, "look")
    await enrolled(app, "wipe", "true", effect="destructive", approval="person")
    await enrolled(app, "elsewhere", "true", banks=["other"])
    may, may_not = agent(app, may_destroy=True), agent(app)
    choices = EXEC[0].choices
    assert choices is not None

    assert dict(await choices(may)) == {"look": "text", "wipe": ""}
    assert dict(await choices(may_not)) == {"look": "text"}
    assert (await invoked(may, "wipe"))["status"] == "awaiting_approval"
    words = []
    for name in ("wipe", "elsewhere", "nothing"):
        with pytest.raises(UnknownTool) as refused:
            await invoked(may_not, name)
        words.append(str(refused.value).replace(name, "NAME"))
    with pytest.raises(UnknownTool) as never:
        await dispatch.call(may_not, "no.such", {})
    assert len(set(words)) == 1
    assert "Unknown tool: NAME" in words[0] and "Unknown operation" in str(never.value)


async def test_a_change_of_the_enrolment_ends_what_waits_for_it(app: App) -> None:
    first = await enrolled(app, "say", effect="mutate", approval="person")
    made = await invoked(agent(app), text="once")
    same = await enrolled(app, "say", effect="mutate", approval="person")
    waiting = await looked(agent(app), made)

    other = await enrolled(app, "say", effect="mutate", approval="person", timeout_s=5)
    ended = await looked(agent(app), made)
    with pytest.raises(KeepsakeError, match="expired"):
        await ask(owner(app), "approval.decide", id=made["id"], approve=True)

    assert (same["version"], same["withdrawn"], waiting["status"]) == (first["version"], 0, "awaiting_approval")
    assert (other["version"] != first["version"], other["withdrawn"]) == (True, 1)
    assert (ended["status"], "Ask again" in ended["outcome"]) == ("expired", True)


async def test_what_is_struck_off_can_be_asked_for_no_more(app: App) -> None:
    await enrolled(app, "say", effect="mutate", approval="person")
    made = await invoked(agent(app), text="once")

    gone = await ask(owner(app), "exec.remove", name="say")
    with pytest.raises(UnknownTool):
        await invoked(agent(app), text="twice")

    assert (gone["withdrawn"], (await looked(agent(app), made))["status"]) == (1, "expired")
    with pytest.raises(KeepsakeError, match="tool list"):
        await ask(owner(app), "exec.remove", name="say")
