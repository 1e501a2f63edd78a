"""Every tool, operation, setting, error, scope and command is documented, and the papers tell the truth."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from keepsake.core.operation import SCOPES
from keepsake.ops.everything import REGISTRY
from keepsake.settings import SETTINGS
from keepsake.surfaces import docs
from keepsake.tools import catalog

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
OPERATIONS = [operation for operation in REGISTRY.values() if operation.run.__module__.startswith("keepsake.")]
PAPERS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def test_the_reference_is_what_the_declarations_make(tmp_path: Path) -> None:
    # In a process of its own: other tests declare operations of theirs.
    subprocess.run([sys.executable, "-m", "keepsake.surfaces.docs", str(tmp_path)], check=True, cwd=ROOT)

    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    written = {path.name: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md")}

    assert written == made, "run `make docs`"


def test_every_tool_has_its_section() -> None:
    missing = [
        f"{name}/{tool}"
        for name, dialect in catalog.DIALECTS.items()
        for tool in dialect.tools
        if f"\n## {tool}\n" not in page(f"tools-{name}.md")
    ]

    assert missing == []


def test_every_argument_of_every_tool_says_what_it_means() -> None:
    silent = [
        f"{tool.name}.{argument}"
        for dialect in (*catalog.DIALECTS.values(), *catalog.BOUND.values())
        for tool in dialect.tools.values()
        for model in (tool.arguments, tool.results)
        for argument, field in model.model_fields.items()
        if not field.description
    ]

    assert silent == []


def test_every_operation_has_its_section() -> None:
    assert [each.id for each in OPERATIONS if f"\n## {each.id}\n" not in page("operations.md")] == []


def test_every_operation_and_argument_says_what_it_means() -> None:
    silent = [operation.id for operation in OPERATIONS if not operation.docs.endswith(".")]
    silent += [
        f"{operation.id}.{argument}"
        for operation in OPERATIONS
        for model in (operation.given, operation.result)
        for argument, field in model.model_fields.items()
        if not field.description
    ]

    assert silent == []


def test_every_setting_and_alias_has_its_row() -> None:
    names = [name for setting in SETTINGS for name in (setting.name, setting.variable, *setting.aliases)]

    assert [name for name in names if f"`{name}`" not in page("settings.md")] == []


def test_every_error_code_in_the_code_has_its_row() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "keepsake").rglob("*.py"))
    codes = set(re.findall(r'(?:\bcode = |"code": )"([a-z_]+)"', source)) - {"error"}

    assert [code for code in sorted(codes) if f"`{code}`" not in page("errors.md")] == []


def test_every_scope_has_its_row() -> None:
    assert [scope for scope in SCOPES if f"`{scope}`" not in page("scopes.md")] == []


def test_every_command_has_its_section() -> None:
    assert [name for name in docs.command_names() if f"\n## keepsake {name}\n" not in page("commands.md")] == []


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: str(paper.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(paper: Path) -> None:
    text = FENCE.sub("", paper.read_text(encoding="utf-8"))

    broken = [link for link in LINK.findall(text) if not leads(paper, link)]

    assert broken == []


def leads(paper: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = paper if not path else paper.parent / path
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)


def anchors(paper: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", paper.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: str(paper.relative_to(ROOT)))
def test_papers_name_only_commands_and_variables_that_exist(paper: Path) -> None:
    text = paper.read_text(encoding="utf-8")
    commands = {name.split()[0] for name in docs.command_names()}
    variables = {name for setting in SETTINGS for name in (setting.variable, *setting.aliases)}

    unknown = [
        name for name in re.findall(r"(?:^|`|bin/)keepsake ([a-z]+)", text, re.MULTILINE) if name not in commands
    ]
    unknown += [name for name in re.findall(r"\bKEEPSAKE_[A-Z_]*[A-Z]", text) if name not in variables]

    assert unknown == []


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_the_readme_counts_the_tools_rightly() -> None:
    told = (ROOT / "README.md").read_text("utf-8")

    assert f"the {len(catalog.DIALECTS['hindsight'].tools)} tools of hindsight" in told
    assert f"the {len(catalog.DIALECTS['kiro'].tools)} of kiro" in told
