"""A real embedding server behind the settings: the plumbing, not the quality."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest

from keepsake import context, dispatch, settings, worker
from keepsake.context import App
from keepsake.core.principal import local_owner
from keepsake.ops import embedding
from keepsake.store import embeddings, usage
from keepsake.tools import catalog
from keepsake.tools.hindsight_memories import Recalled
from tests.stories import smollm
from tests.stories.smollm import MODEL

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with smollm.serving(1024, embeds=True) as address:
        yield address


@pytest.fixture
async def app(server: str, tmp_path: Path) -> AsyncIterator[App]:
    environment = {
        "KEEPSAKE_EMBEDDING_BASE_URL": server,
        "KEEPSAKE_EMBEDDING_MODEL": MODEL,
        "KEEPSAKE_EMBEDDING_TIMEOUT": "60",
    }
    async with context.open(settings.load(environment, data_dir=tmp_path)) as app:
        yield app


async def test_it_embeds_short_texts_and_those_that_are_too_long_for_it(app: App) -> None:
    asked = embedding.endpoint(app)
    assert asked is not None

    made = await asked.embed(["Where does Marta live?", "Marta lives in Oslo.", "printer paper toner " * 200])

    near, far = made.rows[0] @ made.rows[1], made.rows[0] @ made.rows[2]
    assert made.rows.shape == (3, 576) and np.allclose(np.linalg.norm(made.rows, axis=1), 1, atol=1e-5)
    assert near > far
    assert made.tokens > 10


async def test_what_is_told_is_embedded_found_and_accounted_for(app: App) -> None:
    ctx, door = app.ctx(local_owner()), dispatch.Door(catalog.DIALECTS["hindsight"])
    await dispatch.call_tool(ctx, door, "retain", {"content": "The billing service runs in Oslo."})
    while await worker.step(app):
        pass

    found = await dispatch.call_tool(ctx, door, "recall", {"query": "Where does the billing service run?"})
    await app.later.done()

    rows = await app.store.read(1, lambda tx: usage.recorded(tx, 1, 0))
    models = {model.name: model.state for model in await app.store.engine.look(embeddings.models)}
    assert isinstance(found, Recalled)
    assert [hit.text for hit in found.results] == ["The billing service runs in Oslo."]
    assert models == {"wordllama-256": "static", f"{MODEL}@576": "current"}
    assert [(row.operation, row.model) for row in rows] == [("job.embed", MODEL), ("memory.recall", MODEL)]
