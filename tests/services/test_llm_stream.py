"""The language model's answer while it is made: pieces over real HTTP, what they cost, and servers that know none."""

import threading
from collections.abc import Iterator

import pytest

from keepsake.services.llm import Ask, Llm, LlmFailed, Message
from tests.llm_server import Breaks, Fails, Hangs, Json, Line, Raw, Says, Script, Sends, Streams, Waits, serving

pytestmark = pytest.mark.anyio
MESSAGES = (Message("system", "Be brief."), Message("user", "Where is Marta?"))
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


class Listener:
    """Whoever is told the answer while it is made."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def heard(self, said: str) -> None:
        self.told.append(said)

    def ask(self, schema: Json | None = None) -> Ask:
        return Ask(MESSAGES, 50, schema, self.heard)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def script() -> Iterator[Script]:
    with serving() as script:
        yield script


def model(script: Script, timeout: float = 20.0) -> Llm:
    return Llm(script.url, "", "scripted-1", timeout, pause_s=0.01)


def streamed(script: Script) -> list[bool]:
    """Which requests asked for pieces."""
    return [request.get("stream", False) for request in script.asked]


async def test_an_answer_is_told_while_it_is_made_and_counted_by_the_server(script: Script, listener: Listener) -> None:
    script.will("In Oslo, as \u2028 ever.")

    reply = await model(script).chat(listener.ask())

    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.is_cut) == ("In Oslo, as \u2028 ever.", 6, 4, False)
    assert listener.told == ["", "In Oslo", "In Oslo, as \u2028 ", "In Oslo, as \u2028 ever."]
    assert script.asked[0]["stream_options"] == {"include_usage": True}


async def test_the_beginning_is_heard_before_the_end_is_said(script: Script) -> None:
    gate = threading.Event()
    script.will(Streams(("In ", Waits(gate), "Oslo.")))
    told: list[str] = []

    async def heard(said: str) -> None:
        told.append(said)
        if said:
            # Without this the server would never go on.
            gate.set()

    reply = await model(script).chat(Ask(MESSAGES, 50, heard=heard))

    assert (reply.text, told) == ("In Oslo.", ["", "In ", "In Oslo."])


async def test_what_the_server_does_not_count_is_counted_by_length(script: Script, listener: Listener) -> None:
    script.will(Says("In Oslo, I think.", counts=False), Says("In Os", finish="length"))

    reply = await model(script).chat(listener.ask())
    cut = await model(script).chat(listener.ask())

    assert (reply.tokens_in, reply.tokens_out, reply.is_cut) == (3 + 4, 5, False)
    assert cut.is_cut


@pytest.mark.parametrize("status", [400, 404, 422, 501])
async def test_a_server_that_refuses_pieces_is_asked_for_the_whole_and_not_bothered_again(
    script: Script, listener: Listener, status: int
) -> None:
    script.will(Fails(status), '{"place": "Oslo"}', '{"place": "Rome"}')
    asked = model(script)

    replies = [await asked.chat(listener.ask(SCHEMA)) for _ in range(2)]

    assert [reply.text for reply in replies] == ['{"place": "Oslo"}', '{"place": "Rome"}']
    assert streamed(script) == [True, False, False]
    assert all("response_format" in request for request in script.asked)
    assert "stream_options" not in script.asked[1]
    assert listener.told == ["", ""]


async def test_a_server_that_answers_whole_all_the_same_is_understood_and_remembered(
    script: Script, listener: Listener
) -> None:
    script.will(Says("In Oslo.", streams=False), "In Rome.")
    asked = model(script)

    replies = [await asked.chat(listener.ask()) for _ in range(2)]

    assert [(reply.text, reply.tokens_in) for reply in replies] == [("In Oslo.", 6), ("In Rome.", 6)]
    assert streamed(script) == [True, False]


async def test_a_schema_that_is_refused_does_not_end_pieces(script: Script, listener: Listener) -> None:
    script.will(Fails(400), Fails(400), '{"place": "Oslo"}', '{"place": "Rome"}')
    asked = model(script)

    await asked.chat(listener.ask(SCHEMA))
    await asked.chat(listener.ask(SCHEMA))

    assert streamed(script) == [True, False, True, True]
    assert ["response_format" in request for request in script.asked] == [True, True, False, False]


async def test_a_refusal_of_both_ends_neither(script: Script, listener: Listener) -> None:
    script.will(Fails(400), Fails(400), "In Rome.")
    asked = model(script)

    with pytest.raises(LlmFailed, match="refused with status 400") as failed:
        await asked.chat(listener.ask())
    await asked.chat(listener.ask())

    assert streamed(script) == [True, False, True]
    assert not failed.value.may_have_spent


@pytest.mark.parametrize(
    "end", [Breaks(), Breaks(is_polite=True), Sends('data: {"error": {"message": "Where is Marta?"}}\n\n')]
)
async def test_an_answer_that_breaks_off_is_begun_anew(script: Script, listener: Listener, end: Breaks | Sends) -> None:
    script.will(Streams(("In ", end)), Fails(503), "In Oslo.")

    reply = await model(script).chat(listener.ask())

    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("In Oslo.", 6, 2)
    assert listener.told == ["", "In ", "", "", "In Oslo", "In Oslo."]


@pytest.mark.parametrize("last", [Streams(("In ", Breaks())), Fails(500), Fails(403)])
async def test_what_always_breaks_off_is_given_up_and_counts_as_spent(
    script: Script, listener: Listener, last: Line
) -> None:
    script.will(Streams(("In ", Breaks())), Streams(("In ", Breaks())), last)

    with pytest.raises(LlmFailed, match="broke off its answer, 3 times|with status") as failed:
        await model(script).chat(listener.ask())

    assert (failed.value.may_have_spent, len(script.asked)) == (True, 3)


@pytest.mark.parametrize("line", [Hangs(), Streams(("In ", Waits(threading.Event()), "Oslo."))])
async def test_silence_in_the_middle_is_as_long_as_silence_before(
    script: Script, listener: Listener, line: Line
) -> None:
    script.will(line)

    with pytest.raises(LlmFailed, match="did not answer within 0.5 s") as failed:
        await model(script, timeout=0.5).chat(listener.ask())

    assert (failed.value.may_have_spent, len(script.asked)) == (True, 1)


@pytest.mark.parametrize(
    "line",
    [Raw("{}"), Raw("{not json"), Streams((Sends("data: {not json\n\n"),)), Streams((Sends("data: [1]\n\n"),))],
)
async def test_what_is_no_answer_is_told_as_such(script: Script, listener: Listener, line: Line) -> None:
    script.will(line)

    with pytest.raises(LlmFailed, match="something that is no answer"):
        await model(script).chat(listener.ask())


async def test_comments_and_other_fields_between_pieces_are_passed_over(script: Script, listener: Listener) -> None:
    odd = ": alive\r\n\r\nevent: ping\r\nid: 7\r\n\r\n" + 'data: {"choices": [{"index": 0, "delta": null}]}\r\n\r\n'
    script.will(Streams(("In ", Sends(odd), "Oslo.")))

    assert (await model(script).chat(listener.ask())).text == "In Oslo."
