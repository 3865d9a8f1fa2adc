"""The house rules about knowledge: what a function is stands in its row, and a constant in one file.

Each test is a function of parsed files, so that a planted violation shows that it can fail.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fuseline.plan.functions import AGGREGATE, SCALAR
from fuseline.plan.functions.dates import PARTS
from tests.test_layout import ENGINE, shown, tree

# Names of functions that are words for something else too, as sides of joins are and units of time
WORDS = frozenset((*PARTS, "left", "right", "first", "last"))
NAMES = frozenset((*SCALAR, *AGGREGATE)) - WORDS


def names_of(items: Iterable[ast.AST | None]) -> list[str]:
    texts = (i.value for i in items if isinstance(i, ast.Constant))
    return [text for text in texts if isinstance(text, str) and text in NAMES]


def listed(node: ast.AST) -> list[str]:
    """Return the functions of which a node lists names; a table of what does each is no list."""
    match node:
        case ast.Set(elts=items) | ast.Tuple(elts=items) | ast.List(elts=items):
            return names_of(items)
        case ast.Dict(keys=keys, values=values) if not any(map(does, values)):
            return names_of(keys)
        case ast.MatchOr(patterns=patterns):
            return names_of(getattr(pattern, "value", None) for pattern in patterns)
    return []


def does(value: ast.expr) -> bool:
    """Whether a value of a table is code: a function, or the call that makes one."""
    return any(
        isinstance(n, ast.Lambda | ast.Call | ast.Name | ast.Attribute) for n in ast.walk(value)
    )


def lists(parsed: ast.AST) -> list[list[str]]:
    found = (listed(node) for node in ast.walk(parsed))
    return [names for names in found if len(names) > 1]


# How many lists of names a file may have: this table may only become shorter.  What one backend's library does apart, how the
# algebra of AND, OR and NOT goes, and what an estimate takes for granted is said there alone.
LISTS = {
    "engine/__init__.py": 1,  # names to import
    "engine/codegen/compile/native.py": 1,  # functions of the C library that have the same names
    "engine/codegen/cuda/emit_fold.py": 1,
    "engine/codegen/emit.py": 1,
    "engine/operators/cpu/functions/kernels_numeric.py": 1,  # how a backend or a message says it
    "engine/operators/gpu/aggregate/aggregate.py": 1,
    "engine/operators/gpu/aggregate/groups.py": 1,
    "engine/operators/gpu/functions/expressions.py": 2,
    "engine/operators/gpu/functions/kernels_arithmetic.py": 1,
    "engine/operators/gpu/functions/kernels_logic.py": 3,
    "engine/operators/gpu/functions/kernels_numeric.py": 1,
    "engine/operators/gpu/functions/kernels_strings.py": 1,
    "engine/operators/integer_bounds.py": 1,
    "engine/operators/one_group.py": 2,  # ways to compute what no part's aggregate makes
    "engine/plan/infer.py": 3,  # rules of types
    "engine/planner/check.py": 1,
    "engine/frame/api_hints.py": 2,  # what other libraries call things
    "engine/frame/expressions/unbound.py": 2,  # text
    "engine/plan/text/expr_text.py": 3,
    "engine/planner/estimates/estimate.py": 2,  # estimates
    "engine/planner/estimates/selectivity.py": 2,
    "engine/storage/tables/column_statistics.py": 2,
    "engine/planner/expressions/logic.py": 3,  # algebra
    "engine/planner/expressions/simplification.py": 4,
    "engine/planner/subqueries/flatten.py": 1,
    "engine/planner/subqueries/subquery_joins.py": 1,
    "sql/binding/bind_expr.py": 1,  # what SQL writes in its own way
    "sql/binding/bind_expr_call.py": 2,
    "sql/binding/bind_expr_subquery.py": 2,
    "sql/names/operator_names.py": 1,
}


def test_what_a_function_is_stands_in_its_row() -> None:
    others = [path for path in ENGINE if "plan/functions/" not in shown(path)]
    found = {shown(path): len(names) for path in others if (names := lists(tree(path)))}
    assert found == LISTS


@pytest.mark.parametrize(
    "line",
    [
        'FOLDED = frozenset(("sum", "avg", "min"))',
        'if name in ("eq", "ne"): ...',
        'MIRRORED = {"lt": "gt", "gt": "lt"}',
        'POSITIONS = {"strftime": 1, "strptime": 1}',
        'match name:\n    case "coalesce" | "greatest": ...',
    ],
)
def test_a_planted_list_is_found(line: str) -> None:
    assert len(lists(ast.parse(line))) == 1


@pytest.mark.parametrize(
    "line", ['RULES = {"sum": _sum, "avg": lambda c: c}', 'PAGES = ("left", "right", "sum")']
)
def test_a_table_of_what_functions_do_is_no_list(line: str) -> None:
    assert lists(ast.parse(line)) == []


def constants(parsed: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names in capitals that a file gives a value, and the value; variables of types are no constants."""
    for node in parsed.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            name = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = ast.unparse(node.value)
            if isinstance(name, ast.Name) and name.id.isupper() and "TypeVar" not in value:
                yield name.id.strip("_"), value


def defined_twice(files: Iterable[tuple[str, ast.Module]]) -> dict[str, set[str]]:
    places: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for path, parsed in files:
        for constant in constants(parsed):
            places[constant].add(path)
    return {name: found for (name, _), found in places.items() if len(found) > 1}


# Constants of one name and value that are two: of other things, or of floors neither of which may import the other
TWICE = {
    "BOOL": "a type of libcudf, for the operators and for storage",
    "I64_MAX": "of registers, and of integers that storage narrows",
    "INT8": "a type of libcudf, for the operators and for storage",
    "INT32": "a type of libcudf, for the operators and for storage",
    "INT64": "a type of libcudf, for the operators and for storage",
    "KERNELS_KEPT": "of the CPU's, and of the GPU's that are loaded",
    "LOADS": "in flight: words of bits, and of texts",
    "MAX_UNITS": "tables whose orders are all tried, and joins",
    "MOST_COLUMNS": "of PIVOT in SQL and of pivot(), of which neither may import the other",
    "MOST_ROWS": "of a piece: of a kernel, of a pull and of an answer",
    "WARP": "of generated and of written kernels",
    "WORD": "bytes of a word, of texts and of jobs",
}


def is_source_of_kernels(path: Path) -> bool:
    """Whether a file's text is compiled alone, and can import no constant."""
    return path.name.startswith("functions_") and path.parent.name in ("cpu", "cuda", "handwritten")


def test_no_constant_is_defined_twice() -> None:
    files = ((shown(path), tree(path)) for path in ENGINE if not is_source_of_kernels(path))
    assert {*defined_twice(files)} == {*TWICE}


def test_a_constant_that_is_defined_twice_is_found() -> None:
    files = [("a", "LIMIT = 1 << 16"), ("b", "_LIMIT: int = 1 << 16"), ("c", "LIMIT = 3\nT = TypeVar('T')"), ("d", "T = TypeVar('T')")]  # fmt: skip
    parsed = [(path, ast.parse(text)) for path, text in files]
    assert defined_twice(parsed) == {"LIMIT": {"a", "b"}}


MOST_PARAMETERS = 12


def wide(parsed: ast.AST) -> list[str]:
    """Return the functions with too many parameters."""
    found = []
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            a = node.args
            count = len(
                [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            )
            if count > MOST_PARAMETERS:
                found.append(node.name)
    return found


def test_no_function_has_many_parameters() -> None:
    """Kernels apart, whose arguments are all that they can read."""
    others = (path for path in ENGINE if not is_source_of_kernels(path))
    assert {shown(path): names for path in others if (names := wide(tree(path)))} == {}


def test_a_function_with_many_parameters_is_found() -> None:
    names = ", ".join(f"a{i}" for i in range(MOST_PARAMETERS))
    assert wide(ast.parse(f"def f({names}): ...\ndef g({names}, *, more): ...")) == ["g"]


def test_a_table_says_what_its_callers_need() -> None:
    """Its protocol has an identity, so that nobody looks whether a table has one."""
    asking = [shown(path) for path in ENGINE if '(scan.table, "identity"' in path.read_text()]
    assert asking == []


def unused(files: Iterable[tuple[str, ast.Module]]) -> set[str]:
    """Return the functions, classes and constants of files that nothing in them reads; decorators may register theirs."""
    made: dict[str, str] = {}
    read: set[str] = set()
    for path, parsed in files:
        for node in parsed.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list:
                made[node.name] = path
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                made[node.targets[0].id] = path
        for node in ast.walk(parsed):
            match node:
                case (
                    ast.Name(id=name, ctx=ast.Load())
                    | ast.Attribute(attr=name)
                    | ast.alias(name=name)
                ):
                    read.add(name)
                case ast.Constant(
                    value=str(name)
                ):  # `__all__`, and annotations of what is not imported
                    read.update(name.replace("[", " ").replace("]", " ").split())
    return {f"{path} {name}" for name, path in made.items() if name not in read}


# Called from outside: by Python and by entry points
OUTSIDE = {
    "engine/__init__.py __dir__",
    "engine/interop/harlequin_adapter.py FuselineAdapter",
    "engine/interop/narwhals_plugin/plugin.py NATIVE_PACKAGE",
    "engine/interop/narwhals_plugin/plugin.py is_native",
    "engine/interop/sqlalchemy_dialect.py FuselineDialect",
}


def test_nothing_is_unused() -> None:
    found = unused((shown(path), tree(path)) for path in ENGINE)
    assert {name for name in found if not name.endswith("__all__")} == OUTSIDE


def test_an_unused_function_is_found() -> None:
    parsed = ast.parse("def dead(): ...\ndef called(): ...\nLIMIT = 3\ncalled()")
    assert unused([("a", parsed)]) == {"a dead", "a LIMIT"}
