"""Joins of every kind against DuckDB."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from fuseline.errors import ExecutionError
from fuseline.plan import physical as p
from fuseline.plan.expr import Call, ColumnRef, Expr, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.types import BOOLEAN
from tests.compare import assert_same_as_duckdb
from tests.operators.relations import (
    Relation,
    assert_node,
    decimals,
    dictionary,
    relation,
    run,
)

KINDS = [kind for kind in JoinKind if kind is not JoinKind.SINGLE]
SIDES = ["left", "right"]
NAN = float("nan")

# Key values of each type, so few that they meet, with the values that compare in surprising ways.
KEYS: dict[str, tuple[Any, list[Any]]] = {
    "INTEGER": (lambda v: pa.array(v, pa.int32()), [1, 2, 3, -(2**31), 2**31 - 1]),
    "BIGINT": (lambda v: pa.array(v, pa.int64()), [0, 1, -(2**63), 2**63 - 1]),
    "UBIGINT": (lambda v: pa.array(v, pa.uint64()), [0, 1, 2**63, 2**64 - 1]),
    "BOOLEAN": (lambda v: pa.array(v, pa.bool_()), [True, False]),
    "DOUBLE": (lambda v: pa.array(v, pa.float64()), [0.0, -0.0, 1.5, NAN, -NAN, float("inf")]),
    "FLOAT": (lambda v: pa.array(v, pa.float32()), [0.0, -0.0, 1.5, NAN]),
    "DATE": (lambda v: pa.array(v, pa.date32()), [date(1, 1, 1), date(1970, 1, 1)]),
    "TIMESTAMP": (lambda v: pa.array(v, pa.timestamp("us")), [datetime(1960, 1, 1, 0, 0, 1)]),
    "DECIMAL": (lambda v: decimals(v, 15, 2), ["1.00", "-0.01", "9999999999999.99"]),
    "WIDE": (lambda v: decimals(v, 38, 2), ["1.00", "-1.00", "9" * 36, "-" + "9" * 36]),
    "VARCHAR": (lambda v: pa.array(v, pa.string()), ["", "a", "b", "ä"]),
    "LARGE": (lambda v: pa.array(v, pa.large_string()), ["", "a", "b", "ä"]),
    "DICTIONARY": (dictionary, ["", "a", "b", "ä"]),
}


@st.composite
def pairs_of_relations(draw: st.DrawFn, types: list[str]) -> tuple[Relation, Relation]:
    def side() -> Relation:
        rows = draw(st.integers(0, 8))
        columns: dict[str, Any] = {"id": pa.array(range(rows), pa.int64())}
        for i, name in enumerate(types):
            make, values = KEYS[name]
            cells = st.lists(st.sampled_from([None, *values]), min_size=rows, max_size=rows)
            columns[f"k{i}"] = make(draw(cells))
        numbers = st.lists(st.sampled_from([None, 1, 2, 3]), min_size=rows, max_size=rows)
        columns["v"] = pa.array(draw(numbers), pa.int32())
        return relation(columns)

    return side(), side()


def hash_join(left: Relation, right: Relation, kind: JoinKind, **options: Any) -> p.HashJoin:
    keys = [c.name for c in left.columns if c.name.startswith("k")]
    mark = new_column("mark", BOOLEAN) if kind is JoinKind.MARK else None
    kept = (left["id"], *_seen_of_right(right, kind, mark))
    return p.HashJoin(
        left=left.scan,
        right=right.scan,
        kind=kind,
        left_keys=tuple(left[k] for k in keys),
        right_keys=tuple(right[k] for k in keys),
        null_equal=options.pop("null_equal", tuple(False for _ in keys)),
        mark=mark,
        keep=kept,
        **options,
    )


def _seen_of_right(right: Relation, kind: JoinKind, mark: Any) -> tuple[Any, ...]:
    if kind.is_filter:
        return ()
    return (mark,) if kind is JoinKind.MARK else (right["id"], right["v"])


def sql(kind: JoinKind, condition: str) -> str:
    if kind is JoinKind.MARK:
        return f"select id, exists(select 1 from r where {condition}) from l"
    columns = "l.id" if kind.is_filter else "l.id, r.id, r.v"
    return f"select {columns} from l {kind} join r on {condition}"


def on(keys: int, null_equal: tuple[bool, ...] | None = None) -> str:
    signs = ["is not distinct from" if n else "=" for n in null_equal or [False] * keys]
    return " and ".join(f"l.k{i} {sign} r.k{i}" for i, sign in enumerate(signs))


def less(left: Relation, right: Relation) -> Expr:
    return Call("lt", (ColumnRef(left["v"]), ColumnRef(right["v"])), BOOLEAN)


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=25)
@given(data=st.data())
def test_one_key(backend: str, key: str, data: st.DataObject) -> None:
    left, right = data.draw(pairs_of_relations([key]))
    kind, build = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(SIDES))
    assert_node(
        backend, hash_join(left, right, kind, build=build), sql(kind, on(1)), l=left, r=right
    )


@settings(max_examples=150)
@given(data=st.data())
def test_several_keys(backend: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=2, max_size=3))
    left, right = data.draw(pairs_of_relations(types))
    kind, build = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(SIDES))
    nulls = tuple(data.draw(st.booleans()) for _ in types)
    node = hash_join(left, right, kind, build=build, null_equal=nulls)
    assert_node(backend, node, sql(kind, on(len(types), nulls)), l=left, r=right)


@settings(max_examples=100)
@given(data=st.data())
def test_residual(backend: str, data: st.DataObject) -> None:
    left, right = data.draw(pairs_of_relations(["INTEGER"]))
    kind, build = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(SIDES))
    node = hash_join(left, right, kind, build=build, residual=less(left, right))
    assert_node(backend, node, sql(kind, on(1) + " and l.v < r.v"), l=left, r=right)


@settings(max_examples=100)
@given(data=st.data())
def test_nested_loop(backend: str, data: st.DataObject) -> None:
    left, right = data.draw(pairs_of_relations([]))
    kind = data.draw(st.sampled_from(KINDS))
    mark = new_column("mark", BOOLEAN) if kind is JoinKind.MARK else None
    node = p.NestedLoopJoin(
        left=left.scan,
        right=right.scan,
        kind=kind,
        condition=less(left, right),
        mark=mark,
        keep=(left["id"], *_seen_of_right(right, kind, mark)),
    )
    assert_node(backend, node, sql(kind, "l.v < r.v"), l=left, r=right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("left_rows", [0, 1, 2])
def test_cross_product(backend: str, kind: JoinKind, left_rows: int, rows: int) -> None:
    left = relation({"id": [1, 2][:left_rows]})
    left = relation(left.data.cast(pa.schema([("id", pa.int64())])))
    right = relation({"id": [5, 6][:rows], "v": [7, 8][:rows]})
    right = relation(right.data.cast(pa.schema([("id", pa.int64()), ("v", pa.int64())])))
    mark = new_column("mark", BOOLEAN) if kind is JoinKind.MARK else None
    node = p.NestedLoopJoin(
        left=left.scan,
        right=right.scan,
        kind=kind,
        mark=mark,
        keep=(left["id"], *_seen_of_right(right, kind, mark)),
    )
    assert_node(backend, node, sql(kind, "true"), l=left, r=right)


@pytest.mark.parametrize("key", ["INTEGER", "DICTIONARY", "DOUBLE", "WIDE"])
@settings(max_examples=30)
@given(data=st.data())
def test_not_in(backend: str, key: str, data: st.DataObject) -> None:
    left, right = data.draw(pairs_of_relations([key]))
    build = data.draw(st.sampled_from(SIDES))
    anti = hash_join(left, right, JoinKind.ANTI, build=build, null_aware=True)
    assert_node(
        backend, anti, "select id from l where k0 not in (select k0 from r)", l=left, r=right
    )
    mark = hash_join(left, right, JoinKind.MARK, build=build, null_aware=True)
    assert_node(backend, mark, "select id, k0 in (select k0 from r) from l", l=left, r=right)


@pytest.mark.parametrize("build", SIDES)
def test_single_gives_null_without_a_match(backend: str, build: str) -> None:
    left = relation({"id": [1, 2, 3], "k0": [10, 20, None]})
    right = relation({"id": [7, 8], "k0": [10, None], "v": [1, 2]})
    node = hash_join(left, right, JoinKind.SINGLE, build=build)
    assert_node(backend, node, sql(JoinKind.LEFT, on(1)), l=left, r=right)


@pytest.mark.parametrize("build", SIDES)
def test_single_refuses_a_second_match(backend: str, build: str) -> None:
    left = relation({"id": [1, 2], "k0": [10, 20]})
    right = relation({"id": [7, 8], "k0": [20, 20], "v": [1, 2]})
    with pytest.raises(ExecutionError, match="More than one row"):
        run(backend, hash_join(left, right, JoinKind.SINGLE, build=build), left, right)


def test_single_allows_duplicates_that_nothing_asks_for(backend: str) -> None:
    left = relation({"id": [1], "k0": [10]})
    right = relation({"id": [7, 8, 9], "k0": [20, 20, 10], "v": [1, 2, 3]})
    assert_node(
        backend, hash_join(left, right, JoinKind.SINGLE), sql(JoinKind.LEFT, on(1)), l=left, r=right
    )


def test_single_cross_product_refuses_two_rows(backend: str) -> None:
    left, right = relation({"id": [1]}), relation({"id": [7, 8]})
    node = p.NestedLoopJoin(left=left.scan, right=right.scan, kind=JoinKind.SINGLE)
    with pytest.raises(ExecutionError, match="More than one row"):
        run(backend, node, left, right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", SIDES)
@pytest.mark.parametrize("spread", [1, 1_000_003])
def test_many_duplicates_and_sparse_keys(
    backend: str, kind: JoinKind, build: str, spread: int
) -> None:
    rows = 3000
    left = relation({"id": range(rows), "k0": [i * 7919 % 500 * spread for i in range(rows)]})
    right = relation(
        {
            "id": range(rows),
            "k0": [i * 104729 % 700 * spread for i in range(rows)],
            "v": [i % 3 for i in range(rows)],
        }
    )
    assert_node(
        backend, hash_join(left, right, kind, build=build), sql(kind, on(1)), l=left, r=right
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", SIDES)
@pytest.mark.parametrize("duplicates", [1, 3])
def test_more_rows_than_a_chunk(backend: str, kind: JoinKind, build: str, duplicates: int) -> None:
    rows = 140_000
    keys = pa.array([i * 7919 % rows // duplicates for i in range(rows)], pa.int64())
    left = relation({"id": range(rows), "k0": keys})
    right = relation({"id": range(1000), "k0": keys[:1000], "v": range(1000)})
    if build == "left":
        left, right = relation(left.data.slice(0, 1000)), relation(with_v(left.data))
    node = hash_join(left, right, kind, build=build)
    assert_node(backend, node, sql(kind, on(1)), l=left, r=right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nulls", [(False, False), (True, True), (True, False)])
def test_few_rows_by_two_keys(backend: str, kind: JoinKind, nulls: tuple[bool, bool]) -> None:
    rows = 2000  # of which some have one key of the other side's without the other key, and NULLs

    def keys(of: range) -> dict[str, list[int | None]]:
        first = [None if i % 13 == 0 else i * 7919 % 300 * 201 for i in of]
        second = [None if i % 11 == 0 else i * 104729 % 70 * 901 for i in of]
        return {"k0": first, "k1": second}

    left = relation({"id": range(rows), **keys(range(rows))})
    right = relation({"id": range(90), **keys(range(500, 590)), "v": range(90)})
    node = hash_join(left, right, kind, build="right", null_equal=nulls)
    assert_node(backend, node, sql(kind, on(2, nulls)), l=left, r=right)


def with_v(data: pa.Table) -> pa.Table:
    return data.append_column("v", data["id"])


def test_candidate_pairs_are_tried_in_blocks(backend: str) -> None:
    rows = 2000  # 4 million candidate pairs, of which few remain
    left = relation({"id": range(rows), "k0": [1] * rows, "v": range(rows)})
    right = relation({"id": range(rows), "k0": [1] * rows, "v": [rows - 3] * rows})
    node = hash_join(left, right, JoinKind.INNER, residual=less(right, left))
    result = run(backend, node, left, right)
    assert result.num_rows == 2 * rows
    assert set(result["c0"].to_pylist()) == {rows - 2, rows - 1}


def test_keep_none_passes_all_columns(backend: str) -> None:
    left, right = relation({"a": [1, 2]}), relation({"b": [2, 3]})
    node = p.HashJoin(
        left=left.scan,
        right=right.scan,
        kind=JoinKind.FULL,
        left_keys=(left["a"],),
        right_keys=(right["b"],),
        null_equal=(False,),
    )
    assert_node(backend, node, "select * from l full join r on a = b", l=left, r=right)


@pytest.mark.parametrize(
    "query",
    [
        "select t.id from t where k in (select k from u)",
        "select t.id from t where k not in (select k from u where k is not null)",
        "select t.id, u.id from t join u on t.k = u.k",
        "select t.id, u.id from t left join u on t.k = u.k",
        "select t.id, u.id from t full join u on t.k = u.k",
        "select t.id, k in (select k from u) as found from t",
        "select t.id from t where exists (select * from u where u.k = t.k and u.id < t.id)",
    ],
)
def test_sides_that_begin_behind_the_first_row(backend: str, query: str) -> None:
    """On a GPU a part of a table is a slice of it, whose NULLs stand at an offset of the mask."""
    tables = {
        name: {"id": [*range(rows)], "k": [i * step % 97 if i % 7 else None for i in range(rows)]}
        for name, rows, step in [("a", 700, 31), ("b", 200, 41)]
    }
    parts = "with t as (from a order by id limit 600 offset 25), u as (from b order by id limit 150 offset 13)"
    assert_same_as_duckdb(f"{parts} {query}", tables, backend=backend, fuse=("never", "always"))
