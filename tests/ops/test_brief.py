"""The brief: current, small, and honest about what stands in the way; on both stores."""

from dataclasses import replace
from typing import Any

import pytest

from keepsake import dispatch
from keepsake.context import App
from keepsake.core import shares
from keepsake.core.principal import local_owner
from keepsake.core.words import cost
from keepsake.ops import brief
from keepsake.store.engine import Tx
from tests.ops.working_space import Do, decided, doing, reached

pytestmark = pytest.mark.anyio


@pytest.fixture
def do(app: App) -> Do:
    return doing(app)


def texts(told: dict[str, Any], part: str) -> list[str]:
    return [one["text"] for one in told[part]]


async def test_the_brief_tells_what_holds_now(do: Do, sharpened: Any) -> None:
    old = await decided(do, "Deploy at the end of a week")
    new = await decided(do, "Deploy at the start of a week", rationale="Someone is there.", supersedes=old)
    await decided(do, "Offer a public API", status="proposed")
    await decided(do, "Use carrier pigeons", status="reversed")
    await do("memory.forget", id=await decided(do, "Sell the office"))
    first = await reached(do, "Shipped 2.0", related_decisions=[new], happened_at="2026-05-01T10:00:00Z")
    await do("memory.retain", content="The staging server has 16 GB of memory.")
    await sharpened()
    await do("graph.relate", origin=first, target=old, type="follows")

    told = await do("brief.get")

    assert told["decisions"] == [
        {"id": told["decisions"][0]["id"], "kind": "decision", "text": "Offer a public API", "status": "proposed"}
        | {"at": told["decisions"][0]["at"], "trust": None},
        {"id": new, "kind": "decision", "text": "Deploy at the start of a week: Someone is there.", "status": None}
        | {"at": told["decisions"][1]["at"], "trust": None},
    ]
    assert [(one["id"], one["text"], one["at"]) for one in told["milestones"]] == [(first, "Shipped 2.0", "2026-05-01")]
    assert told["connections"] == [
        {
            "origin": first,
            "origin_title": "Shipped 2.0",
            "type": "implements",
            "target": new,
            "target_title": "Deploy at the start of a week",
        }
    ]
    assert (texts(told, "memories"), told["blockers"]) == (["The staging server has 16 GB of memory."], [])


async def test_blockers_are_what_is_down_named_or_in_doubt_until_something_resolves_them(
    do: Do, app: App, sharpened: Any
) -> None:
    await decided(do, "Move the queue", status="blocked", rationale="The licence is not signed.")
    named = await decided(do, "No test account for payments", blocker=True)
    await do("memory.retain", content="The certificate is missing.", category="blocker", whole=True)
    await do("memory.retain", content="The domain is not ours yet.", tags=["blocker"], whole=True)
    for said in ("Alice prefers tea.", "Alice prefers coffee."):
        await do("memory.retain", content=said)
        await sharpened()

    async def outside_and_down(tx: Tx) -> None:
        bank = await tx.one("SELECT bank FROM banks WHERE name = 'shop'")
        assert bank is not None
        await tx.run(
            "INSERT INTO incidents (org, bank, id, check_id, name, target, reason, opened_at, flaps, acknowledged_by,"
            " earlier, updated_at) VALUES (1, :bank, 7, 1, 'checkout', 'https://shop.example', 'HTTP 502', :at, 0, '',"
            " '[]', :at)",
            bank=bank["bank"],
            at=app.now(),
        )
        await tx.run("UPDATE memories SET trust = 'outside' WHERE text LIKE 'The domain%'")

    await app.store.write(1, outside_and_down)
    told = await do("brief.get")
    reader = replace(local_owner(), scopes=frozenset({"memory:read"}))
    unwatched = await dispatch.call(app.ctx(reader, bank="shop"), "brief.get", {})
    await do("graph.relate", origin=await reached(do, "Test account made"), target=named, type="resolves")
    later = await do("brief.get")

    assert [(one["kind"], one["text"]) for one in told["blockers"]] == [
        ("incident", "checkout is down: HTTP 502"),
        ("fact", "The certificate is missing."),
        ("decision", "No test account for payments"),
        ("decision", "Move the queue: The licence is not signed."),
        ("conflict", "Alice prefers tea. / Alice prefers coffee."),
    ]
    assert (told["decisions"], [one["trust"] for one in told["memories"] if "domain" in one["text"]]) == (
        [],
        ["outside"],
    )
    assert "incident" not in {one["kind"] for one in unwatched.model_dump()["blockers"]}
    assert "No test account for payments" not in texts(later, "blockers")
    assert "No test account for payments" in texts(later, "decisions")


async def test_the_brief_keeps_to_its_tokens_and_every_part_has_its_share(do: Do, app: App) -> None:
    for n in range(12):
        await decided(do, f"Decision number {n}", rationale="For a reason that takes a few more words than most do.")
        await do("memory.retain", content=f"Fact number {n} about the shop and its many rooms.", whole=True)
    await reached(do, "Shipped 2.0")

    small = await do("brief.get", max_tokens=300)
    large = await do("brief.get", max_tokens=5_000)
    empty = await doing(app, "empty")("brief.get")

    assert cost(str(small)) < 450 and small["tokens"] <= 300 - brief.FRAME
    assert texts(small, "milestones") == ["Shipped 2.0"]
    assert texts(small, "decisions")[0].startswith("Decision number 11")
    assert small["memories"] and len(small["decisions"]) < 12
    assert (len(large["decisions"]), len(large["memories"])) == (12, 12)
    assert empty["tokens"] == 0 and not any(empty[part] for part in brief.SHARES)


async def test_the_written_brief_quotes_what_it_tells(do: Do, app: App) -> None:
    await decided(do, "Use <img src=x> and [a link](https://evil.example) [1]")

    made = await dispatch.call(app.ctx(local_owner(), bank="shop"), "brief.get", {})
    assert isinstance(made, brief.Brief)
    text = brief.written(made)

    assert text.startswith(
        "# shop\n\n## Decided\n\n- Use &lt;img src=x> and [a link]\\(https://evil.example) \\[1\\] (decision"
    )
    assert brief.written(made.model_copy(update={"decisions": []})) == "# shop\n\nNothing is known yet."


def test_room_is_shared_and_what_is_left_over_goes_on() -> None:
    costs = {"a": [10] * 10, "b": [10], "c": []}

    assert shares.shared(costs, {"a": 0.3, "b": 0.3, "c": 0.4}, 100) == {"a": 9, "b": 1, "c": 0}
    assert shares.shared(costs, {"b": 0.5, "a": 0.5, "c": 0.0}, 40) == {"b": 1, "a": 3, "c": 0}
    assert shares.shared(costs, {"a": 0.5, "b": 0.5, "c": 0.0}, 5) == {"a": 0, "b": 0, "c": 0}


async def fill(do: Do) -> str:
    """Something of every sort about payments; gives the id of the decision."""
    made = await decided(do, "Take payments by Stripe", rationale="Cards in every country.")
    await reached(do, "First payment taken", happened_at="2026-05-01T10:00:00Z")
    await do("memory.retain", content="Payments fail for cards without a postal code.", whole=True)
    await do("memory.retain", content="Refunds of payments take five days.", document="handbook", whole=True)
    await do("artifact.create", title="Payment flow", content="A payment goes from cart to receipt.")
    await do("memory.ask", question="Who takes the payments?", keep=True)
    return made


async def test_an_analysis_without_a_model_has_a_section_for_every_sort_and_cites_what_exists(do: Do) -> None:
    made = await fill(do)

    topic = await do("brief.analyze", topic="payments")
    whole = await do("brief.analyze")
    small = await do("brief.analyze", max_tokens=256)
    await do("memory.forget", id=made)
    later = await do("brief.analyze", topic="payments")

    for told in (topic, whole):
        headings = [said for said in told["text"].splitlines() if said.startswith("##")]
        assert headings == [
            *("## Decisions", "## Milestones", "## Memories", "## Documents", "## Artifacts", "## Recent chats"),
            "### Sources",
        ]
        assert [one["n"] for one in told["citations"]] == list(range(1, len(told["citations"]) + 1))
        assert (told["made_by"], told["tokens_in"]) == ("rules", 0)
        assert made in {one["key"] for one in told["citations"]}
    assert {one["kind"] for one in topic["citations"]} == {"memory", "chat"}
    assert cost(small["text"]) <= 256 and small["citations"]
    assert "Stripe" not in later["text"] and later["citations"]


async def test_a_long_artifact_does_not_keep_the_others_out_of_an_analysis(do: Do) -> None:
    await do("artifact.create", title="Flow", content="A payment goes from cart to receipt.")
    await do("artifact.update", id="flow", content="A payment goes from cart to invoice.")
    guide = "\n\n".join(f"# Part {n}\n\nRoom {n}. {'It is large and cold. ' * 40}" for n in range(12))
    await do("artifact.create", title="Guide", content=guide)

    told = await do("brief.analyze")

    assert [one["title"] for one in told["citations"]] == ["Guide › Part 0", "Flow"]
    assert "invoice" in told["text"] and "Room 0." in told["text"]


async def test_an_analysis_of_nothing_says_so(do: Do, app: App) -> None:
    empty = await doing(app, "empty")("brief.analyze", topic="payments")
    await do("memory.retain", content="The shop sells tea.")
    unrelated = await do("brief.analyze", topic="quantum chromodynamics lattice")

    assert (empty["text"], empty["citations"]) == ("Nothing relevant is known.", [])
    assert (unrelated["text"], unrelated["citations"]) == ("Nothing relevant is known.", [])


async def test_a_model_writes_the_analysis_and_what_it_invents_is_not_told(do: Do, thinking: App, script: Any) -> None:
    await fill(do)
    think = doing(thinking)
    wrong = "## Decisions\n\nStripe takes payments [77]."

    script.will("## Decisions\n\nStripe takes the payments [1]. ![x](https://evil.example/p.png)")
    made = await think("brief.analyze", topic="payments")
    script.will(wrong, wrong)
    fallen_back = await think("brief.analyze", topic="payments")

    assert made["text"].startswith("## Decisions\n\nStripe takes the payments [1].")
    assert "evil.example" not in made["text"] and made["made_by"] == "scripted-1"
    assert ([one["n"] for one in made["citations"]], made["tokens_in"] > 0) == ([1], True)
    assert "<data-" in script.prompt(0) and '"trust": "agent"' in script.prompt(0)
    assert fallen_back["made_by"] == "rules" and "[77]" not in fallen_back["text"]
    assert fallen_back["note"] == "Made by rules: the model's answer could not be used."
