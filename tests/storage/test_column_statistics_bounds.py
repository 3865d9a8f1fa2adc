"""Pruning is a proof: a row group in which some row matches is never left out."""

import math
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from fuseline.plan.expr import FALSE, TRUE, Call, Cast, ColumnRef, InList, Literal, new_column
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    decimal,
    to_arrow,
)
from fuseline.storage.tables.column_statistics import Bounds, excluded
from fuseline.storage.tables.parquet import ParquetTable

NAN = float("nan")


def call(function, *args):
    return Call(function, args, BOOLEAN)


def is_excluded(predicate, bounds):
    return excluded(predicate, lambda _: bounds)


def compare(function, value, bounds, data_type=BIGINT):
    return is_excluded(
        call(function, ColumnRef(new_column("x", data_type)), Literal(value, data_type)), bounds
    )


FIVE_TO_NINE = Bounds(10, 1, 5, 9)


@pytest.mark.parametrize(("function", "excluding", "keeping"), [
    ("eq", [4, 10], [5, 7, 9]), ("lt", [4, 5], [6, 10]), ("le", [4], [5, 10]), ("gt", [9, 10], [8, 4]),
    ("ge", [10], [9, 4]), ("ne", [], [4, 5, 7]),
    ("is_not_distinct", [4, 10], [5, 7, None]),
])  # fmt: skip
def test_comparisons(function, excluding, keeping):
    assert [v for v in excluding if not compare(function, v, FIVE_TO_NINE)] == []
    assert [v for v in keeping if compare(function, v, FIVE_TO_NINE)] == []


def test_a_literal_on_the_left_turns_the_comparison_around():
    x = ColumnRef(new_column("x", BIGINT))
    assert is_excluded(call("lt", Literal(9, BIGINT), x), FIVE_TO_NINE)
    assert not is_excluded(call("lt", Literal(8, BIGINT), x), FIVE_TO_NINE)


def test_comparing_with_null_excludes_everything():
    assert compare("eq", None, FIVE_TO_NINE)
    assert compare("eq", 1, Bounds(3, 3))


def test_unknown_bounds_exclude_nothing():
    assert not compare("eq", 1, Bounds(3))
    x = ColumnRef(new_column("x", BIGINT))
    assert not excluded(call("eq", x, Literal(1, BIGINT)), lambda _: None)
    assert not excluded(call("some_function", x), lambda _: FIVE_TO_NINE)


def test_and_needs_one_or_needs_all():
    x = ColumnRef(new_column("x", BIGINT))
    low, high = call("lt", x, Literal(3, BIGINT)), call("gt", x, Literal(6, BIGINT))
    assert is_excluded(call("and", low, high), FIVE_TO_NINE)
    assert not is_excluded(call("or", low, high), FIVE_TO_NINE)
    assert is_excluded(call("or", low, FALSE), FIVE_TO_NINE)
    assert not is_excluded(TRUE, FIVE_TO_NINE)


def test_null_tests_use_the_count():
    x = ColumnRef(new_column("x", BIGINT))
    assert is_excluded(call("is_null", x), Bounds(3, 0))
    assert not is_excluded(call("is_null", x), Bounds(3, 1))
    assert is_excluded(call("is_not_null", x), Bounds(3, 3))
    assert not is_excluded(call("is_not_null", x), Bounds(3))


def test_in_lists_need_one_value_within():
    x = ColumnRef(new_column("x", BIGINT))
    literals = [Literal(v, BIGINT) for v in (1, 20, None, 7)]
    assert is_excluded(InList(x, tuple(literals[:3])), FIVE_TO_NINE)
    assert not is_excluded(InList(x, tuple(literals)), FIVE_TO_NINE)


def test_text_prefixes():
    x = ColumnRef(new_column("x", VARCHAR))
    bounds = Bounds(3, 0, "banana", "cherry")
    for pattern, expected in [
        ("a%", True),
        ("d%", True),
        ("b%", False),
        ("ch%r_", False),
        ("%a", False),
    ]:
        assert is_excluded(call("like", x, Literal(pattern, VARCHAR)), bounds) is expected
    assert is_excluded(call("starts_with", x, Literal("bananb", VARCHAR)), bounds) is False
    assert is_excluded(call("starts_with", x, Literal("ban", VARCHAR)), bounds) is False
    assert is_excluded(call("starts_with", x, Literal("cz", VARCHAR)), bounds) is True


def test_casts_that_keep_order_are_looked_through():
    day = ColumnRef(new_column("x", DATE))
    bounds = Bounds(3, 0, date(2024, 1, 1), date(2024, 1, 31))
    later = Literal(datetime(2024, 2, 1), TIMESTAMP)
    assert is_excluded(call("ge", Cast(day, TIMESTAMP), later), bounds)
    number = Cast(ColumnRef(new_column("x", INTEGER)), decimal(12, 2))
    assert is_excluded(call("eq", number, Literal(Decimal("9.50"), decimal(12, 2))), FIVE_TO_NINE)
    text = Cast(ColumnRef(new_column("x", INTEGER)), VARCHAR)
    assert not is_excluded(call("eq", text, Literal("zzz", VARCHAR)), FIVE_TO_NINE)


def test_large_integers_are_not_compared_as_doubles_they_are_not():
    big = 2**53 + 1
    cast = Cast(ColumnRef(new_column("x", BIGINT)), DOUBLE)
    assert not is_excluded(call("eq", cast, Literal(2.0**53, DOUBLE)), Bounds(1, 0, big, big))


# Against rows: DuckDB's order, in which NaN is the greatest number


def order(value):
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


MATCHES = {
    "eq": lambda x, v: order(x) == order(v), "ne": lambda x, v: order(x) != order(v),
    "lt": lambda x, v: order(x) < order(v), "le": lambda x, v: order(x) <= order(v),
    "gt": lambda x, v: order(x) > order(v), "ge": lambda x, v: order(x) >= order(v),
}  # fmt: skip
VALUES = {
    INTEGER: st.integers(-5, 5),
    DOUBLE: st.sampled_from([NAN, -0.0, 0.0, 1.5, -1.5, math.inf, -math.inf]),
    VARCHAR: st.text("abü\U0001f600", max_size=3),
    DATE: st.dates(date(2024, 1, 1), date(2024, 1, 6)),
    decimal(5, 2): st.decimals(-2, 2, places=1).map(lambda d: d.quantize(Decimal("0.01"))),
    BOOLEAN: st.booleans(),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(tmp_path_factory.mktemp("bounds") / "x.parquet")


@pytest.mark.parametrize("data_type", VALUES, ids=str)
@given(data=st.data())
def test_no_matching_row_is_pruned(path, data_type, data):
    values = data.draw(st.lists(st.none() | VALUES[data_type], min_size=1, max_size=9))
    function = data.draw(st.sampled_from(sorted(MATCHES)))
    value = data.draw(VALUES[data_type])
    pq.write_table(pa.table({"x": pa.array(values, to_arrow(data_type))}), path, row_group_size=2)
    column = new_column("x", data_type)
    predicate = call(function, ColumnRef(column), Literal(value, data_type))
    selection, _ = ParquetTable.open([path]).select_row_groups(predicate, {column: "x"})
    kept = {group for part in selection for group in part.groups}
    matching = {
        i // 2 for i, x in enumerate(values) if x is not None and MATCHES[function](x, value)
    }
    assert matching <= kept
