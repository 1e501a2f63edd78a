"""`keepsake tool` and `keepsake approvals`, typed."""

from pathlib import Path

from tests.surfaces.helpers import Terminal, keepsake

__all__ = ["keepsake"]
FILE = """
[[tool]]
name = "deploy.staging"
description = "Deploys to staging."
argv = ["deploy", "{service}"]
approval = "two-persons"
parameters = { properties = { service = { type = "string" } }, required = ["service"] }

[[tool]]
name = "restart"
effect = "destructive"
http = { url = "https://ops.example/restart", headers = { Authorization = "Bearer {env.OPS_TOKEN}" } }
env = ["OPS_TOKEN"]
"""


def test_tools_are_enrolled_listed_and_struck_off(keepsake: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "tools.toml"
    file.write_text(FILE)

    added = keepsake(
        *("tool", "add", "disk", "--argv", "df", "--argv", "-h", "--argv", "{path}", "--param", "path=/"),
        *("--param", "n:integer=5", "--effect", "read", "--approval", "none", "--description", "Tells what is free."),
    )
    several = keepsake("tool", "add", "--file", str(file))
    listed = keepsake("tool", "list")
    tools = keepsake("tool", "list", "--json").json["tools"]
    removed = keepsake("tool", "remove", "restart")

    assert (added.code, added.out) == (0, "Agents may ask for disk (read, approval: none).\n")
    assert several.out.splitlines()[1] == "Agents may ask for restart (destructive, approval: person)."
    assert [tool["name"] for tool in tools] == ["deploy.staging", "disk", "restart"]
    disk = tools[1]["definition"]
    assert disk["parameters"]["properties"] == {
        "path": {"type": "string", "default": "/"},
        "n": {"type": "integer", "default": 5},
    }
    assert disk["parameters"]["additionalProperties"] is False
    assert '["df", "-h", "{path}"]' in listed.out and "POST https://ops.example/restart" in listed.out
    assert "any more" in removed.out
    assert len(keepsake("tool", "list", "--json").json["tools"]) == 2


def test_wrong_usage_of_tools_says_what_to_do(keepsake: Terminal, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[tool")
    (tmp_path / "empty.toml").write_text("x = 1")
    wrong = {
        "NAME of one tool": ("tool", "add"),
        "is not NAME": ("tool", "add", "x", "--argv", "true", "--param", "no way"),
        "is not a default": ("tool", "add", "x", "--argv", "true", "--param", "n:integer=many"),
        "is not TOML": ("tool", "add", "--file", str(tmp_path / "bad.toml")),
        "holds no [[tool]]": ("tool", "add", "--file", str(tmp_path / "empty.toml")),
        "cannot be read": ("tool", "add", "--file", str(tmp_path / "none.toml")),
        "is not among": ("tool", "add", "x", "--argv", "echo", "--argv", "{y}"),
        "only what reads": ("tool", "add", "x", "--argv", "true", "--approval", "none"),
    }
    for reason, words in wrong.items():
        ran = keepsake(*words)
        assert (ran.code, reason in ran.err, len(ran.err.splitlines())) == (2, True, 1), (reason, ran.err)

    assert keepsake("tool", "remove", "x").code == 1
    assert "Nothing is enrolled" in keepsake("tool", "list").out


def test_what_waits_is_listed_with_what_it_would_do_and_decided(keepsake: Terminal) -> None:
    keepsake(
        "tool", "add", "greet", "--argv", "echo", "--argv", "{text}", "--param", "text", "--description", "Greets."
    )
    made = [
        keepsake("call", "xerotier.exec.invoke", "--dialect", "xerotier", "--bank", "work", "--json", *given).json
        for given in (
            ("--tool_name", "greet", "--arguments", '{"text": "hi\\u001b[2J"}', "--reason", "to be polite"),
            ("--tool_name", "greet", "--arguments", '{"text": "bye"}'),
        )
    ]
    first, second = (one["invocation_id"] for one in made)

    listed = keepsake("approvals", "list")
    approved = keepsake("approvals", "approve", first)
    denied = keepsake("approvals", "deny", second, "--reason", "too late")
    again = keepsake("approvals", "approve", second)
    runs = {one["id"]: one for one in keepsake("tool", "runs", "--json").json["invocations"]}
    settled = keepsake("tool", "settle", first, "succeeded")

    assert f"{first}  greet (mutate) asked for by local" in listed.out
    assert "why: to be polite" in listed.out and "what: Greets." in listed.out
    assert r'runs: ["echo","hi\u001b[2J"]' in listed.out and "\x1b" not in listed.out
    assert (approved.code, approved.out.split(",")[0]) == (0, "Approved: greet by local")
    assert (denied.code, denied.out) == (0, "Rejected: greet by local.\n")
    assert (again.code, "denied" in again.err) == (1, True)
    assert (runs[first]["status"], runs[second]["status"]) == ("queued", "denied")
    assert (runs[second]["outcome"], runs[first]["decisions"][0]["how"]) == ("too late", "self")
    assert (settled.code, "queued" in settled.err) == (1, True)
    assert "greet" in keepsake("tool", "runs").out
    assert "Nothing waits" in keepsake("approvals", "list").out
