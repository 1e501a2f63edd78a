"""A real language model behind a real OpenAI-compatible server: the plumbing, not the quality."""

from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from keepsake import context, dispatch, settings
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.ops import budget
from keepsake.services import llm
from keepsake.services.llm import Ask, Message
from keepsake.store import usage
from keepsake.tools import catalog
from keepsake.tools.hindsight_memories import Retained
from keepsake.tools.hindsight_reflect import Reflected
from tests.stories import smollm
from tests.stories.smollm import MODEL

pytestmark = pytest.mark.anyio
FACT = "The billing service runs in Oslo."


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with smollm.serving(4096) as address:
        yield address


@pytest.fixture
async def app(server: str, tmp_path: Path) -> AsyncIterator[App]:
    environment = {
        "KEEPSAKE_LLM_BASE_URL": server,
        "KEEPSAKE_LLM_MODEL": MODEL,
        # Where two cores are busy it reads ten tokens a second; what takes longer ends in the fallback.
        "KEEPSAKE_LLM_TIMEOUT": "20",
    }
    async with context.open(settings.load(environment, data_dir=tmp_path)) as app:
        yield app


async def test_it_is_heard_while_it_answers_and_counts_its_tokens(app: App) -> None:
    model = llm.configured(app.settings)
    assert model is not None
    told: list[str] = []

    async def heard(said: str) -> None:
        told.append(said)

    reply = await model.chat(Ask((Message("user", "Say hello."),), 8, heard=heard))

    assert reply.text.strip()
    assert len(told) > 2 and told[0] == "" and told[-1] == reply.text
    assert all(after.startswith(before) for before, after in pairwise(told))
    # Its template is longer than the question, so the server has counted.
    assert 10 < reply.tokens_in < 100 and 0 < reply.tokens_out <= 8


async def test_it_keeps_to_a_schema(app: App) -> None:
    model = llm.configured(app.settings)
    assert model is not None
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}

    reply = await model.chat(Ask((Message("user", "Is water wet?"),), 16, schema))

    assert reply.is_cut or list(llm.parsed(reply.text)) == ["ok"]  # type: ignore[call-overload]  # an object, by its schema


async def test_reflect_says_which_model_made_the_answer_or_falls_back_and_accounts_for_it(app: App) -> None:
    ctx, door = app.ctx(local_owner()), dispatch.Door(catalog.DIALECTS["hindsight"])
    stored = await dispatch.call_tool(ctx, door, "retain", {"content": FACT})

    made = await dispatch.call_tool(ctx, door, "reflect", {"query": "Where does billing run?", "max_tokens": 64})

    rows = await app.store.read(1, lambda tx: usage.recorded(tx, 1, 0))
    spent = await app.store.read(1, lambda tx: usage.standing(tx, 1, ctx.principal.name, budget.week(app.now())))
    assert isinstance(made, Reflected) and isinstance(stored, Retained)
    assert made.made_by == MODEL or (made.made_by, made.text) == ("rules", f"- {FACT} [1]")
    assert {source.memory_id for source in made.sources} == {stored.memory_id}
    assert {row.model for row in rows} == {MODEL}
    assert spent == usage.Standing(reserved=0, spent=sum(row.tokens_in + row.tokens_out for row in rows))
    assert spent.spent > 100
