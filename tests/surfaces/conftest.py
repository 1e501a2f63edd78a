"""One server for all tests of a module that need no other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces import serving
from tests.surfaces.serving import Client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the module's server keeps its data."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The module's server, open to the local owner."""
    with serving.serving(folder) as address:
        yield address


@pytest.fixture
def product(address: str) -> Client:
    """The hindsight endpoint."""
    return Client(f"{address}/mcp")


@pytest.fixture
def probe(address: str) -> Client:
    """The endpoint of the probes."""
    return Client(f"{address}/probe")
