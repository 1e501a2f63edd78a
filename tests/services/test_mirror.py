"""Copies of repositories elsewhere, fetched over real https from a loopback server."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepsake.core.errors import BadInput, NotFound, Unavailable
from keepsake.services import mirror
from keepsake.services.git import Git
from tests.git_server import Forge, forge
from tests.gitting import Made

pytestmark = pytest.mark.anyio
ROOM = 100_000_000


@pytest.fixture
def made(tmp_path: Path) -> Made:
    made = Made(tmp_path / "root" / "engine")
    made.commit("One", {"README.md": "# Engine\n"})
    return made


@pytest.fixture
def served(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    with forge(tmp_path / "root", tmp_path) as served:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(served.certificate))
        yield served


async def test_a_copy_is_made_and_brought_up_to_date(made: Made, served: Forge, tmp_path: Path) -> None:
    into, url = tmp_path / "copy.git", f"{served.url}/engine/.git"

    first = await mirror.fetch(url, into, ROOM)
    again = await mirror.fetch(url, into, ROOM)
    made.git("branch", "old")
    sha = made.commit("Two", {"a": "1\n"})
    made.git("tag", "v1")
    changed = await mirror.fetch(url, into, ROOM)
    made.git("branch", "-D", "old")
    await mirror.fetch(url, into, ROOM)

    assert (first, again, changed) == (True, False, True)
    refs = await Git(into).refs()
    assert (refs.branch, refs.head) == ("main", sha)
    assert set(refs.commits) == {"refs/heads/main", "refs/tags/v1", "HEAD"}
    assert list(into.glob("hooks/*")) == []
    assert served.url not in (into / "config").read_text()


async def test_a_token_goes_to_the_host_it_is_for_and_is_written_nowhere(served: Forge, tmp_path: Path) -> None:
    served.private = True
    into, url = tmp_path / "copy.git", f"{served.url}/engine/.git"

    with pytest.raises(NotFound, match="private and needs a token"):
        await mirror.fetch(url, into, ROOM)
    await mirror.fetch(url, into, ROOM, mirror.authorised(url, "sesame"))

    told = {base64.b64decode(each.removeprefix("Basic ")).decode() for each in served.authorised if each}
    assert told == {"x-access-token:sesame"}
    held = b"".join(path.read_bytes() for path in into.rglob("*") if path.is_file() and "objects" not in path.parts)
    assert b"sesame" not in held and base64.b64encode(b"x-access-token:sesame") not in held


async def test_a_redirect_is_not_followed(served: Forge, tmp_path: Path) -> None:
    served.redirect = "https://elsewhere.invalid"

    with pytest.raises(BadInput, match="redirect"):
        await mirror.fetch(f"{served.url}/engine/.git", tmp_path / "copy.git", ROOM)


async def test_a_repository_that_is_none_and_a_host_that_is_silent_are_told_apart(
    served: Forge, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="does not exist, or is private"):
        await mirror.fetch(f"{served.url}/nothing", tmp_path / "copy.git", ROOM)
    with pytest.raises(Unavailable, match="cannot be read"):
        await mirror.fetch("https://127.0.0.1:9/engine", tmp_path / "copy.git", ROOM)


async def test_a_copy_that_grows_too_large_is_stopped(
    made: Made, served: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "LOOK_S", 0.01)

    with pytest.raises(BadInput, match="takes more than"):
        await mirror.fetch(f"{served.url}/engine/.git", tmp_path / "copy.git", 100)


@pytest.mark.parametrize(
    "url", ["file:///etc", "ssh://127.0.0.1/x", "git://127.0.0.1/x", "http://127.0.0.1:9/x", "ext::true"]
)
async def test_nothing_but_https_is_spoken(url: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="not allowed|cannot be read"):
        await mirror.fetch(url, tmp_path / "copy.git", ROOM)
