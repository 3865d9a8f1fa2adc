"""Strings that lie as codes: through every operator, with NULLs, beside plain ones, and from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import ConversionError
from fuseline.plan import infer, physical as p
from fuseline.plan.expr import ColumnRef, Expr, Literal, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.types import BIGINT, INTEGER, VARCHAR
from fuseline.storage.tables.parquet import ParquetTable
from tests.limits import SetLimits

from .plans import (
    assert_agree,
    both_raise,
    call,
    check,
    column,
    computed,
    number,
    scan,
    scan_of,
    text,
)

pytestmark = pytest.mark.gpu

WORDS = ["pear", "", "apple", "fig", "Ärger", "日本"]


def strings(rows: int, words: list[str], nulls: bool = True, seed: int = 1) -> pa.Array:
    rng = np.random.default_rng(seed)
    kept = [None if nulls and rng.random() < 0.2 else rng.choice(words) for _ in range(rows)]
    return pa.array([None if w is None else str(w) for w in kept], pa.string())


def held(array: pa.Array) -> Any:
    from fuseline.operators.gpu.dictionaries import encoded
    from fuseline.operators.gpu.table import to_device

    return encoded(to_device(array, VARCHAR))


@pytest.mark.parametrize("keys", [1, 6, 126, 127, 1000])
@pytest.mark.parametrize("nulls", [True, False])
def test_codes_stand_for_strings(keys: int, nulls: bool) -> None:
    from fuseline.operators.gpu.dictionaries import Coded

    array = strings(3000, [f"{i:05d}" for i in range(keys)], nulls)
    coded = held(array)
    assert isinstance(coded, Coded)
    assert coded.keys.to_arrow().to_pylist() == sorted(set(array.drop_null().to_pylist()))
    assert coded.plain().to_arrow().to_pylist() == array.to_pylist()
    assert coded.null_count() == array.null_count


def test_many_different_strings_stay_strings(limits: SetLimits) -> None:
    from fuseline.operators.gpu import dictionaries

    limits(SAMPLE_ROWS=40)
    few = strings(90, WORDS)
    assert isinstance(held(few), dictionaries.Coded)
    assert not isinstance(held(pa.array([str(i) for i in range(90)])), dictionaries.Coded)
    for other in (pa.array([], pa.string()), pa.array([None, None], pa.string())):
        assert not isinstance(held(other), dictionaries.Coded)
    limits(dictionaries__MOST_KEYS=3)
    assert not isinstance(held(few), dictionaries.Coded)


def child(seed: int = 1, rows: int = 150) -> tuple[p.MemoryScan, list[Any]]:
    """A column of codes, one of plain strings, and a number."""
    columns = [new_column("s", VARCHAR), new_column("plain", VARCHAR), new_column("n", INTEGER)]
    rng = np.random.default_rng(seed)
    arrays = {
        "s": strings(rows, WORDS, seed=seed),
        "plain": pa.array([f"{WORDS[i % 6]} {i}" for i in range(rows)]),
        "n": pa.array(rng.integers(0, 9, rows), pa.int32()),
    }
    return scan_of(arrays, columns), columns


def predicates(s: Expr, plain: Expr) -> dict[str, Expr]:
    c = infer.call
    return {
        "equality": c("eq", [s, text("fig")]),
        "in": infer.in_list(s, [Literal(w, VARCHAR) for w in ("fig", "apple", "kiwi", "pear")]),
        "like": c("like", [s, text("%p%")]),
        "null": c("is_null", [s]),
        "coalesce": c("eq", [c("coalesce", [s, text("none")]), text("none")]),
        "function": c("gt", [c("length", [s]), number(3)]),
        "both": c("and", [c("ne", [s, text("fig")]), c("like", [plain, text("%1%")])]),
        "columns": c("lt", [s, plain]),
    }


@pytest.mark.parametrize("name", list(predicates(text("a"), text("b"))))
def test_predicates(name: str) -> None:
    source, (s, plain, _) = child()
    predicate = predicates(ColumnRef(s), ColumnRef(plain))[name]
    assert_agree(computed(predicate, source), ordered=True)
    assert_agree(p.FilterRows(source, predicate), ordered=True)
    assert_agree(p.FilterRows(p.LimitRows(source, 0), predicate), ordered=True)


def test_results_are_codes_again() -> None:
    source, (s, plain, _) = child()
    ref, other = ColumnRef(s), ColumnRef(plain)
    for expr in (
        infer.call("upper", [ref]),
        infer.call("substring", [ref, number(1), number(1)]),
        infer.case([infer.call("eq", [ref, text("fig")])], [text("yes")], ref),
        infer.call("concat", [ref, other]),
    ):
        once = computed(expr, source)
        assert_agree(once, ordered=True)
        assert_agree(p.HashAggregate(once, once.columns, (call("count_star"),)))


def test_an_error_that_no_row_has_is_no_error() -> None:
    """The dictionary holds a value that the filter has removed."""
    s = new_column("s", VARCHAR)
    source = scan_of({"s": pa.array(["1", "2", "x", "2", "1", None] * 9)}, [s])
    cast = infer.cast(ColumnRef(s), INTEGER)
    kept = p.FilterRows(source, infer.call("ne", [ColumnRef(s), text("x")]))
    assert_agree(computed(cast, kept), ordered=True)
    both_raise(computed(cast, source), ConversionError)


@pytest.mark.parametrize("function", ["count", "min", "max", "first", "mode", "string_agg"])
@pytest.mark.parametrize("distinct", [True, False])
def test_aggregates(function: str, distinct: bool) -> None:
    source, (s, plain, n) = child()
    extra = (Literal(",", VARCHAR),) if function == "string_agg" else ()
    if distinct and function in ("string_agg", "mode"):
        return  # the order of distinct values is free
    calls = (call(function, s, *extra, distinct=distinct), call("count", n), call("min", plain))
    for keys in ((n,), (s,), (s, n), ()):
        assert_agree(p.HashAggregate(source, keys, calls))
        assert_agree(p.HashAggregate(p.LimitRows(source, 0), keys, calls))


def test_other_operators() -> None:
    source, (s, plain, n) = child()
    orders = (p.Order(s, True, True), p.Order(n, False, False), p.Order(plain, False, False))
    assert_agree(p.SortRows(source, orders), ordered=True)
    assert_agree(p.TopK(source, orders, 7, 2), ordered=True)
    assert_agree(p.LimitRows(source, 20, 5), ordered=True)
    assert_agree(p.HashAggregate(source, (s, n), ()))
    assert_agree(p.DistinctOn(p.SortRows(source, orders), (s,)))
    made = tuple(new_column(c.name, c.type) for c in source.columns)
    assert_agree(p.ConcatRows((source, p.LimitRows(source, 9)), made), ordered=True)
    other, _ = child(seed=2)
    assert_agree(p.ConcatRows((source, other), made), ordered=True)
    few = p.LimitRows(p.SortRows(other, (p.Order(other.made[0], False, False),)), 30)
    for kind in ("intersect", "except"):
        sides = [p.HashAggregate(c, (k,), ()) for c, k in ((source, s), (few, other.made[0]))]
        assert_agree(p.HashSetOperation(*sides, kind, False, (new_column("x", VARCHAR),)))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("same", [True, False])
def test_joins(kind: Any, same: bool) -> None:
    """Keys with one dictionary, as in a self-join, and with two."""
    left, (s, _, n) = child(rows=40)
    if same:
        aggregate = p.HashAggregate(left, (s,), (call("max", n),))
        made = (new_column("t", VARCHAR), new_column("m", INTEGER))
        right: Any = p.ConcatRows((aggregate,), made)
        key = made[0]
    else:
        right, (key, _, _) = child(seed=5, rows=20)
    assert_agree(p.HashJoin(left, right, JoinKind(kind), (s,), (key,), (False,)))


def test_files(tmp_path: Path) -> None:
    """Whole, cut out of the whole, and with a value that only one row group has."""
    for i in range(2):
        words = [*strings(50, WORDS).to_pylist(), *([f"only {i}"] * 50)]
        data = pa.table({"s": words, "n": range(100)})
        pq.write_table(data, tmp_path / f"{i}.parquet", row_group_size=25)
    table = ParquetTable.open([str(tmp_path / "*.parquet")])
    made = (new_column("s", VARCHAR), new_column("n", BIGINT))
    whole = p.ParquetScan(table, made, ("s", "n"))
    groups = (p.RowGroups(0, (1, 3)), p.RowGroups(1, (0,)))
    other = tuple(new_column(c.name, c.type) for c in made)
    part = p.ParquetScan(table, other, ("s", "n"), groups)
    assert_agree(whole, ordered=True)
    assert_agree(part, ordered=True)
    both = tuple(new_column(c.name, c.type) for c in made)
    assert_agree(p.ConcatRows((whole, part), both), ordered=True)


def test_comparison_of_codes_with_many_values() -> None:
    check(lambda a, b: infer.call("le", [a, b]), "varchar", "varchar", values=11)


def test_scan_of_random_strings() -> None:
    source = scan(np.random.default_rng(4), 60, [column("a", "varchar"), column("b", "varchar")])
    assert_agree(source, ordered=True)
