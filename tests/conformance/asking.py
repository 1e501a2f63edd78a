"""Fixtures of the 2026 era that answer with a question: the client asks again with what it learned."""

from typing import Any

import mcp_types as types

from tests.conformance.fixtures import NOTHING, Call, Schema, result, text


def elicit(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    """A question to the user with one field."""
    wanted = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=wanted))


def sample(prompt: str, max_tokens: int) -> types.CreateMessageRequest:
    """A question to the model."""
    asked = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[asked], max_tokens=max_tokens))


def roots() -> types.ListRootsRequest:
    """A question for the client's roots."""
    return types.ListRootsRequest(params=types.RequestParams())


def accepted(params: Any, key: str, name: str) -> object | None:
    """What the user filled in, if that was done."""
    told = (params.input_responses or {}).get(key)
    return (told.content or {}).get(name) if isinstance(told, types.ElicitResult) else None


def asks(requests: dict[str, types.InputRequest], state: str | None = None) -> types.InputRequiredResult:
    """More is needed."""
    return types.InputRequiredResult(input_requests=requests, request_state=state)


async def elicitation(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks for a name."""
    name = accepted(params, "user_name", "name")
    if not isinstance(name, str):
        return asks({"user_name": elicit("What is your name?", "name")})
    return result(text(f"Hello, {name}!"))


async def sampling(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks the model."""
    told = (params.input_responses or {}).get("capital_question")
    if not isinstance(told, types.CreateMessageResult):
        return asks({"capital_question": sample("What is the capital of France?", 100)})
    return result(text(f"The model said: {getattr(told.content, 'text', '')}"))


async def list_roots(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks for the client's roots."""
    told = (params.input_responses or {}).get("client_roots")
    if not isinstance(told, types.ListRootsResult):
        return asks({"client_roots": roots()})
    return result(text("Roots: " + ", ".join(str(root.uri) for root in told.roots)))


async def request_state(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks, and wants its own state back."""
    if params.request_state != "asked" or accepted(params, "confirm", "ok") is None:
        return asks({"confirm": elicit("Please confirm", "ok", "boolean")}, "asked")
    return result(text("state-ok"))


async def multiple_inputs(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks user, model and client at once."""
    wanted: dict[str, types.InputRequest] = {
        "user_name": elicit("What is your name?", "name"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": roots(),
    }
    if not wanted.keys() <= (params.input_responses or {}).keys():
        return asks(wanted, "all")
    return result(text("All three are there."))


async def multi_round(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks twice."""
    if params.request_state == "second" and (color := accepted(params, "step2", "color")) is not None:
        return result(text(f"Both steps are done: {color}."))
    if params.request_state == "first" and accepted(params, "step1", "name") is not None:
        return asks({"step2": elicit("Step 2: What is your favorite color?", "color")}, "second")
    return asks({"step1": elicit("Step 1: What is your name?", "name")}, "first")


async def capabilities(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Asks only what the client can answer."""
    if params.input_responses:
        return result(text("Answered."))
    declared = ctx.session.client_capabilities or types.ClientCapabilities()
    wanted: dict[str, types.InputRequest] = {}
    if declared.sampling is not None:
        wanted["greeting"] = sample("Generate a greeting", 50)
    if declared.elicitation is not None:
        wanted["user_name"] = elicit("What is your name?", "name")
    return asks(wanted, "asked")


ASKING: dict[str, tuple[Schema, Call]] = {
    "test_input_required_result_elicitation": (NOTHING, elicitation),
    "test_input_required_result_sampling": (NOTHING, sampling),
    "test_input_required_result_list_roots": (NOTHING, list_roots),
    "test_input_required_result_request_state": (NOTHING, request_state),
    "test_input_required_result_tampered_state": (NOTHING, request_state),
    "test_input_required_result_multiple_inputs": (NOTHING, multiple_inputs),
    "test_input_required_result_multi_round": (NOTHING, multi_round),
    "test_input_required_result_capabilities": (NOTHING, capabilities),
}
