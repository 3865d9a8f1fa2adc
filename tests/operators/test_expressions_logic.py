"""Three-valued logic, comparisons, and functions that choose."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from tests.operators.evaluated import assert_expressions, evaluated, selected

TRUTH = pa.table(
    dict(
        zip(
            "abc",
            (pa.array(v) for v in zip(*product([True, False, None], repeat=3), strict=True)),
            strict=True,
        )
    )
)
NAN, INF = float("nan"), float("inf")
FLOATS = [None, NAN, -NAN, INF, -INF, 0.0, -0.0, 1.5, -1.5, 5e-324, 1.7976931348623157e308]
INTEGERS = [None, 0, 1, -1, 2**63 - 1, -(2**63)]
TEXTS = [None, "", "a", "A", "ab", "é", "z", "a\0b", "日本"]
COMPARISONS = [
    f"x {sign} y"
    for sign in ("=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
]


def pairs(values: list[object], arrow: pa.DataType) -> pa.Table:
    x, y = zip(*product(values, repeat=2), strict=True)
    return pa.table({"x": pa.array(x, arrow), "y": pa.array(y, arrow)})


def test_logic_is_kleenes() -> None:
    assert_expressions(
        ["a and b", "a or b", "not a", "a and b and c", "a or b or c", "a is null", "a is not null",
         "a and null", "a or null", "a and true", "a or true", "a and (b or not c)"],
        TRUTH,
    )  # fmt: skip


@pytest.mark.parametrize(("values", "arrow"), [
    (FLOATS, pa.float64()),
    ([None, NAN, 0.0, -0.0, 1.5], pa.float32()),
    (INTEGERS, pa.int64()),
    ([None, 0, 1, 255], pa.uint8()),
    ([None, 0, 2**64 - 1], pa.uint64()),
    (TEXTS, pa.string()),
    ([None, True, False], pa.bool_()),
    ([None, 0, -1, 20_000], pa.date32()),
    ([None, 0, -1, 10**15], pa.timestamp("us")),
], ids=str)  # fmt: skip
def test_comparisons(values: list[object], arrow: pa.DataType) -> None:
    chosen = ["greatest(x, y)", "least(x, y)", "coalesce(x, y)", "nullif(x, y)"]
    assert_expressions([*COMPARISONS, *chosen], pairs(values, arrow))


@pytest.mark.parametrize("digits", [15, 38])
def test_comparisons_of_decimals(digits: int) -> None:
    largest = "9" * (digits - 2)
    values: list[object] = [None, *map(Decimal, ("0", "0.01", "-0.01", largest, f"-{largest}"))]
    assert_expressions(COMPARISONS, pairs(values, pa.decimal128(digits, 2)))


def test_comparisons_with_constants() -> None:
    table = pairs(FLOATS, pa.float64())
    nan = "'nan'::double"
    assert_expressions(
        [f"{left} {sign} {right}" for sign in ("=", "<", "<=", ">", ">=", "<>")
         for left, right in (("x", "0.0::double"), ("0.0::double", "x"), ("x", nan), (nan, "x"))],
        table,
    )  # fmt: skip


def test_intervals_compare_by_days_of_24_hours_and_months_of_30_days() -> None:
    table = pa.table(
        {
            "m": [0, 1, 0, 0, -1, None, 12],
            "d": [30, 0, 29, 0, 30, 1, 5],
            "h": [0, 0, 24, 720, 0, 0, -3],
        }
    )
    span = "(to_months(m) + to_days(d) + to_hours(h))"
    assert_expressions(
        [f"{span} {sign} interval '1 month'" for sign in ("=", "<>", "<", "<=", ">", ">=")], table
    )


def test_dictionary_columns_compare_as_strings() -> None:
    values = pa.array(TEXTS * 2).dictionary_encode()
    other = pa.array([*TEXTS[::-1], *TEXTS]).dictionary_encode()
    assert_expressions(
        [*COMPARISONS, "x || y", "coalesce(x, y)"], pa.table({"x": values, "y": other})
    )


def test_in_lists() -> None:
    numbers = pa.table({"x": pa.array([None, 1, 2, 3, 2**40], pa.int64())})
    assert_expressions(
        ["x in (1, 3)", "x not in (1, 3)", "x in (1, null)", "x not in (1, null)", "x in (null)",
         "x in (0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 1099511627776)"],
        numbers,
    )  # fmt: skip
    texts = pa.table({"x": pa.array([None, "a", "b", ""])})
    assert_expressions(["x in ('a', '')", "x not in ('a', null)", "x in ('b')"], texts)
    floats = pa.table({"x": pa.array([None, NAN, -0.0, 1.0])})
    assert_expressions(["x in ('nan'::double, 0.0::double)", "x not in (0.0::double)"], floats)


def test_case() -> None:
    table = pa.table({"x": [None, 1, 2, 3], "s": ["a", None, "c", "d"]})
    assert_expressions(
        ["case when x = 1 then 'one' when x = 2 then s else 'many' end", "case x when 1 then 10 end",
         "case when x > 1 then x else -x end", "if(x = 2, s, null)", "ifnull(x, 0)",
         "case when x is null then null else 1.5 end", "case when null then 1 else 2 end"],
        table,
    )  # fmt: skip


def test_a_branch_that_no_row_takes_does_not_raise() -> None:
    table = pa.table({"s": ["1", "x", "3", None], "x": pa.array([0, 1, 2, None], pa.int64())})
    assert evaluated(["case when s <> 'x' then s::int else -1 end"], table)["c0"].to_pylist() == [
        1,
        -1,
        3,
        -1,
    ]
    assert evaluated(["case when x = 0 then 0 else 10 // x end"], table)["c0"].to_pylist() == [
        0,
        10,
        5,
        None,
    ]
    assert evaluated(["coalesce(nullif(s, 'x')::int, (x + 9223372036854775806))"], table)["c0"].to_pylist() == [
        1, 9223372036854775807, 3, None,
    ]  # fmt: skip


def test_a_condition_that_decides_guards_the_others() -> None:
    table = pa.table({"s": ["1", "x", "3", None]})
    assert selected("s <> 'x' and s::int > 2", table) == [2]
    assert selected("s = 'x' or s::int > 2", table) == [1, 2]
    assert evaluated(["s <> 'x' and s::int > 2"], table)["c0"].to_pylist() == [
        False,
        False,
        True,
        None,
    ]


def test_selection_is_of_true_rows_alone() -> None:
    table = pa.table({"x": pa.array([None, 1, 2, 3] * 100_000)})
    assert selected("x = 2 and x is not null", table) == list(range(2, 400_000, 4))
    assert selected("x >= 1", table)[:4] == [1, 2, 3, 5]
    assert selected("x < 0", table) == []
    assert selected("x < 0", table.slice(0, 0)) == []
    assert selected("true", table.slice(0, 3)) == [0, 1, 2]
    assert selected("null", table.slice(0, 3)) == []
