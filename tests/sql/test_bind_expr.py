from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import (
    ConversionError,
    FuselineError,
    InvalidQuery,
    TypeMismatch,
    UnknownName,
    Unsupported,
    caret,
)
from fuseline.plan.expr import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Exists,
    InList,
    Interval,
    Literal,
    Quantified,
    ScalarSubquery,
)
from fuseline.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, VARCHAR, decimal
from tests.plan.columns import COLUMNS, connection, duckdb_type
from tests.sql.expressions import aggregate, bind, type_of

EXPRESSIONS = (Path(__file__).parent / "typed_expressions.txt").read_text().splitlines()


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_types_are_duckdbs(sql):
    assert type_of(sql) == duckdb_type(sql)


CONSTANTS = """
1 | 1000000000000 | 10000000000000000000 | 0.05 | .5 | 1. | 1e3 | 1_000 | -0.05 | - -5
-9223372036854775808 | 12345678901234567890.5 | 12345678901234567890123456789012345678.5
'it''s' | $$a'b$$ | e'a\\tb' | true | date '1994-01-01' | date '2020-1-5' | date '2020/01/02'
timestamp '2020-01-01 10:00' | timestamp '2020-01-01T10:00:00.5Z' | timestamp '2020-01-02 24:00:00'
timestamp '2020-01-01 10:00:00.123456789' | '2020-01-01 10:00:00'::date | cast('2020-01-02' as timestamp)
interval '3' month | interval 3 day | interval '1 day 2 hours' | interval '01:30:00' | interval 2.7 second
interval '1 day 01:30:00' | interval '1 month 2 days 3 hours 4 minutes 5.6 seconds' | interval '1.5' day
interval '1.5 days' | interval '-3.7' month | interval '1.5 months' | interval '2 weeks 3 days ago' | interval '1 day ago' | interval '2 months ago'
interval '1' century | interval (2.5) day | interval '5.5' milliseconds | interval '5' | pi()
"""


@pytest.mark.parametrize(
    "sql", [c.strip() for line in CONSTANTS.split("\n") for c in line.split(" | ") if c.strip()]
)
def test_constants_have_duckdbs_values(sql):
    bound = bind(sql)
    assert isinstance(bound, Literal)
    assert str(bound.type) == duckdb_type(sql)
    theirs = connection().sql(f"SELECT {sql}").to_arrow_table().column(0)[0].as_py()
    value = bound.value
    if isinstance(value, Interval):
        value = pa.MonthDayNano([value.months, value.days, value.micros * 1000])
    assert value == theirs


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i + 1", Call("add", (ColumnRef(COLUMNS["i"]), Literal(1, INTEGER)), INTEGER)),
        ("i IS NOT NULL", Call("not", (bind("i IS NULL"),), BOOLEAN)),
        ("b IS FALSE", Call("is_not_distinct", (bind("b"), Literal(False, BOOLEAN)), BOOLEAN)),
        ("s NOT LIKE 'a'", Call("not", (bind("s LIKE 'a'"),), BOOLEAN)),
        ("i IN (1, 2)", InList(bind("i"), (Literal(1, INTEGER), Literal(2, INTEGER)))),
        ("i NOT IN (1)", Call("not", (bind("i IN (1)"),), BOOLEAN)),
        ("i BETWEEN 1 AND 2", bind("i >= 1 AND i <= 2")),
        (
            "(i, s) = (1, 'a')",
            bind("i IS NOT DISTINCT FROM 1 AND s IS NOT DISTINCT FROM 'a'"),
        ),
        ("(i, s) IN ((1, 'a'), (2, 'b'))", bind("(i, s) = (1, 'a') OR (i, s) = (2, 'b')")),
        ("(i, s) >= (1, 'a')", bind("NOT (i, s) < (1, 'a')")),
        ("date_part('dow', dt)", bind("dayofweek(dt)")),
        ("EXTRACT(year FROM dt)", bind("year(dt)")),
        ("substring(s FROM 2 FOR 3)", bind("substr(s, 2, 3)")),
        ("position('a' IN s)", bind("strpos(s, 'a')")),
        ("s ~* 'a'", bind("regexp_matches(s, 'a', 'i')")),
        ("s SIMILAR TO 'a'", bind("regexp_full_match(s, 'a')")),
        ("ltrim(s, 'x')", bind("trim(LEADING 'x' FROM s)")),
        ("date_trunc('months', ts)", bind("date_trunc('month', ts)")),
        ("log2(d)", Call("log2", (bind("d"),), DOUBLE)),
        ("@ i", bind("abs(i)")),
        ("ifnull(i, 1)", bind("coalesce(i, 1)")),
        ("case i when 1 then s end", bind("case when i = 1 then s else null end")),
        ("interval (i) day", bind("to_days(i)")),
        ("i IS UNKNOWN", bind("i IS NULL")),
    ],
    ids=str,
)
def test_expressions_become_the_calls_of_the_table(sql, expected):
    assert bind(sql) == expected


def test_concatenation_is_one_call():
    assert bind("s || i || 'x'") == Call(
        "concat", (bind("s"), Cast(bind("i"), VARCHAR), Literal("x", VARCHAR)), VARCHAR
    )


def test_concat_counts_null_as_empty():
    assert bind("concat(s, 'x')") == bind("coalesce(s, '') || 'x'")


def test_nullif_is_a_case():
    assert bind("nullif(i, 1)") == Case(
        (bind("i = 1"),), (Literal(None, INTEGER),), bind("i"), INTEGER
    )


def test_date_diff_takes_its_unit_first_and_then_start_and_end():
    found = bind("date_diff('day', ts, timestamp '2020-01-01')")
    assert found.children == (
        Literal("day", VARCHAR),
        bind("ts"),
        bind("timestamp '2020-01-01'"),
    )


def test_escape_is_the_third_argument_of_like():
    assert [c.value for c in bind("s LIKE 'a!%' ESCAPE '!'").children[1:]] == ["a!%", "!"]


def test_long_conditions_are_flat():
    found = bind(" OR ".join(f"i = {n}" for n in range(3000)))
    assert len(found.children) == 3000


def test_scalar_subquery():
    found = bind("(SELECT max(i) FROM t AS u)")
    assert isinstance(found, ScalarSubquery)
    assert found.type == INTEGER


def test_exists():
    assert isinstance(bind("EXISTS (FROM t AS u WHERE u.i = t.i)"), Exists)


def test_in_subquery_is_equal_to_any():
    found = bind("d15 IN (SELECT u.i FROM t AS u)")
    assert isinstance(found, Quantified)
    assert (found.op, found.quantifier) == ("eq", "any")
    assert [c.type for c in found.plan.columns] == [decimal(15, 2)]


def test_rows_of_values_in_a_subquery():
    found = bind("(i, s) IN (SELECT u.bi, u.s FROM t AS u)")
    assert [o.type for o in found.operands] == [BIGINT, VARCHAR]


def test_all_of_a_subquery():
    found = bind("i > ALL (SELECT u.i FROM t AS u)")
    assert (found.op, found.quantifier) == ("gt", "all")


def test_aggregates_keep_their_clauses():
    found = aggregate("string_agg(DISTINCT s, ';' ORDER BY s DESC NULLS FIRST) FILTER (WHERE b)")
    assert isinstance(found, AggregateCall)
    assert found.distinct
    assert found.filter == bind("b")
    assert [(k.descending, k.nulls_first) for k in found.order] == [(True, True)]
    assert found.args == (bind("s"), Literal(";", VARCHAR))


def test_descending_percentiles_count_from_the_other_end():
    found = aggregate("percentile_cont(0.25) WITHIN GROUP (ORDER BY d DESC)")
    assert found.args == (bind("d"), Literal(0.75, DOUBLE))


@pytest.mark.parametrize(("value", "expected"), [
    (1, Literal(1, INTEGER)),
    (Decimal("1.50"), Literal(Decimal("1.50"), decimal(3, 2))),
    ("x", Literal("x", VARCHAR)),
    (date(2020, 1, 1), Literal(date(2020, 1, 1), DATE)),
    (timedelta(1), Literal(Interval(0, 1, 0), INTERVAL)),
    (np.int64(1), Literal(1, BIGINT)),
], ids=repr)  # fmt: skip
def test_parameters_are_constants_of_their_python_type(value, expected):
    assert bind("?", [value]) == bind("$1", [value]) == bind("$x", {"x": value}) == expected


def test_a_text_parameter_is_a_date_beside_one():
    assert bind("dt < ?", ["1994-01-01"]).children[1] == Literal(date(1994, 1, 1), DATE)


def test_a_unit_may_be_a_parameter():
    assert bind("date_trunc(?, ts)", ["month"]) == bind("date_trunc('month', ts)")


ERRORS = [
    ("i + dt + ts", TypeMismatch, "does not take", "i + dt + ts"),
    ("lower(i)", TypeMismatch, "lower(VARCHAR) does not take (INTEGER)", "lower(i)"),
    ("i < s", TypeMismatch, "INTEGER and VARCHAR cannot be compared", "i < s"),
    ("coalesce(i, s)", TypeMismatch, "INTEGER and VARCHAR do not mix", "coalesce(i, s)"),
    ("CASE WHEN dt THEN 1 END", TypeMismatch, "A condition is BOOLEAN and this is DATE", "dt"),
    ("CAST(dt AS INTEGER)", TypeMismatch, "DATE cannot be cast to INTEGER", "dt"),
    ("CAST(1 AS DECIMAL(40, 2))", TypeMismatch, "DECIMAL(40,2) does not exist", "40, 2"),
    ("CAST(1 AS nonsense)", UnknownName, 'There is no type "nonsense"', None),
    ("CAST(1 AS UHUGEINT)", Unsupported, "The type UHUGEINT is not supported", None),
    ("CAST('x' AS INTEGER)", ConversionError, "'x' cannot be read as INTEGER", "'x'"),
    ("date '2020-02-30'", ConversionError, "cannot be read as DATE", "'2020-02-30'"),
    ("interval '1' fortnight", UnknownName, "There is no interval unit", None),
    ("interval 'x' day", ConversionError, "'x' cannot be read as INTERVAL", "'x'"),
    ("lenght(s)", UnknownName, 'no function "lenght". Did you mean "length"', "lenght(s)"),
    ("soundex(s)", UnknownName, 'no function "soundex"', "soundex(s)"),
    ("lower(DISTINCT s)", InvalidQuery, "belong into aggregates", None),
    ("yearweek(dt, 1)", TypeMismatch, "yearweek(date) does not take 2", None),
    ("date_part('yaer', dt)", UnknownName, 'no part "yaer". Did you mean "year"', "'yaer'"),
    ("date_trunc('fortnight', dt)", UnknownName, 'no unit "fortnight"', None),
    ("strftime(ts, s)", InvalidQuery, "has to be a constant", "s"),
    ("sum(sum(i))", InvalidQuery, "not allowed inside of one another", "sum(i)"),
    ("sum(*)", InvalidQuery, "* can stand in count(*) alone", "sum(*)"),
    ("lower(*)", InvalidQuery, "* stands for columns", None),
    ("sum(s)", TypeMismatch, "sum(number) does not take (VARCHAR)", "sum(s)"),
    ("lower(s) FILTER (WHERE b)", InvalidQuery, "belong to aggregates", None),
    ("string_agg(s, s)", InvalidQuery, "separator of string_agg has to be a constant", "s"),
    ("quantile_cont(i, 2)", InvalidQuery, "between 0 and 1", "2"),
    ("i[1]", TypeMismatch, "has no elements", "i"),
    ("i = ANY (2)", TypeMismatch, "unnest() takes a list", None),
    ("ANY (SELECT 1) = i", Unsupported, "ANY without a comparison", None),
    ("s LIKE ANY ('a', 'b')", Unsupported, "LIKE ANY", None),
    ("(i, s) = 1", TypeMismatch, "TUPLE(INTEGER, VARCHAR) and INTEGER cannot be compared", None),
    ("(i, s) = (1, 2, 3)", TypeMismatch, "2 values cannot be compared with one of 3", None),
    ("i IN (SELECT 1, 2)", InvalidQuery, "has 2 columns and 1 is expected", None),
    ("(SELECT 1, 2)", InvalidQuery, "has 2 columns and 1 is expected", None),
    ("i IN (SELECT s FROM t)", TypeMismatch, "INTEGER cannot be looked up in a subquery", "i"),
    ("s LIKE 'a' ESCAPE 'ab'", InvalidQuery, "ESCAPE takes one character", "'ab'"),
    ("current_time", Unsupported, "TIME WITH TIME ZONE", None),
]


@pytest.mark.parametrize(("sql", "kind", "message", "place"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors_say_what_is_wrong_and_where(sql, kind, message, place):
    with pytest.raises(kind) as error:
        bind(sql)
    assert message in error.value.message
    if place is not None:
        text = f"SELECT {sql} AS result FROM t"
        assert error.value.span is not None
        found = text[error.value.span.start : error.value.span.end]
        assert found == place, caret(text, error.value.span)


def test_aggregates_are_refused_where_they_have_no_group():
    with pytest.raises(InvalidQuery, match="not allowed in WHERE"):
        bind("(SELECT 1 FROM t AS u WHERE sum(u.i) > 1)")


@pytest.mark.parametrize(
    "value", [{1}, [{1}], {"a": range(2)}, datetime.now().astimezone().timetz()], ids=type
)
def test_parameters_without_a_type_are_refused(value):
    with pytest.raises(FuselineError, match="has no SQL type here"):
        bind("?", [value])
