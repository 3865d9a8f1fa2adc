"""INTERSECT and EXCEPT, with every multiplicity, against DuckDB."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from fuseline.plan import physical as p
from fuseline.plan.expr import new_column
from tests.operators.relations import Relation, assert_node, dictionary, relation
from tests.operators.test_aggregate import COLUMNS


@st.composite
def relations(draw: st.DrawFn, types: list[str]) -> Relation:
    rows = draw(st.integers(0, 12))
    columns: dict[str, Any] = {}
    for i, name in enumerate(types):
        make, values = COLUMNS[name]
        cells = st.lists(st.sampled_from([None, *values[:3]]), min_size=rows, max_size=rows)
        columns[f"x{i}"] = make(draw(cells))
    return relation(columns)


def operation(left: Relation, right: Relation, kind: Any, all: bool) -> p.HashSetOperation:
    made = tuple(new_column(c.name, c.type) for c in left.columns)
    return p.HashSetOperation(left=left.scan, right=right.scan, kind=kind, all=all, made=made)


@pytest.mark.parametrize("kind", ["intersect", "except"])
@pytest.mark.parametrize("multiplicity", ["all", ""])
@settings(max_examples=60)
@given(data=st.data())
def test_set_operation(backend: str, kind: str, multiplicity: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    left, right = data.draw(relations(types)), data.draw(relations(types))
    node = operation(left, right, kind, all=bool(multiplicity))
    assert_node(backend, node, f"from l {kind} {multiplicity} from r", l=left, r=right)


def test_strings_in_different_forms(backend: str) -> None:
    left = relation({"x": dictionary(["a", "b", "b", None])})
    right = relation({"x": pa.array(["b", None, "c"])})
    node = operation(left, right, "except", all=True)
    assert_node(backend, node, "from l except all from r", l=left, r=right)


def test_first_rows_of_the_left_side_come_out(backend: str) -> None:
    left, right = relation({"x": [0.0, float("nan")]}), relation({"x": [-0.0, float("nan")]})
    node = operation(left, right, "intersect", all=False)
    assert_node(backend, node, "from l intersect from r", l=left, r=right)
