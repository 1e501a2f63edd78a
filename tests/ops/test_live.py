"""The files of a project as they are at the synced revision: folders, lines, and what is not shown; both stores."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keepsake import settings
from keepsake.context import App, Ctx
from keepsake.core.principal import local_owner
from keepsake.ops import live
from keepsake.store import banks, repos
from keepsake.store.engine import Tx
from tests.github_server import Forge, serving
from tests.llm_server import Fails
from tests.ops.asking import HISTORY, ORG, RETRY, Step, committed, repository, synced

pytestmark = pytest.mark.anyio


async def opened(app: App, bank: str = "api") -> tuple[Ctx, live.Project]:
    async def body(tx: Tx) -> live.Project:
        found = await banks.named(tx, ORG, bank)
        assert found is not None
        return live.Project(found, await repos.get(tx, ORG, found.id))

    return app.ctx(local_owner()), await app.store.read(ORG, body)


async def test_a_folder_tells_its_folders_and_files(app: App, tmp_path: Path) -> None:
    await synced(app, "api", repository(tmp_path / "api"))
    ctx, project = await opened(app)

    top, under = await live.tree(ctx, project), await live.tree(ctx, project, "/src/")

    assert [(one.name, one.kind, one.size) for one in top.entries][:2] == [("docs", "folder", 1), ("src", "folder", 2)]
    assert [one.name for one in under.entries] == ["budget.py", "retry.py"]
    with pytest.raises(live.Unreadable):
        await live.tree(ctx, project, "sr")


async def test_lines_are_those_of_the_synced_revision(app: App, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    head = await synced(app, "api", folder)
    committed(folder, Step("Eve", "2025-01-01", "Replace", {"src/retry.py": "nothing\n"}))
    ctx, project = await opened(app)

    read = await live.read(ctx, project, "src/retry.py", 4, 5)
    rest = await live.read(ctx, project, "src/retry.py", 6, 999)
    beyond = await live.read(ctx, project, "src/retry.py", 999, 1_000)

    lines = RETRY.splitlines()
    assert (read.text, read.revision, read.total) == ("\n".join(lines[3:5]), head, len(lines))
    assert (rest.start, rest.end) == (6, 7)
    assert (beyond.start, beyond.end) == (7, 7)


@pytest.mark.parametrize(
    "path", ["../api/src/retry.py", "/etc/passwd", "link", ".git/config", "SRC/retry.py", "src", ""]
)
async def test_only_files_of_the_tree_are_read(app: App, tmp_path: Path, path: str) -> None:
    folder = repository(tmp_path / "api", HISTORY[:3])
    (folder / "link").symlink_to("/etc/passwd")
    committed(folder, Step("Eve", "2025-01-01", "Link", {}))
    await synced(app, "api", folder)
    ctx, project = await opened(app)

    with pytest.raises(live.Unreadable):
        await live.read(ctx, project, path)


async def test_what_is_no_text_or_too_large_is_not_shown(app: App, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api", HISTORY[:1])
    (folder / "large.bin").write_text("x" * (live.LARGEST + 1))
    (folder / "image.bin").write_bytes(b"\x89PNG\0\0")
    committed(folder, Step("Eve", "2025-01-01", "Add", {}))
    await synced(app, "api", folder)
    ctx, project = await opened(app)

    with pytest.raises(live.Unreadable, match="too large"):
        await live.read(ctx, project, "large.bin")
    with pytest.raises(live.Unreadable, match="is no text"):
        await live.read(ctx, project, "image.bin")


async def test_secrets_are_cut_out_and_lines_keep_their_numbers(app: App, tmp_path: Path) -> None:
    body = "".join(f"MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Q{n}\n" for n in range(6))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n"
    text = f"first\n{key}last\n"
    folder = repository(tmp_path / "api", (Step("Eve", "2025-01-01", "Add", {"key.txt": text}),))
    await synced(app, "api", folder)
    ctx, project = await opened(app)

    whole = await live.read(ctx, project, "key.txt")
    inner = await live.read(ctx, project, "key.txt", 3, 4)

    assert whole.total == len(text.splitlines())
    assert (whole.lines[0], whole.lines[-1]) == ("first", "last")
    assert key.splitlines()[2] not in whole.text and inner.text.strip() == ""


async def test_where_there_is_no_repository_nothing_is_read(app: App, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    await synced(app, "api", folder)
    folder.rename(tmp_path / "moved")
    ctx, project = await opened(app)

    with pytest.raises(live.Unreadable, match="cannot be read from here"):
        await live.read(ctx, project, "src/retry.py")


@pytest.fixture
def forge() -> Iterator[Forge]:
    """GitHub, with one file."""
    with serving() as forge:
        forge.token = "ghp_" + "a1" * 18
        forge.files["src/far.py"] = b"first\nkey = 'AKIAIOSFODNN7EXAMPLQ'\n"
        yield forge


async def far(app: App, forge: Forge, token: str) -> tuple[Ctx, live.Project]:
    """A project that is only on GitHub."""
    environment = {"KEEPSAKE_GITHUB_URL": forge.url, "KEEPSAKE_GITHUB_TOKEN": token}
    there = replace(app, settings=settings.load(environment, data_dir=app.settings.data_dir))

    async def body(tx: Tx) -> None:
        bank = await banks.create(tx, app.store, ORG, "far")
        assert bank is not None
        address = "https://github.example/octo/keeper"
        await repos.put(tx, repos.Repo(ORG, bank.id, address, 1, 1, full_name=forge.full_name, head="a" * 40))
        await repos.put_files(tx, ORG, bank.id, [repos.File("src/far.py", "b" * 40, 40)], [])

    await app.store.write(ORG, body)
    return await opened(there, "far")


async def test_where_the_repository_is_only_on_github_it_is_asked(app: App, forge: Forge) -> None:
    ctx, project = await far(app, forge, forge.token)

    read = await live.read(ctx, project, "src/far.py")
    again = await live.read(ctx, project, "src/far.py", 1, 1)

    assert read.lines[0] == "first" and "AKIA" not in read.text
    assert (again.text, len(forge.asked)) == ("first", 1)
    assert forge.asked[0].query == {"ref": "a" * 40}


async def test_github_that_fails_or_may_not_be_asked_shows_nothing(app: App, forge: Forge) -> None:
    ctx, project = await far(app, forge, forge.token)
    forge.will(*[Fails(502)] * 4)

    with pytest.raises(live.Unreadable, match="could not be read"):
        await live.read(ctx, project, "src/far.py")
    without = replace(ctx, app=replace(ctx.app, settings=settings.load({}, data_dir=app.settings.data_dir)))
    with pytest.raises(live.Unreadable, match="cannot be read from here"):
        await live.read(without, project, "src/far.py")
