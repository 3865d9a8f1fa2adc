from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from fuseline.errors import (
    InvalidQuery,
    OutOfRange,
    Span,
    TypeMismatch,
    UnknownName,
)
from fuseline.plan import derived, infer
from fuseline.plan.expr import Call, Case, Cast, InList, Interval, Literal, SortKey
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    NULL,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    decimal,
)
from tests.compare import assert_same_as_duckdb
from tests.plan.columns import REFS, TYPES, duckdb_type, type_or_error

ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "int_div": "//", "mod": "%"}


@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize(("name", "sign"), ARITHMETIC.items())
def test_arithmetic_has_duckdbs_types(name, sign, left):
    for right in TYPES:
        ours = type_or_error(lambda right=right: infer.call(name, [REFS[left], REFS[right]]))
        assert ours == duckdb_type(f"{left} {sign} {right}"), f"{left} {sign} {right}"


@pytest.mark.parametrize("left", [*TYPES, "n"])
def test_case_has_duckdbs_types(left):
    for right in [*TYPES, "n"]:
        ours = type_or_error(lambda right=right: infer.case([REFS["b"]], [REFS[left]], REFS[right]))
        theirs = duckdb_type(f"CASE WHEN b THEN {left} ELSE {right} END")
        assert ours == ('"NULL"' if left == right == "n" else theirs), f"{left}, {right}"


@pytest.mark.parametrize("left", TYPES)
def test_ordering_takes_the_types_that_duckdb_compares(left):
    for right in TYPES:
        ours = type_or_error(lambda right=right: infer.call("lt", [REFS[left], REFS[right]]))
        assert ours == duckdb_type(f"{left} < {right}"), f"{left} < {right}"


LITERALS = {"1": 1, "1000": 1000, "100000": 100_000, "3000000000": 3 * 10**9, "(-1)": -1}


@pytest.mark.parametrize("text", LITERALS)
@pytest.mark.parametrize(("name", "sign"), ARITHMETIC.items())
def test_integer_literals_take_the_type_beside_them_where_they_fit(name, sign, text):
    for column in ("ti", "si", "i", "bi", "ut", "us", "ui", "ub", "d4", "d15", "f", "d", "dt"):
        ours = type_or_error(
            lambda column=column: infer.call(name, [REFS[column], infer.literal(LITERALS[text])])
        )
        assert ours == duckdb_type(f"{column} {sign} {text}"), f"{column} {sign} {text}"


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "ubigint", "utinyint", "hugeint"])
def test_a_null_that_was_cast_has_a_type_for_the_literal_beside_it(kind):
    for text in (f"null::{kind} // 2", f"-1 + null::{kind}", f"2 * cast(null as {kind})"):
        assert_same_as_duckdb(f"select {text} as x, typeof({text}) as t", backend="cpu")


def test_operands_of_addition_have_the_type_of_the_sum():
    total = infer.call("add", [REFS["d4"], REFS["i"]])
    assert {arg.type for arg in total.children} == {total.type} == {decimal(12, 1)}


def test_factors_keep_their_scales():
    product = infer.call("mul", [REFS["d15"], REFS["i"]])
    assert [arg.type for arg in product.children] == [decimal(15, 2), decimal(10, 0)]
    assert product.type == decimal(18, 2)


def test_a_product_that_needs_more_than_38_decimals_is_refused():
    wide = infer.cast(REFS["d38"], decimal(38, 20))
    with pytest.raises(TypeMismatch):
        infer.call("mul", [wide, wide])


def test_comparison_with_a_literal_leaves_the_column_as_it_is():
    found = infer.call("lt", [REFS["d15"], infer.literal(24)])
    assert found == Call("lt", (REFS["d15"], Literal(Decimal(24), decimal(15, 2))), BOOLEAN)


def test_a_literal_with_more_decimals_widens_the_column():
    found = infer.call("lt", [REFS["d4"], infer.literal(Decimal("1.25"))])
    assert found.children[0] == Cast(REFS["d4"], decimal(5, 2))


def test_text_is_read_as_the_type_beside_it():
    found = infer.call("ge", [REFS["dt"], infer.literal("1994-01-01")])
    assert found.children[1] == Literal(date(1994, 1, 1), DATE)


def test_text_that_is_no_such_value_fails_when_a_row_meets_it():
    text = Literal("1994-13-01", VARCHAR, Span(5, 17))
    found = infer.call("ge", [REFS["dt"], text])
    assert found.children[1] == Cast(text, DATE, span=Span(5, 17))


def test_text_in_a_branch_fails_only_when_it_is_reached():
    found = infer.case([REFS["b"]], [REFS["i"]], infer.literal("x"))
    assert found.default == Cast(Literal("x", VARCHAR), INTEGER)


def test_a_text_column_is_cast_to_what_it_is_compared_with():
    found = infer.call("eq", [REFS["s"], infer.literal(1)])
    assert found.children[0] == Cast(REFS["s"], INTEGER)


def test_null_takes_any_type():
    found = infer.call("eq", [REFS["dt"], infer.literal(None)])
    assert found.children[1] == Literal(None, DATE)


def test_and_is_flat():
    inner = infer.call("and", [REFS["b"], REFS["b"]])
    assert len(infer.call("and", [inner, REFS["b"]]).children) == 3


def test_a_condition_may_be_a_number_but_no_date():
    assert infer.condition(REFS["i"]) == Cast(REFS["i"], BOOLEAN)
    with pytest.raises(TypeMismatch, match="A condition is BOOLEAN and this is DATE"):
        infer.condition(REFS["dt"])


def test_interval_plus_date_is_add_interval_of_a_timestamp():
    found = infer.call("add", [REFS["iv"], REFS["dt"]])
    assert found == Call("add_interval", (Cast(REFS["dt"], TIMESTAMP), REFS["iv"]), TIMESTAMP)


def test_date_plus_integer_is_add_days():
    found = infer.call("add", [REFS["dt"], infer.literal(1)])
    assert found == Call("add_days", (REFS["dt"], Literal(1, INTEGER)), DATE)


def test_in_list_converts_its_values():
    found = infer.in_list(REFS["bi"], [infer.literal(1), infer.literal("2"), infer.literal(None)])
    values = (Literal(1, BIGINT), Literal(2, BIGINT), Literal(None, BIGINT))
    assert found == InList(REFS["bi"], values)


def test_in_list_with_a_column_is_an_or():
    found = infer.in_list(REFS["i"], [infer.literal(1), REFS["i"]])
    assert (found.function, len(found.children)) == ("or", 2)


def test_an_empty_in_list_is_false_but_null_for_null():
    found = infer.in_list(REFS["i"], [])
    assert (found.conditions[0].function, found.default) == ("is_null", Literal(False, BOOLEAN))


def test_between_refuses_a_text_bound_from_a_column():
    with pytest.raises(TypeMismatch, match="DATE cannot be BETWEEN DATE AND VARCHAR"):
        infer.between(REFS["dt"], REFS["dt"], REFS["s"])


def test_negative_literals_are_literals():
    assert infer.call("neg", [infer.literal(5)]) == Literal(-5, INTEGER)
    smallest = infer.call("neg", [infer.literal(2**63)])
    assert smallest == Literal(-(2**63), BIGINT)


@pytest.mark.parametrize(
    ("digits", "expected"), [(1, "DECIMAL(20,1)"), (0, "DECIMAL(20,0)"), (-2, "DECIMAL(20,0)")]
)
def test_round_keeps_the_digits_asked_for(digits, expected):
    assert str(infer.call("round", [REFS["d20"], infer.literal(digits)]).type) == expected


def test_rounding_to_more_digits_than_there_are_changes_nothing():
    assert infer.call("round", [REFS["d4"], infer.literal(3)]) is REFS["d4"]
    assert infer.call("round", [REFS["i"]]) is REFS["i"]


def test_round_of_a_decimal_needs_constant_digits():
    with pytest.raises(InvalidQuery, match="have to be a constant"):
        infer.call("round", [REFS["d4"], REFS["i"]])


def test_casts_between_dates_and_numbers_do_not_exist():
    with pytest.raises(TypeMismatch, match="DATE cannot be cast to INTEGER"):
        infer.cast(REFS["dt"], INTEGER)


def test_cast_text_becomes_a_date_at_once():
    assert infer.cast(infer.literal("1994-01-01"), DATE) == Literal(date(1994, 1, 1), DATE)


def test_try_cast_waits_for_the_row():
    found = infer.cast(infer.literal("x"), DATE, safe=True)
    assert found == Cast(Literal("x", VARCHAR), DATE, safe=True)


def test_a_cast_integer_is_no_flexible_literal():
    found = infer.call("add", [REFS["ti"], infer.cast(infer.literal(1), BIGINT)])
    assert found.type == BIGINT


@pytest.mark.parametrize(
    "query",
    [
        "select 1::int + 1::uinteger, 1::int + 1::utinyint, 1::int * 1.5, 1 + 1::uinteger, try_cast(1 as int) + 1::uinteger",
        "select coalesce(x, 5::int), [x, 5::int], x + 5::int, x = 300::int, case when x > 1::int then 1::int else x end from (select 1::utinyint x)",
        "select substr('abc', 1::int, 2::int), round(1.25, 1::int), [1, 2][1::int], interval (1::int) day from range(3) order by 1::int limit 1::int",
        "select -((-128)::tinyint), -((-32768)::smallint), -((-2147483648)::int), -((-9223372036854775808)::bigint), -((-127)::tinyint)",
    ],
)
def test_constants_that_are_cast_have_that_type(query):
    assert_same_as_duckdb(query)


def test_unknown_functions_name_the_nearest():
    with pytest.raises(UnknownName, match=r'no function "lenght"\. Did you mean "length"'):
        infer.call("lenght", [REFS["s"]])


def test_wrong_arguments_name_the_signature():
    with pytest.raises(TypeMismatch, match=r"lower\(VARCHAR\) does not take \(INTEGER\)"):
        infer.call("lower", [REFS["i"]])


@pytest.mark.parametrize(
    "name", ["sum", "avg", "min", "median", "bit_or", "count", "stddev", "mode", "first"]
)
def test_aggregates_have_duckdbs_types(name):
    for column in ("ti", "bi", "ub", "hi", "d4", "d38", "f", "d"):
        ours = type_or_error(lambda column=column: infer.aggregate(name, [REFS[column]]))
        theirs = duckdb_type(f"{name}({column})")
        if not (name == "bit_or" and column == "hi"):  # bits of HUGEINT are refused
            assert ours == theirs, column


def test_distinct_is_dropped_where_it_changes_nothing():
    assert not infer.aggregate("max", [REFS["i"]], distinct=True).distinct
    assert infer.aggregate("sum", [REFS["i"]], distinct=True).distinct


def test_order_is_dropped_where_it_changes_nothing():
    key = SortKey(REFS["i"])
    assert infer.aggregate("sum", [REFS["i"]], order=[key]).order == ()
    assert infer.aggregate("first", [REFS["i"]], order=[key]).order == (key,)


def test_count_of_a_constant_counts_rows():
    assert infer.aggregate("count", [infer.literal(1)]).function == "count_star"
    assert infer.aggregate("count", [infer.literal(None)]).function == "count"


def test_string_agg_has_a_separator():
    assert infer.aggregate("string_agg", [REFS["i"]]).children == (
        Cast(REFS["i"], VARCHAR),
        Literal(",", VARCHAR),
    )


@pytest.mark.parametrize("fraction", [1.5, -1.5])
def test_quantiles_outside_of_the_unit_interval_are_refused(fraction):
    with pytest.raises(InvalidQuery, match=r"between -?[01] and 1"):
        infer.aggregate("quantile_cont", [REFS["i"], infer.literal(fraction)])


def test_nullif_has_the_type_of_its_first_argument():
    found = derived.function("nullif", [infer.literal(1), infer.literal(Decimal("2.5"))])
    assert isinstance(found, Case)
    assert found.type == INTEGER


@pytest.mark.parametrize(("value", "expected"), [
    (None, NULL), (True, BOOLEAN), (1, INTEGER), (2**31, BIGINT), (2**63, HUGEINT), (1.5, DOUBLE),
    (Decimal("1.50"), decimal(3, 2)),
    (Decimal("0.05"), decimal(3, 2)),
    (Decimal("1e3"), decimal(4, 0)),
    ("x", VARCHAR), (date(2020, 1, 1), DATE),
    (datetime(2020, 1, 1), TIMESTAMP),
    (np.int8(1), TINYINT), (np.int64(1), BIGINT), (np.float64(1), DOUBLE), (np.bool_(True), BOOLEAN),
    (datetime(2020, 1, 1, tzinfo=UTC), TIMESTAMPTZ),
    (np.datetime64("2020-01-01"), DATE),
    (np.datetime64("2020-01-01T10:00:00.123456000"), TIMESTAMP),
], ids=repr)  # fmt: skip
def test_python_values_have_types(value, expected):
    assert infer.literal(value).type == expected


def test_timedeltas_are_intervals():
    assert infer.literal(timedelta(days=1, seconds=2)).value == Interval(0, 1, 2_000_000)


@pytest.mark.parametrize("value", [object(), [1], {}], ids=type)
def test_other_python_values_are_refused(value):
    with pytest.raises(TypeMismatch, match="has no SQL type here"):
        infer.literal(value)


def test_integers_beyond_38_digits_are_refused():
    with pytest.raises(OutOfRange, match="more than 38 digits"):
        infer.literal(10**38)
