"""The dependency rule, the size limits, and what starting a stdio server may load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: A layer imports only from itself and from its left.
LAYERS = (
    *("core", "settings", "store", "services", "hooks", "auth", "context"),
    *("ops", "tools", "dispatch", "worker", "importers", "surfaces"),
)
#: Layers that may reach even less than what is on their left.
ONLY = {
    "core": {"core"},
    "tools": {"core", "ops", "tools"},
    "importers": {"core", "services", "hooks", "importers"},
    "worker": {"core", "settings", "hooks", "auth", "context", "ops", "dispatch", "worker"},
    "surfaces": {"core", "settings", "hooks", "auth", "context", "ops", "tools", "dispatch", "worker", "surfaces"}
    | {"importers"},
}
SDK = {"mcp", "mcp_types"}
#: Where an error of any kind may be caught. The writer thread hands it to the caller that waits for the commit.
CATCHES_ALL = {"dispatch.py", "worker.py", "surfaces/main.py", "store/sqlite.py"}
#: Modules that are imported by name at run time.
LOADS_BY_NAME = {"core/lazy.py", "services/embed.py"}
#: Costly, and needless for answering `tools/list`.
HEAVY = (
    *("asyncpg", "numpy", "openai", "prometheus_client", "pydantic_settings"),
    *("structlog", "tokenizers", "typer", "uvicorn"),
    *("protego", "pypdf", "selectolax", "tinycss2", "webencodings"),
)


@dataclass(frozen=True)
class Module:
    """A parsed file of the package."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def layer(self) -> str:
        return layer(self.name)

    @property
    def place(self) -> str:
        return self.path.relative_to(ROOT / "keepsake").as_posix()


def layer(name: str) -> str:
    part = name.split(".")[1] if "." in name else ""
    # `python -m keepsake` is one more way in.
    return "surfaces" if part == "__main__" else part


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted((ROOT / "keepsake").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return found


def imported(node: ast.AST) -> Iterator[str]:
    """The full names that a statement or a `lazy("…")` asks for."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide what is reached"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy":
        yield from (str(given.value) for given in node.args if isinstance(given, ast.Constant))


def reached(module: Module) -> Iterator[tuple[int, str]]:
    """Every import, those for the type checker included, with its line; ours as module names."""
    for node in ast.walk(module.tree):
        for name in imported(node):
            if name.split(".")[0] == "keepsake" and name not in modules():
                yield node.lineno, name.rpartition(".")[0]  # type: ignore[attr-defined]  # a statement or a call
            else:
                yield node.lineno, name  # type: ignore[attr-defined]  # the same


def test_a_layer_imports_only_from_its_left() -> None:
    wrong = []
    for module in modules().values():
        allowed = ONLY.get(module.layer) or set(LAYERS[: LAYERS.index(module.layer) + 1] if module.layer else ())
        for line, name in reached(module):
            if name.startswith("keepsake.") and layer(name) not in allowed:
                wrong.append(f"{module.place}:{line} imports {name}")

    assert wrong == []


def test_every_module_belongs_to_a_layer() -> None:
    assert {module.layer for module in modules().values()} <= {"", *LAYERS}


def test_only_surfaces_know_the_sdk() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules().values()
        for line, name in reached(module)
        if name.split(".")[0] in SDK and module.layer != "surfaces" and module.place != "auth/oauth.py"
    ]

    assert wrong == []


def test_core_knows_no_third_party_but_pydantic() -> None:
    known = sys.stdlib_module_names | {"keepsake", "pydantic"}
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules().values()
        for line, name in reached(module)
        if module.layer == "core" and name.split(".")[0] not in known
    ]

    assert wrong == []


def test_the_product_does_not_know_its_tests() -> None:
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules().values()
        for line, name in reached(module)
        if name.split(".")[0] in {"tests", "bench", "pytest"}
    ]

    assert wrong == []


def test_imports_stand_at_the_top() -> None:
    wrong = []
    for module in modules().values():
        for function in functions(module):
            for node in ast.walk(function):
                inside = isinstance(node, ast.Import | ast.ImportFrom) and module.layer != "services"
                by_name = isinstance(node, ast.Attribute) and node.attr in {"import_module", "__import__"}
                if inside or (by_name and module.place not in LOADS_BY_NAME):
                    wrong.append(f"{module.place}:{node.lineno}")

    assert wrong == []


def test_no_cycle_between_modules() -> None:
    edges = {
        module.name: sorted({name for _, name in reached(module) if name in modules() and name != module.name})
        for module in modules().values()
    }
    done: set[str] = set()
    cycles: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycles.append(" → ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for target in edges[name]:
                visit(target, (*path, name))
            done.add(name)

    for name in edges:
        visit(name, ())

    assert cycles == []


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_a_function_fits_a_screen() -> None:
    long = [
        f"{module.place}:{function.lineno} {function.name} has {lines} lines"
        for module in modules().values()
        for function in functions(module)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > 60
    ]

    assert long == []


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_a_file_stays_under_four_hundred_lines() -> None:
    files = [path for folder in ("keepsake", "tests", "bench") for path in (ROOT / folder).rglob("*.py")]

    long = {str(path.relative_to(ROOT)): lines(path) for path in files if lines(path) > 400}

    assert long == {}


def test_the_whole_stays_under_its_cap() -> None:
    assert sum(lines(module.path) for module in modules().values()) < 76_000


def test_errors_of_any_kind_are_caught_at_the_edges_only() -> None:
    wrong = []
    for module in modules().values():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler) or module.place in CATCHES_ALL:
                continue
            caught = ast.unparse(node.type) if node.type else "everything"
            if {"everything", "Exception", "BaseException"} & set(caught.strip("()").split(", ")):
                wrong.append(f"{module.place}:{node.lineno} catches {caught}")

    assert wrong == []


def test_a_file_begins_with_what_it_is_about() -> None:
    silent = [
        module.place
        for module in modules().values()
        if not ast.get_docstring(module.tree) or module.tree.body[0].lineno != 1
    ]

    assert silent == []


def test_starting_stdio_loads_nothing_heavy_that_the_sdk_does_not() -> None:
    script = (
        "import sys, mcp; before = set(sys.modules); import keepsake.surfaces.stdio;"
        f"print(*sorted(set({HEAVY!r}) & (sys.modules.keys() - before)))"
    )

    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT)

    assert loaded.stdout.split() == []
