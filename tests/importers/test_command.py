"""`keepsake import` as it is typed, in processes of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keepsake.importers import catalog
from keepsake.importers.record import Step
from keepsake.ops.importing import MOST
from keepsake.surfaces.cli import importing
from keepsake.surfaces.cli.reach import Here
from tests.importers import peers
from tests.importers.sessions import claude_lines, written
from tests.importers.taking import Taking
from tests.surfaces.helpers import Ran, serving, typed

VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CLAUDE_MEM_DATA_DIR", "CODEX_HOME", "MEMORY_FILE_PATH"),
    *("TOTALRECALL_DATA_DIR", "KIRO_MEMORY_DATA_DIR", "CONTEXTKIT_DATA_DIR"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with files of three tools."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    for name in (".claude-mem", ".contextkit", "work"):
        (folder / name).mkdir(parents=True)
    peers.claude_mem(folder / ".claude-mem")
    peers.kiro(folder / ".contextkit")
    written(folder / ".claude" / "projects" / "-work" / "a.jsonl", claude_lines(str(folder / "work")))
    return folder


def counted(ran: Ran) -> dict[str, tuple[int, int]]:
    return {each["source"]: (each["stored"], each["known"]) for each in ran.json["sources"]}


def test_all_tells_what_is_there_and_takes_it_only_when_told_so(home: Path, tmp_path: Path) -> None:
    looked = typed(tmp_path / "data", "import", "all", "--json")
    shown = typed(tmp_path / "data", "import", "all")
    done = typed(tmp_path / "data", "import", "all", "--yes", "--json")
    again = typed(tmp_path / "data", "import", "all", "--yes", "--json")

    assert looked.json["dry_run"] is True
    assert counted(looked) == {"claude-code": (6, 0), "kiro-memory": (4, 0), "claude-mem": (4, 0)}
    assert "`keepsake import all --yes` takes it over" in shown.out
    assert "bank my-api: 4" in shown.out
    assert counted(done) == counted(looked)
    assert counted(again) == {"claude-code": (0, 6), "kiro-memory": (0, 4), "claude-mem": (0, 4)}
    assert [ran.err for ran in (looked, shown, done, again)] == [""] * 4, "no bar where no terminal is"


def test_a_tool_is_taken_over_into_a_bank_and_told_in_words(home: Path, tmp_path: Path) -> None:
    path = str(home / ".claude-mem" / "claude-mem.db")

    dry = typed(tmp_path / "data", "import", "claude-mem", path, "--dry-run")
    ran = typed(tmp_path / "data", "import", "claude-mem", path, "--bank", "archive")
    verified = typed(tmp_path / "data", "verify", "--json")

    assert "new 4, known 0, forgotten 0 of 4 read" in dry.out
    assert ran.out.splitlines() == [
        f"claude-mem: {path}",
        "  stored 4, known 0, forgotten 0 of 4 read",
        "  bank archive: 4",
    ]
    assert verified.json["ok"] is True


def test_a_running_server_is_given_what_this_machine_has(home: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        first = typed(tmp_path / "elsewhere", "import", "all", "--yes", "--json", url=server.url)
        again = typed(tmp_path / "elsewhere", "import", "all", "--yes", "--json", url=server.url)

    assert counted(first) == {"claude-code": (6, 0), "kiro-memory": (4, 0), "claude-mem": (4, 0)}
    assert counted(again) == {"claude-code": (0, 6), "kiro-memory": (0, 4), "claude-mem": (0, 4)}
    assert not (tmp_path / "elsewhere" / "keepsake.db").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("import",), "Missing argument"),
        (("import", "mem0"), "There is nothing called 'mem0' to import"),
        (("import", "codex"), "There is no folder"),
        (("import", "mcp-memory", "nowhere.jsonl"), "There is no file nowhere.jsonl"),
        (("import", "mcp-memory"), "Nothing tells where the JSONL file of MCP's reference memory server is"),
        (("import", "all", "somewhere"), "name one tool to give a path"),
        (("import", "claude-mem", "--bank", "a/b"), "--bank: `bank`"),
    ],
)
def test_wrong_usage_is_one_sentence(home: Path, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    ran = typed(tmp_path / "data", *words)

    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.anyio
async def test_stopped_in_the_middle_it_goes_on_where_it_was(taking: Taking, tmp_path: Path) -> None:
    path = peers.claude_mem(tmp_path)
    for n in range(300):
        peers.add(
            path,
            "observations",
            memory_session_id="m-1",
            project="shop",
            type="change",
            narrative=f"Change {n} was made.",
        )
    source = catalog.SOURCES["claude-mem"]

    def stopped(where: Path) -> Iterator[Step]:
        for n, step in enumerate(source.read(where)):
            if n == 250:
                raise KeyboardInterrupt
            yield step

    with pytest.raises(KeyboardInterrupt):
        await importing.taken(Here(taking.app, None), replace(source, read=stopped), path, is_dry=False)
    assert len(await taking.held("shop")) == MOST

    report = await taking.take("claude-mem", path)

    assert (report.stored, report.known) == (104, 200)
    assert len({memory.text for memory in await taking.held("shop")}) == len(await taking.held("shop")) == 304
