"""Watching as people meet it: the command, the heartbeat's path, and REST."""

import httpx

from tests.surfaces.helpers import Terminal, keepsake

__all__ = ["keepsake"]


def post(address: str, operation: str, bank: str, **given: object) -> httpx.Response:
    return httpx.post(f"{address}/v1/operations/{operation}", json=given, headers={"X-Bank-Id": bank}, timeout=30)


def test_a_check_is_added_listed_and_removed_by_the_command(keepsake: Terminal) -> None:
    added = keepsake("check", "add", "web", "--bank", "shop", "--http", "https://shop.example/", "--tls-days", "14")
    listed = keepsake("check", "list", "--bank", "shop")
    gone = keepsake("check", "remove", "web", "--bank", "shop")

    assert added.out == "The check 'web' watches https://shop.example/, every 60 s.\n"
    head, row = listed.out.splitlines()
    assert head.split() == ["NAME", "STATE", "KIND", "TARGET", "EVERY", "NEXT", "RUN"]
    assert row.split()[:6] == ["web", "new", "http", "https://shop.example/", "60", "s"]
    assert gone.out == "The check 'web' runs no more.\n"
    assert keepsake("check", "list", "--bank", "shop").out.startswith("Nothing is watched.")


def test_the_command_says_what_is_wrong(keepsake: Terminal) -> None:
    nothing = keepsake("check", "add", "web")
    two = keepsake("check", "add", "web", "--tcp", "a:1", "--dns", "a")
    secret = keepsake("check", "add", "db", "--postgres", "postgresql://ada:hunter2@db.example/shop")
    unknown = keepsake("check", "remove", "web")

    assert (nothing.code, two.code, secret.code, unknown.code) == (2, 2, 2, 1)
    assert "Say what to watch" in nothing.err
    assert "must not hold a user or a password" in secret.err
    assert "hunter2" not in secret.err + secret.out


def test_a_heartbeat_s_token_is_shown_once(keepsake: Terminal) -> None:
    added = keepsake("check", "add", "backup", "--heartbeat", "--every", "3600")
    token = added.out.splitlines()[-1].strip()

    assert len(token) == 43
    assert token not in keepsake("check", "list", "--json").out


def test_a_heartbeat_needs_its_token_and_nothing_else(address: str) -> None:
    token = post(address, "check.add", "beats", name="backup", kind="heartbeat").json()["token"]

    heard = httpx.post(f"{address}/v1/heartbeats/{token}")
    unknown = httpx.post(f"{address}/v1/heartbeats/{token[:-1]}")
    asked = httpx.get(f"{address}/v1/heartbeats/{token}")

    assert (heard.status_code, heard.json()) == (200, {"status": "ok"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")
    assert token[:-1] not in unknown.text
    assert asked.status_code == 405
    [check] = post(address, "check.status", "beats").json()["checks"]
    assert (check["name"], check["state"]) == ("backup", "up")


def test_everything_is_empty_before_anything_is_watched(address: str) -> None:
    assert post(address, "incident.list", "nothing").json() == {"incidents": [], "total": 0}
    assert post(address, "anomaly.list", "nothing").json() == {"anomalies": [], "total": 0}
    assert post(address, "check.list", "nothing").json() == {"checks": [], "total": 0}
    told = post(address, "check.status", "nothing").json()
    assert (told["ok"], told["checks"], [sign["ok"] for sign in told["keepsake"]]) == (True, [], [True, True, True])
