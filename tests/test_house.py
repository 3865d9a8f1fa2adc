"""The house rules about rooms and names: how many files a folder holds, one name for one thing, no circle, and door plates.

Each test is a function of paths, so that a planted violation shows that it can fail.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.test_layout import ENGINE, ROOT, imports, module, shown, statements, tree

MAX_FILES = 25

# Circles that are left, each with its reason: this list may only become shorter, and no circle may have more modules.
CIRCLES: dict[str, frozenset[str]] = {
    "an expression may hold a plan, whose nodes hold expressions": frozenset(
        ("plan.copies", "plan.expr", "plan.logical", "plan.window.window_call")
    ),
    "a lookup table is filled by an expression that is translated": frozenset(
        ("codegen.expressions.lookup", "codegen.expressions.translate")
    ),
    "a build side is a chain of steps, in which there are joins with build sides": frozenset(
        f"codegen.joins.{name}" for name in ("builds", "chains", "clustered_self_join", "join_steps")
    ),
    "a column of a table may be fetched late, by functions of tables: until a column is one class": frozenset(
        (
            "operators.gpu.late_materialization",
            "operators.gpu.memory.host_values",
            "operators.gpu.memory.upload",
            "operators.gpu.pipeline.derived_columns",
            "operators.gpu.pipeline.stored",
            "operators.gpu.table",
            "operators.gpu.functions.expressions",
            "operators.gpu.functions.values",
            *(
                f"operators.gpu.functions.kernels_{name}"
                for name in (
                    *("arithmetic", "casts", "dates", "formats", "logic", "numeric"),
                    *("patterns", "print", "strings", "zones"),
                )
            ),
        )
    ),
}  # fmt: skip


def crowded(paths: Iterable[Path]) -> dict[str, int]:
    """Return the folders with too many files."""
    files: defaultdict[str, int] = defaultdict(int)
    for path in paths:
        files[str(path.parent)] += 1
    return {folder: count for folder, count in files.items() if count > MAX_FILES}


def place(path: Path) -> str:
    """A path, in which the two backends are the same: they have the same rooms with the same files."""
    return str(path).replace("/cpu/", "/backend/").replace("/gpu/", "/backend/")


def repeated(named: Iterable[tuple[str, Path]]) -> dict[str, set[str]]:
    """Return the names that stand at several places."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in named:
        places[name].add(place(path))
    return {name: found for name, found in places.items() if len(found) > 1}


def file_names(paths: Iterable[Path]) -> list[tuple[str, Path]]:
    return [(path.stem, path) for path in paths if path.stem != "__init__"]


def class_names(paths: Iterable[Path]) -> list[tuple[str, Path]]:
    nodes = ((node, path) for path in paths for node in statements(tree(path)))
    return [(node.name, path) for node, path in nodes if isinstance(node, ast.ClassDef)]


def circles(edges: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Return the modules that import each other, wherever the import stands: the strongly connected components."""

    @cache
    def reached(start: str) -> frozenset[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            new = edges.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return frozenset(found)

    inside = {name for name in edges if name in reached(name)}
    return list({frozenset(n for n in reached(name) if name in reached(n)) for name in inside})


def imported() -> dict[str, set[str]]:
    """Module -> the modules that it imports, also inside functions."""
    modules = {module(path) for path in ENGINE}

    def home(name: str) -> str:
        return name if name in modules else name.rpartition(".")[0]

    found = {module(path): {home(name) for _, name in imports(path)} & modules for path in ENGINE}
    # A room's door is no stop on the way to its files, and `fuseline` itself imports when asked
    return {name: targets - {name, "fuseline"} for name, targets in found.items()}


def missing(text: str) -> list[str]:
    """Return the paths in backquotes that are not there; below `engine/` that folder's name may be left out."""
    named = re.findall(r"`((?:\w+/)+(?:[\w*]+\.py)?)`", text)
    return [p for p in named if not any((*ROOT.glob(p), *(ROOT / "engine").glob(p)))]


def lacking(plate: str | None) -> list[str]:
    """Return what a door plate lacks: what the room is, what it imports, where to start reading."""
    said = (plate or "").lower()
    return [word for word in ("import", "start") if word not in said]


def test_no_folder_is_crowded() -> None:
    assert crowded(ENGINE) == {}


def test_a_crowded_folder_is_found() -> None:
    planted = [Path(f"engine/room/file{i}.py") for i in range(MAX_FILES + 1)]
    assert crowded(planted) == {"engine/room": MAX_FILES + 1}
    assert crowded(planted[1:]) == {}


def test_a_file_name_means_one_thing() -> None:
    assert repeated(file_names(ENGINE)) == {}


def test_a_repeated_file_name_is_found() -> None:
    backends = [Path(f"engine/operators/{b}/join/pairs.py") for b in ("cpu", "gpu")]
    assert repeated(file_names(backends)) == {}
    assert [*repeated(file_names([*backends, Path("engine/plan/pairs.py")]))] == ["pairs"]
    moved = [backends[0], Path("engine/operators/gpu/sort/pairs.py")]
    assert [*repeated(file_names(moved))] == ["pairs"]


def test_a_class_name_means_one_thing() -> None:
    assert repeated(class_names(ENGINE)) == {}


def test_a_repeated_class_name_is_found(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("class Key:\n    class Part: ...\n")
    second.write_text("def f():\n    class Part: ...\n")
    assert [*repeated(class_names([first, second]))] == ["Part"]


def hidden(plates: Iterable[Path]) -> list[str]:
    """Modules that a name of their package hides, by the package's door plate: `a.b.c` finds the name instead."""
    found = []
    for plate in plates:
        inside = {
            path.stem
            for path in plate.parent.iterdir()
            if path.suffix == ".py" or (path / "__init__.py").exists()
        }
        for node in ast.walk(ast.parse(plate.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                bound = {alias.asname or alias.name for alias in node.names}
                found += [f"{plate.parent.name}.{name}" for name in sorted(bound & inside)]
    return found


def test_no_name_hides_a_module() -> None:
    assert hidden(path for path in ENGINE if path.name == "__init__.py") == []


def test_a_hidden_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "memory.py").touch()
    plate = tmp_path / "__init__.py"
    plate.write_text("from .device import memory\nfrom . import memory as other\n")
    assert hidden([plate]) == [f"{tmp_path.name}.memory"]


def test_modules_import_each_other_in_known_circles_alone() -> None:
    """A known one that got smaller, or is gone, is to be taken out of the list."""
    found = {frozenset(n.removeprefix("fuseline.") for n in c) for c in circles(imported())}
    assert found == {*CIRCLES.values()}


@pytest.mark.parametrize("back", ["from .first import a", "def f():\n    from .first import a"])
def test_a_circle_is_found(back: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that a deferred import closes."""
    monkeypatch.setattr("tests.test_layout.ROOT", tmp_path)
    room = tmp_path / "engine" / "room"
    room.mkdir(parents=True)
    (room / "first.py").write_text("from .second import b\nfrom .third import c\n")
    (room / "second.py").write_text(back)
    (room / "third.py").write_text("")
    paths = sorted(room.glob("*.py"))
    edges = {module(p): {name.rpartition(".")[0] for _, name in imports(p)} for p in paths}
    assert circles(edges) == [{"fuseline.room.first", "fuseline.room.second"}]


def test_each_room_has_a_door_plate() -> None:
    rooms = [path for path in ENGINE if path.name == "__init__.py" and path.parent.name != "engine"]
    assert {shown(p): lacking(ast.get_docstring(tree(p))) for p in rooms} == {
        shown(p): [] for p in rooms
    }


def test_a_bare_door_is_found() -> None:
    assert lacking(None) == ["import", "start"]
    assert lacking("Joins in kernels.  Start at `chains.py`.") == ["import"]
    assert lacking("Joins.  Imports `expressions`.  Start at `chains.py`.") == []


def test_pages_name_files_that_are_there() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        assert missing((ROOT / page).read_text()) == [], page
    assert missing("`engine/planner/`, `planner/fuse.py`, `codegen/cuda/emit_*.py`") == [
        "planner/fuse.py"
    ]


def test_each_rule_looks_at_the_whole_house() -> None:
    assert len(ENGINE) > 300
    assert len(imported()) == len(ENGINE)
    assert ROOT / "sql" / "__init__.py" in ENGINE


def test_cores_are_counted_in_one_place() -> None:
    """A process may use fewer than the machine has: threads by the machine's number would get in each other's way."""
    counting = [path.name for path in ENGINE if "cpu_count(" in path.read_text()]
    assert counting == ["settings.py"]


def giving_children(source: str) -> bool:
    """Return whether a source makes Arrow's arrays of buffers and children."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("rray.from_buffers")
        and (len(node.args) > 5 or "children" in {k.arg for k in node.keywords})
        for node in ast.walk(ast.parse(source))
    )


def test_types_of_numbers_ask_for_no_pandas() -> None:
    """`to_pandas_dtype` imports it, and pyarrow 25 fails where it is not installed."""
    asking = [f for f in ENGINE if ".to_pandas_dtype(" in f.read_text()]
    assert asking == []


def test_arrays_get_their_children_in_one_place() -> None:
    """Which checks them: `from_buffers` ends the process for children of another type."""
    giving = [
        path.name
        for path in ENGINE
        if "from_buffers" in (text := path.read_text()) and giving_children(text)
    ]
    assert giving == ["nested_buffers.py"]
    assert giving_children("pa.Array.from_buffers(t, len(a), b, children=[c])")
    assert not giving_children("pa.Array.from_buffers(t, len(a), b, -1, 0)")


# Folders of tests, what their files are named after, and topics that are no module's alone
MIRRORED: dict[str, tuple[str, ...]] = {
    "codegen": ("engine/codegen",),
    "gpu": ("engine/operators", "engine/storage", "engine/codegen", "engine/interop"),
    "interop": ("engine/interop",),
    "operators": ("engine/operators",),
    "plan": ("engine/plan",),
    "planner": ("engine/planner",),
    "runtime": ("engine/runtime",),
    "sql": ("sql",),
    "storage": ("engine/storage",),
}
TOPICS = {
    "codegen": ("auto", "cubins", "index_functions", "kernels", "many_kernels", "ordered_keys", "pipelines", "random"),
    "gpu": ("fused_joins", "hot_runs", "many_groups", "seeing", "short_of_memory", "values_of_joins"),
    "interop": ("every_arrow_type", "ibis_databases", "one_line_changed"),
    "operators": ("date_range", "function_sweep", "repeated_values", "sorts_keep_to_limits"),
    "plan": ("function_traits",),
    "planner": ("goldens", "random_queries"),
    "sql": ("arguments", "compiled_parser", "ctes", "errors", "expression_values", "group_by", "joins", "mutations", "order_limit",
            "plans", "result_names", "select", "set_operations", "subqueries", "tree_coverage", "tree_grafts", "views"),
    "storage": ("mutated_files", "mutated_own_files", "opening", "parts"),
}  # fmt: skip


def unplaced(folder: str, names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files of a folder that are named after no module, as `test_module.py` or `test_module_topic.py`, and no topic."""
    modules = {
        path.parent.name if path.stem == "__init__" else path.stem
        for mirrored in MIRRORED[folder]
        for path in (root / mirrored).rglob("*.py")
    }
    topics = {*TOPICS.get(folder, ())}

    def is_placed(name: str) -> bool:
        words = name.removeprefix("test_").removeprefix("gpu_").split("_")
        starts = {"_".join(words[:n]) for n in range(1, len(words) + 1)}
        return bool(starts & modules) or name.removeprefix("test_") in topics

    return [name for name in names if not is_placed(name)]


@pytest.mark.parametrize("folder", sorted(MIRRORED))
def test_tests_are_named_after_what_they_test(folder: str) -> None:
    names = {path.stem for path in (ROOT / "tests" / folder).glob("test_*.py")}
    assert names
    assert not unplaced(folder, sorted(names))
    assert {f"test_{topic}" for topic in TOPICS.get(folder, ())} <= names


def test_a_test_of_no_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "engine/planner/rules").mkdir(parents=True)
    (tmp_path / "engine/planner/rules/decorrelate.py").touch()
    names = ["test_decorrelate_answers", "test_random_queries", "test_old_name", "test_decor"]
    assert unplaced("planner", names, tmp_path) == ["test_old_name", "test_decor"]
