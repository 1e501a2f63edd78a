"""REST: every operation at its path, and an OpenAPI document that tells the truth."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.surfaces import probes, serving

SHARED = {"Content-Type": "application/json"}
#: Where a schema cannot say all that is asked: a key's name that can be printed and an end to come, numbers in metadata
#: or in what is imported that a store can hold, an answer's shape where a language model is, a change that changes
#: something, a project's identity.
_UNSAID = (
    "artifact[.][a-z]+",
    "bank[.]alias",
    "bank[.]sync",
    "calc[.]evaluate",
    "check[.]add",
    "client[.]bundle",
    "code[.][a-z]+",
    "exec[.]enrol",
    "graph[.][a-z]+",
    "import",
    "key[.]create",
    "key[.]revoke",
    "memory[.]browse",
    "memory[.]reflect",
    "memory[.]retain",
    "memory[.]timeline",
    "model[.]update",
    "proposal[.]create",
    "session[.][a-z]+",
    "user[.][a-z]+",
    "web[.][a-z]+",
)
UNSAID = f"""
[[operations]]
include-path-regex = "({"|".join(_UNSAID)})$"
checks.positive_data_acceptance.enabled = false
"""


def post(address: str, operation: str, body: object = None, **headers: str) -> httpx.Response:
    """Run an operation."""
    return httpx.post(f"{address}/v1/operations/{operation}", json=body, headers=headers, timeout=30)


@pytest.fixture(scope="module")
def document(address: str) -> dict[str, Any]:
    told: dict[str, Any] = httpx.get(f"{address}/openapi.json").json()
    return told


def test_a_memory_is_stored_and_recalled(address: str) -> None:
    stored = post(address, "memory.retain", {"content": "Mia plays the oboe", "bank": None}, **{"X-Bank-Id": "rest"})

    found = post(address, "memory.recall", {"query": "What does Mia play?"}, **{"X-Bank-Id": "rest"})

    assert stored.json()["status"] == "stored"
    assert [hit["memory"]["text"] for hit in found.json()["hits"]] == ["Mia plays the oboe"]


def test_an_empty_body_means_no_arguments(address: str) -> None:
    answer = httpx.post(f"{address}/v1/operations/bank.list")

    assert answer.status_code == 200
    assert "banks" in answer.json()


def test_a_whole_number_may_be_written_with_a_point(address: str) -> None:
    assert post(address, "memory.list", {"limit": 5.0}).status_code == 200
    assert post(address, "memory.list", {"limit": 5.5}).status_code == 400


@pytest.mark.parametrize(
    ("operation", "body", "status", "code"),
    [
        ("memory.retain", {}, 400, "bad_input"),
        ("memory.retain", {"content": "x", "colour": "red"}, 400, "bad_input"),
        ("memory.retain", [1], 400, "bad_input"),
        ("memory.get", {"id": "999"}, 404, "not_found"),
        ("memory.recall", {"query": "x", "bank": "no-such-bank"}, 404, "not_found"),
        ("no.such", {}, 404, "unknown_tool"),
        ("probe.broken", {}, 500, "broken"),
    ],
)
def test_refusals_have_a_status_and_a_code(address: str, operation: str, body: object, status: int, code: str) -> None:
    answer = post(address, operation, body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert probes.SECRET not in answer.text
    assert "pydantic" not in answer.text


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"query": "\\ud800"}', b'{"query": NaN}', b'{"a": 1, "a": 2}'])
def test_a_body_that_is_not_json_is_400(address: str, body: bytes) -> None:
    answer = httpx.post(f"{address}/v1/operations/memory.recall", content=body, headers=SHARED)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")


def test_a_bank_name_that_is_a_path_is_400(address: str) -> None:
    answer = post(address, "bank.get", {}, **{"X-Bank-Id": "../etc"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")


def test_missing_rights_and_wrong_keys_have_their_status(tmp_path: Path) -> None:
    key = serving.made_key(tmp_path, "reader", "--scope", "memory:read")
    with serving.serving(tmp_path, rate_limit=2) as address:
        bearer = {"Authorization": f"Bearer {key}"}
        closed = post(address, "bank.list", {})
        forbidden = post(address, "memory.retain", {"content": "x"}, **bearer)
        counted = serving.within_a_minute(lambda: [post(address, "bank.list", {}, **bearer) for _ in range(3)])

    assert (closed.status_code, forbidden.status_code) == (401, 403)
    assert closed.headers["www-authenticate"].startswith("Bearer")
    assert [answer.status_code for answer in counted] == [200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining"] for answer in counted] == ["1", "0", "0"]
    assert "retry-after" in counted[2].headers


def test_the_document_names_every_operation_with_valid_schemas(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert "/v1/operations/memory.retain" in document["paths"]
    for path in document["paths"].values():
        body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
        answer = path["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        Draft202012Validator.check_schema(body)
        Draft202012Validator.check_schema(answer)


def test_what_comes_back_is_what_the_document_says(address: str, document: dict[str, Any]) -> None:
    bank = {"X-Bank-Id": "documented"}
    post(address, "memory.retain", {"content": "Rosa bakes on Fridays", "document": "d", "tags": ["t"]}, **bank)
    bodies: dict[str, object] = {
        "memory.recall": {"query": "Rosa"},
        "memory.list": {},
        "bank.list": {},
        "bank.get": {},
        "bank.stats": {},
        "document.list": {},
        "document.get": {"id": "d"},
        "tag.list": {},
    }

    for operation, body in bodies.items():
        answer = post(address, operation, body, **bank)
        responses = document["paths"][f"/v1/operations/{operation}"]["post"]["responses"]
        schema = responses["200"]["content"]["application/json"]["schema"]
        Draft202012Validator(schema).validate(answer.json())


# In parts, so that several processes share the work.
@pytest.mark.parametrize("part", ["[a-cl]", "[d-k]", "m", "[n-z]"])
def test_schemathesis_finds_nothing(part: str, tmp_path: Path) -> None:
    with serving.serving(tmp_path, tenant_api_key="secret", rate_limit=1_000_000, body_limit=1 << 25) as address:
        (tmp_path / "schemathesis.toml").write_text(UNSAID)
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{address}/openapi.json"]
        command += ["--header", "Authorization: Bearer secret", "--exclude-path-regex", "probe[.]", "--no-color"]
        command += ["--include-path-regex", f"operations/{part}"]
        command += ["--generation-deterministic", "--max-examples", "4", "--phases", "examples,coverage,fuzzing"]
        # No text may hold a NUL; saying so for each would cost every reader of a schema.
        command += ["--generation-allow-x00", "false"]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=400)

    assert told.returncode == 0, "\n".join(line[:300] for line in told.stdout.splitlines())
