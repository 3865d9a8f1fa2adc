"""How operators run what was planned for kernels."""

from __future__ import annotations

from dataclasses import replace

from fuseline.operators.run_unfused import on_condition
from fuseline.plan import physical as p
from fuseline.plan.expr import Call, Column, ColumnRef, Literal, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.types import BOOLEAN, INTEGER
from tests.operators.relations import Relation, assert_node, relation

LEFT = relation({"id": range(40), "v": [i * 7 % 40 for i in range(40)]})
RIGHT = relation({"id": range(3), "v": [5, 20, 33]})


def keyed(side: Relation, key: Column, value: int | None) -> p.ComputeColumns:
    passed = tuple((c, ColumnRef(c)) for c in side.columns)
    return p.ComputeColumns(side.scan, (*passed, (key, Literal(value, INTEGER))))


def filtered_pairs(values: tuple[int | None, int | None]) -> p.FilterRows:
    keys = [new_column("all", INTEGER) for _ in range(2)]
    left, right = (keyed(*each) for each in zip((LEFT, RIGHT), keys, values, strict=True))
    join = p.HashJoin(left, right, JoinKind.INNER, (keys[0],), (keys[1],), (False,))
    less = Call("lt", (ColumnRef(LEFT["v"]), ColumnRef(RIGHT["v"])), BOOLEAN)
    return p.FilterRows(join, less, keep=(LEFT["id"], RIGHT["id"]))


def test_pairs_of_all_rows_are_found_by_their_condition(backend: str) -> None:
    made = on_condition(filtered_pairs((0, 0)))
    assert isinstance(made, p.NestedLoopJoin)
    assert_node(backend, made, "select l.id, r.id from l, r where l.v < r.v", l=LEFT, r=RIGHT)


def test_pairs_by_other_keys_stay_pairs_by_keys() -> None:
    node = filtered_pairs((0, 0))
    assert isinstance(node.input, p.HashJoin)
    outer = replace(node, input=replace(node.input, kind=JoinKind.LEFT))
    for other in (filtered_pairs((0, 1)), filtered_pairs((None, None)), outer):
        assert on_condition(other) is other
