"""What a kind of join says of itself holds for what the operator makes; and nobody compares kinds as strings."""

from __future__ import annotations

import ast
import pickle

import pytest

import fuseline
from fuseline.plan.expr import new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Join, Logical
from fuseline.plan.types import BOOLEAN
from tests.compare import connected
from tests.test_layout import files, tree

LEFT, RIGHT = [1, 1, 2, 3], [1, 1, 3, 4]
ONCE = [1, 3, 4]  # for the kind that raises where a row has two matches
NAMES = frozenset(JoinKind)


def joined(kind: JoinKind) -> Logical:
    """The columns of a join of two tables with columns of one name each."""
    with fuseline.connect("cpu") as connection:
        left = connection.register("l", {"a": LEFT}).plan
        right = connection.register("r", {"b": RIGHT}).plan
        return Join(left, right, kind, mark=new_column("m", BOOLEAN))


QUERIES = {
    JoinKind.INNER: "select a, b from l join r on a = b",
    JoinKind.LEFT: "select a, b from l left join r on a = b",
    JoinKind.RIGHT: "select a, b from l right join r on a = b",
    JoinKind.FULL: "select a, b from l full join r on a = b",
    JoinKind.SEMI: "select a from l where exists (select 1 from r where a = b)",
    JoinKind.ANTI: "select a from l where not exists (select 1 from r where a = b)",
    JoinKind.MARK: "select a, exists (select 1 from r where a = b) from l",
    JoinKind.SINGLE: "select a, (select b from r where a = b) from l",
}


@pytest.mark.parametrize("kind", JoinKind)
@pytest.mark.parametrize("fuse", ["never", "always"])
def test_traits_say_what_comes_out(kind: JoinKind, fuse: str) -> None:
    build = ONCE if kind is JoinKind.SINGLE else RIGHT
    with connected({"l": {"a": LEFT}, "r": {"b": build}}, fuse=fuse) as connection:
        rows = connection.sql(QUERIES[kind]).fetchall()
    lefts = [row[0] for row in rows]
    rights = [row[1] for row in rows] if kind.outputs_right else []
    assert kind.keeps_left == (set(LEFT) <= set(lefts))
    assert kind.at_most_one == all(lefts.count(a) <= LEFT.count(a) for a in LEFT)
    assert kind.keeps_right == (set(build) <= set(rights))
    assert kind.nulls_right == (None in rights)
    assert kind.is_filter == (len(rows[0]) == 1)


@pytest.mark.parametrize("kind", JoinKind)
def test_columns_follow_from_traits(kind: JoinKind) -> None:
    names = [column.name for column in joined(kind).columns]
    assert names == ["a", *["b"] * kind.outputs_right, *["m"] * (kind is JoinKind.MARK)]


def compared_kinds(parsed: ast.AST) -> list[int]:
    """The lines on which `kind` is compared with a string that names a kind of join."""
    found = []
    for node in ast.walk(parsed):
        if isinstance(node, ast.Compare):
            names = {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node.left)}
            words = [n.value for side in node.comparators for n in ast.walk(side) if isinstance(n, ast.Constant)]  # fmt: skip
            if "kind" in names and NAMES.intersection(w for w in words if isinstance(w, str)):
                found.append(node.lineno)
    return found


def test_nobody_compares_kinds_as_strings() -> None:
    texts = {path: path.read_text() for path in files("engine", "sql")}
    named = [p for p, t in texts.items() if "kind" in t and any(f'"{n}"' in t for n in NAMES)]
    found = {str(path): lines for path in named if (lines := compared_kinds(tree(path)))}
    assert not found


@pytest.mark.parametrize("line", ['node.kind == "semi"', 'kind not in ("left", "full")'])
def test_a_planted_comparison_is_found(line: str) -> None:
    assert compared_kinds(ast.parse(line)) == [1]


@pytest.mark.parametrize("kind", JoinKind)
def test_a_kind_is_found_by_its_word(kind):
    """Its traits are no part of its value, by which it is looked up, compared, printed and pickled."""
    assert JoinKind(kind.value) is kind is pickle.loads(pickle.dumps(kind))
    assert kind == kind.value == str(kind) == kind.name.lower()
