"""Macros with several texts, types of parameters and defaults: the text that a call's arguments choose is DuckDB's."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

TABLES = {"t": {"a": [1, 2, None, 2], "b": ["x", "y", None, "z"]}}
BY_TYPE = "create macro g(a integer) as 'int', (a varchar) as 'str', (a double) as 'dbl'"


@pytest.mark.parametrize(
    ("macro", "query"),
    [
        ("create macro f(a) as a + 1, (a, b) as a * b, (a, b, c, d := 7) as a - b - c - d", "select f(a) as x, f(a, 4) as y, f(a, 1, 2) as z from t order by all"),
        ("create macro f() as 1, (a) as [a, 2]", "select f(), f(5), f(a := 3)"),
        ("create macro f(a) as case when a > 1 then 'big' else 'small' end, (a, b) as (a, b)", "select f(2), f(b := 1, a := 2)"),
        ("create macro f(n) as table (select a from t where a < n), (n, m) as table (select a, m as k from t where a = n)", "from f(2) x join f(2, 9) y on true"),
        (BY_TYPE, "select g(1), g(2.6), g('3'), g(1::smallint), g(1::bigint), g(null), g(1.5::float), g(3000000000), g(b), g(a) from t"),
        ("create macro f(a) as 'any', (a varchar) as 'str'", "select f(1), f('3'), f(null)"),
        ("create macro f(a double) as typeof(a), (a bigint) as 'big'", "select f(1), f(1::smallint), f(1.5)"),
        ("create macro f(a integer, b varchar := 'q') as typeof(a) || b", "select f(1::tinyint), f(1, b := 'z'), f(1, 'z'), f(null)"),
        ("create macro f(a bigint) as a * 2", "select f(a) as d, sum(f(a)) over (order by a, b) as s from t order by all"),
        ("create macro f(a bigint) as sum(a) * 2", "select f(a), f(a + 1) from t"),
        ("create macro f(l bigint[], n integer := 2) as l[1:n]", "select f([a, 5, 6]) as x, f([7, a], 1) as y from t order by all"),
        ("create macro f(a decimal(10, 2) := 1.5) as a", "select f(), f(3)"),
        ("create macro add(a, b) as a * b", "select add(3, 4)"),
    ],
)  # fmt: skip
def test_the_text_that_fits_is_taken(macro, query):
    assert_same_as_duckdb(query, TABLES, setup=[macro], fuse=("always", "never"))


@pytest.mark.parametrize(
    ("macro", "call", "message"),
    [
        (BY_TYPE, "g(true)", r"which takes \(a INTEGER\) or \(a VARCHAR\) or \(a DOUBLE\)"),
        ("create macro g(a integer) as a", "g('3')", r"which takes \(a INTEGER\)"),
        ("create macro g(a integer) as a", "g(2.5)", r"which takes \(a INTEGER\)"),
        ("create macro g(a, b := 1) as a, (a) as 7", "g(1)", "Several texts"),
        ("create macro g(a) as a, (b) as b", "1", "two texts with the same parameters"),
        ("create macro g(a) as table (select a), (a, b) as b", "1", "alone"),
        ("create macro g(a in ) as a", "1", "Syntax error"),
        ("create macro g(a := ) as a", "1", "Syntax error"),
        ("create macro g(a nothing) as a", "1", "nothing"),
        ("create macro g(a) as a, (a, b)", "1", "Syntax error"),
        ("create macro g(a) as a, (b", "1", "Syntax error"),
    ],
)
def test_what_does_not_fit_is_refused(macro, call, message):
    with fuseline.connect("cpu") as connection, pytest.raises(FuselineError, match=message):
        connection.sql(f"{macro}; select {call}")


def test_each_text_is_listed():
    with fuseline.connect("cpu") as connection:
        connection.execute(BY_TYPE)
        found = connection.sql(
            "select macro_definition from duckdb_functions() where function_name = 'g' order by 1"
        )
        assert [text for (text,) in found.fetchall()] == ["'dbl'", "'int'", "'str'"]
