"""The house rules as tests: floors, sizes, packages, settings, and what `import fuseline` costs."""

from __future__ import annotations

import ast
import gc
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fuseline.settings import Settings

ROOT = Path(__file__).parent.parent
FOLDERS = {"engine": "fuseline", "sql": "fuseline.sql"}  # folder -> what it is imported as
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60
MAX_IMPORT_SECONDS = 0.3
HEAVY = ("numba", "pylibcudf", "duckdb", "dask", "sqlglot")

# The floors. A room is a module or package of fuseline (the longest name that fits); beside it, the rooms it
# may import. Everything may import itself. Imports for type checkers alone are not looked at.
GROUND = {"errors", "setting_values", "settings", "stopping", "threads", "plan"}
STORE = GROUND | {"storage", "catalog"}
OPERATE = STORE | {"codegen", "operators", "progress"}
FLOORS: dict[str, set[str]] = {
    "records": set(),  # which every room may import
    "redacted": set(),
    "errors": {"redacted"},
    "requirements": set(),
    "fence": {"errors", "requirements"},
    "setting_values": {"errors"},
    "settings": {"errors", "setting_values"},
    "stopping": {"errors"},
    "threads": set(),
    "plan": GROUND,
    "progress": GROUND | {"fence"},  # two methods of a connection are there
    "catalog": STORE | {"database"},
    "database": GROUND | {"storage"},
    "storage": STORE,
    "sql": GROUND | {"catalog"},
    "deep": {"errors", "stopping", "threads"},
    "reading": {"errors", "fence", "stopping", "deep"},
    # Frame builds logical nodes; the last ones are for its methods that show or hand over what it holds.
    "frame": GROUND | {"catalog", "fence", "reading", "observe.explain", "interop"},
    # The receipt of a run, which `runtime` writes
    "observe.profile": GROUND | {"operators", "observe.roofline"},
    "observe.roofline": GROUND | {"operators", "storage"},
    "observe": OPERATE | {"observe.profile", "observe.roofline", "observe.explain"},
    "planner": GROUND | {"catalog"},
    "codegen": GROUND | {"storage"},
    "operators": OPERATE,
    "operators.cpu": OPERATE,
    # It has single values computed on the host that libcudf computes otherwise than DuckDB.
    "operators.gpu": OPERATE | {"operators.cpu"},
    "runtime": OPERATE | {"observe.profile", "observe.roofline"},
}
# The top floor may import everything: connection, the command line and whatever else is named nowhere above ("").
TOP = {
    "cli",
    "client",
    "database_statements",
    "table_statements",
    "distributed",
    "observe.explain",
    "interop",
    "metadata",
    "plan_cache",
    "writing",
    "file_tables",
    "lakes",
    "server",
    "",
}
FLOORS |= {name: {*FLOORS, *TOP} for name in TOP}

# Libraries that only these modules may import; a name stands for all that begin with it.
GPU_ROOMS = (
    "operators.gpu",
    "storage.tables.device_table",
    "storage.columns.device",
    "interop",
)
ONLY_IN: dict[str, tuple[str, ...]] = {
    "sqlglot": ("sql",),
    "numba": (
        "codegen.compile.compiler",
        "codegen.cpu.functions",
        "codegen.cuda.functions",
        "codegen.handwritten.functions",
        "codegen.handwritten.cpu",
    ),
    "pylibcudf": GPU_ROOMS,
    "rmm": GPU_ROOMS,
    "llvmlite": ("codegen.compile.compiler", "codegen.compile.native", "codegen.cuda.functions"),
    "cuda": (*GPU_ROOMS, "codegen.compile.compiler"),
    "cudf": GPU_ROOMS,
    "cupy": GPU_ROOMS,
    "nccl": ("operators.gpu.exchange",),
    "dask": ("distributed",),
    "distributed": ("distributed",),
    "dask_cuda": ("distributed",),
    "duckdb": (),
    "typer": ("cli",),
    "obstore": ("storage.remote",),
    "deltalake": ("lakes",),
    "pyiceberg": ("lakes",),
    "harlequin": ("interop.harlequin_adapter",),
    "ibis": ("interop.ibis_backend",),
    "narwhals": ("interop.narwhals_plugin",),
    "sqlalchemy": ("interop.sqlalchemy",),
}
VARIABLE = r"\bFUSELINE_[A-Z_]*[A-Z]\b"
ARROW_FREE = ("errors", "settings", "plan", "planner")
ARROW_ALL_THE_SAME = ("plan.types", "plan.arrow")


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


ENGINE = files(*FOLDERS)
ALL = files(*FOLDERS, "tests", "benchmarks")


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module(path: Path) -> str:
    """`engine/plan/types.py` -> `fuseline.plan.types`."""
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS.get(folder, folder), *(part for part in rest if part != "__init__")])


def inside(name: str) -> str:
    """`fuseline.plan.types` -> `plan.types`."""
    return name.removeprefix("fuseline").removeprefix(".")


def begins(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith((f"{p}.", f"{p}_")) for p in prefixes)


def room(name: str) -> str:
    """The room of a module, by the longest name that fits."""
    name = inside(name)
    fitting = [r for r in FLOORS if r and begins(name, (r,))]
    return max(fitting, key=len, default="")


def tree(path: Path) -> ast.Module:
    return _trees().get(path) or _parsed(path)


@cache
def _trees() -> dict[Path, ast.Module]:
    """All of the engine's; looking for cycles among so many nodes, time and again, takes longer than making them."""
    gc.disable()
    try:
        return {path: _parsed(path) for path in ENGINE}
    finally:
        gc.freeze()
        gc.enable()


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(node: ast.AST, *, at_run_time: bool = False) -> Iterator[ast.AST]:
    """All statements below, `at_run_time` but nothing under `if TYPE_CHECKING:`."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        below = getattr(node, field, ())
        for child in below if isinstance(below, list) else ():  # an expression's body is one
            if not (at_run_time and is_for_type_checkers(child)):
                yield child
                yield from statements(child, at_run_time=at_run_time)


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Line and full dotted name of each thing imported, also inside functions."""
    found: list[tuple[int, str]] = []
    for node in statements(tree(path), at_run_time=True):
        match node:
            case ast.Import(names=names):
                found += ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                start = resolve(path, source, level)
                found += ((node.lineno, f"{start}.{alias.name}") for alias in names)
    return tuple(found)


def resolve(path: Path, source: str | None, level: int) -> str:
    if level == 0:
        return source or ""
    package = module(path).split(".")
    up = level - 1 if path.name == "__init__.py" else level
    return ".".join([*package[: len(package) - up], *([source] if source else [])])


def report(found: list[str]) -> None:
    assert not found, "\n" + "\n".join(found)


def test_each_package_has_a_floor() -> None:
    """A single module that FLOORS does not name is on the top floor, where nothing below may import it."""
    packages = {path.parent for path in ENGINE} - {ROOT / "engine"}
    report([shown(p) for p in packages if room(module(p / "__init__.py")) == ""])


def test_imports_stay_on_their_floors() -> None:
    found = []
    for path in ENGINE:
        home = room(module(path))
        for line, name in imports(path):
            if name == "fuseline" or name.startswith("fuseline."):
                target = room(name)
                if target not in FLOORS[home] | {home, "records"}:
                    found.append(f"{shown(path)}:{line} {home} may not import {target or name}")
    report(found)


def test_libraries_stay_in_their_rooms() -> None:
    found = []
    for path in ENGINE:
        here = inside(module(path))
        for line, name in imports(path):
            library = name.split(".")[0]
            if library in ONLY_IN and not begins(here, ONLY_IN[library]):
                rooms = ", ".join(ONLY_IN[library]) or "tests/ and benchmarks/"
                found.append(f"{shown(path)}:{line} {library} belongs to {rooms} alone")
            arrow_free = begins(here, ARROW_FREE) and not begins(here, ARROW_ALL_THE_SAME)
            if library == "pyarrow" and arrow_free:
                found.append(f"{shown(path)}:{line} pyarrow belongs to {ARROW_ALL_THE_SAME} there")
    report(found)


def test_the_engine_is_imported_by_its_name() -> None:
    """`import engine` makes second copies of every class; `import sql` may be another package."""
    wrong = [
        f"{shown(path)}:{line} {name}"
        for path in ALL
        for line, name in imports(path)
        if name.split(".")[0] in FOLDERS
    ]
    report(wrong)


def test_inside_the_engine_imports_are_relative() -> None:
    wrong = [
        f"{shown(path)}:{node.lineno} {node.module}"
        for path in files("engine")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level == 0
        if (node.module or "").split(".")[0] == "fuseline"
    ]
    report(wrong)


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ALL}
    report([f"{shown(p)} has {n} lines" for p, n in lengths.items() if n > MAX_FILE_LINES])


def test_functions_are_short() -> None:
    found = []
    for path in ALL:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    found.append(f"{shown(path)}:{node.lineno} {node.name} has {length} lines")
    report(found)


@pytest.mark.parametrize("word", ["utils", "util", "helpers", "helper", "common", "base", "misc"])
def test_no_file_is_called(word: str) -> None:
    report([shown(path) for path in ALL if word in (path.stem, path.parent.name)])


ON_THE_CPU_ALONE = ("p.UnnestRows",)  # no column of a GPU has lists: this may only become shorter


def operators(backend: str) -> dict[str, str]:
    """Physical node -> file and function, as the backend's OPERATORS says; nothing is imported."""
    door = tree(ROOT / "engine/operators" / backend / "__init__.py")
    homes = {
        alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(door)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    for node in ast.walk(door):  # the GPU's stands behind a look whether its libraries are there
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "OPERATORS":
            assert isinstance(node.value, ast.Dict)
            pairs = zip(node.value.keys, map(ast.unparse, node.value.values), strict=True)
            return {ast.unparse(key): homes.get(text, text) for key, text in pairs if key}
    return {}


def test_both_backends_have_the_same_operators() -> None:
    """Same nodes, files and function names: who knows one backend finds the way in the other."""
    assert operators("gpu")
    cpu = {node: home for node, home in operators("cpu").items() if node not in ON_THE_CPU_ALONE}
    assert cpu == operators("gpu")


def packages_in_tree() -> set[str]:
    """Every folder with Python files: one without `__init__.py` is a mistake that this also finds."""
    return {module(path.parent / "__init__.py") for path in ENGINE}


def test_each_package_is_listed_and_has_a_door_plate() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["setuptools"]["packages"]) == packages_in_tree()
    for folder in {path.parent for path in ENGINE}:
        assert (folder / "__init__.py").exists(), f"{shown(folder)} lacks an __init__.py"
        assert ast.get_docstring(tree(folder / "__init__.py")), (
            f"{shown(folder)} says not what it is"
        )


def test_each_module_is_installed() -> None:
    """Holds for an editable install by itself; `make test-wheel` asks the same of the wheel, whose folder it names."""
    wheel = Path(os.environ.get("FUSELINE_TEST_INSTALLED", ROOT)).resolve()

    def is_installed(path: Path) -> bool:
        found = importlib.util.find_spec(module(path))
        if found is None or found.origin is None:
            return False
        there = Path(found.origin).resolve()
        return wheel in there.parents and there.read_bytes() == path.read_bytes()

    report([shown(path) for path in ENGINE if not is_installed(path)])


def test_the_package_says_that_it_is_typed() -> None:
    (folder,) = importlib.import_module("fuseline").__path__
    assert (Path(folder) / "py.typed").exists()


def test_the_environment_is_read_in_settings_alone() -> None:
    pattern = re.compile(r"\b(environ|getenv)\b")
    outside = [path for path in ENGINE if module(path) != "fuseline.settings"]
    report([shown(path) for path in outside if pattern.search(path.read_text())])


def test_each_setting_is_documented() -> None:
    variables = {f"FUSELINE_{name.upper()}" for name in Settings.names()}
    variables |= {"FUSELINE_HISTORY", "FUSELINE_SERVE_TOKENS", "FUSELINE_SERVE_USERS"}
    documented = set(re.findall(VARIABLE, (ROOT / "docs/settings.md").read_text()))
    assert documented == variables
    assert {v for path in ENGINE for v in re.findall(VARIABLE, path.read_text())} <= documented


IMPORT = """
import sys, time
start = time.perf_counter()
import fuseline
seconds = time.perf_counter() - start
print(seconds, *(name for name in {heavy!r} if name in sys.modules))
"""


def test_import_is_quick_and_light() -> None:
    """Best of three, since the machine may be busy; the first one may also write byte code."""
    command = [sys.executable, "-c", IMPORT.format(heavy=HEAVY)]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    assert all(loaded == [] for _, *loaded in outputs), outputs
    assert min(float(seconds) for seconds, *_ in outputs) < MAX_IMPORT_SECONDS
