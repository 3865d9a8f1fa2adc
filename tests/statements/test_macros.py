"""Macros with several texts, types of parameters and defaults: the text that a call's arguments choose is DuckDB's."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import FuselineError, UnknownColumn
from tests.compare import assert_same_as_duckdb
from tests.statements.both_engines import assert_same_steps

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


ROWS = {
    "l": {"k": [1, 2, None, 2, 5]},
    "r": {"k": [2, None, 3, 2, 5], "b": ["p", "q", "r", "s", None]},
}


@pytest.mark.by_day
@pytest.mark.parametrize(
    "body",
    [
        "(select max(b) from r where k = x)",
        "(select max(b) from r where r.k = x and exists (select 1 from r q where q.k < x))",
        "exists (select 1 from r where k = x)",
        "x in (select k from r where k < x + 1)",
        "(select x from r limit 1)",
        "(select max(k) + x from r)",
        "(with w as (select 4 as k) select k + x from w)",
        "(select max(z.k) from (select k + x as k from r) z where z.k > x)",
        "list_transform([1, 2], lambda k: k + x)",
        "list_filter([1, 2, 5], lambda k: k = x)",
        "[k for k in [1, 2, 5, x] if k = x]",
        "list_reduce([1, 2], lambda k, y: k + y + x)",
        "list_transform([1, 2], lambda x: x + 1)",
        "[x for x in [x, 2]]",
        "{'k': x, 'x': x}.x",
    ],
)
@pytest.mark.parametrize(
    "argument",
    ["k", "l.k + 1", "(select max(k) from r where k < l.k)", "list_sum([k for k in [l.k, 1]])"],
)
def test_an_argument_means_what_it_does_at_the_call(body, argument):
    if "select" in argument and "lambda k" in body.replace("for k", "lambda k"):
        argument = "l.k"  # lambdas take no subqueries, in DuckDB neither
    setup = [f"create macro m(x) as {body}"]
    assert_same_as_duckdb(f"select k, m({argument}) as m from l order by all", ROWS, setup=setup)


@pytest.mark.parametrize(
    ("macro", "query"),
    [
        ("m(s) as s.a + s.b.c", "select m({'a': k, 'b': {'c': 2}}) as x from l order by all"),
        ("m(r) as (select max(r.k) from r)", "select m(7)"),
        ("m(t) as table select k, t as y from r where k = t", "select * from m(2) order by all"),
        ("nvl(a, b) as coalesce(a, b)", "select nvl(k, 0), NVL(1, 2) from l order by all"),
        ("to_char(d, f) as strftime(d, f)", "select to_char(date '2024-01-31', '%Y') as y"),
        (
            "iif(c, a, b) as case when c then a else b end",
            "select iif(k > 1, 'a', 'b') from l order by all",
        ),
        (
            "initcap(s) as upper(s[1]) || lower(s[2:])",
            "select initcap(b), b.initcap() from r order by all",
        ),
        (
            "safe_divide(a, b) as if(b = 0, null, a / b)",
            "select safe_divide(k, 0), safe_divide(k, 2) from l order by all",
        ),
        ("agg(a) as sum(a) / count(*)", "select agg(k) from l"),
        ("space(n) as repeat(' ', n)", "select space(2) || 'x'"),
    ],
)
def test_names_within_a_macro(macro, query):
    assert_same_as_duckdb(query, ROWS, setup=[f"create macro {macro}"])


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


def test_macros_of_schemas_and_functions_behind_main():
    assert_same_steps(
        [
            "create table t as select * from (values (1, 'x'), (2, 'y'), (null, null)) v(a, b)",
            "create schema s",
            "create macro s.f(x) as x + 1, (x, y) as x * y",
            "select s.f(1), s.f(2, 3) as p, S.F(a) as q from t",
            "create macro f(x) as -x",
            "select f(1) as here, s.f(1) as there, main.f(1) as own, memory.main.f(1) as whole",
            'create macro s."of rows"(n) as table select * from range(n)',
            'from s."of rows"(2)',
            "from main.range(2)",
            "from system.main.range(1, 3)",
            "create macro if not exists s.f(x) as 7",
            "create or replace macro s.f(x) as x + 2",
            "select sum(s.f(a)), s.f(max(a)) from t",
            "select main.abs(-1), system.main.abs(-2), Main.Upper(b) as u from t",
            "select main.max(a), main.count(*), main.sum(distinct a) filter (a > 0) as s from t",
            "select main.row_number() over (order by a) as n, a.abs() as m from t",
            'select "max"(a), "Abs"(-1), "list_transform"([1], lambda x: x + 1) from t',
            "select 'main'.upper() as u, 'main'.max() as m, {'main': 'a'}.main.upper() as f",
            'select "main".abs(-1), "MAIN"."Abs"(-2)',
            "select t.system.main.max(1) from t",
            "select main.main.abs(-1)",
            "from nowhere.range(3)",
            "select s.nothing(1)",
            "select nowhere.f(1)",
            "from s.nothing(1)",
            "create macro nowhere.f(x) as x",
            "drop macro s.nothing",
            "drop macro if exists s.nothing",
            "drop macro s.f",
            "select s.f(1)",
            "select f(1)",
            "create table m as select 'x' as main, 3 as s",
            "select m.main.upper(), m.s.abs(), s.abs() as t from m",
        ],
    )


UNKNOWN = [
    "m() as nosuch + 1",
    "m(a) as a + nosuch",
    "m(x) as list_transform(x, lambda y: y + q)",
    "m(a) as a + 1, (a, b) as a + bb",
    "m() as table select nosuch from t",
    "m(x) as t.a + x",
]
KNOWN = [
    "m(x) as list_transform(x, lambda y: y + x[1])",
    "m(x) as [y + x for y in [1, 2]]",
    "m(x) as struct_pack(a := x, b := x.c)",
    "m(x) as (select a + x + later from t)",
    "m() as user",
    "m(x) as table select later from (select unnest(x, recursive := true))",
    "m(x, y := 1) as sum(x) over (partition by x order by y) + extract(year from x)",
    "m() as table select * from later",
]


@pytest.mark.parametrize("macro", UNKNOWN)
def test_a_macro_of_unknown_columns_is_refused(macro: str) -> None:
    with fuseline.connect("cpu") as connection:
        connection.sql("create table t (a integer)")
        with pytest.raises(UnknownColumn) as refused:
            connection.sql(f"create macro {macro}")
        assert refused.value.span is not None


@pytest.mark.parametrize("macro", KNOWN)
def test_what_a_call_may_know_is_not(macro: str) -> None:
    with fuseline.connect("cpu") as connection:
        connection.sql("create table t (a integer)")
        connection.sql(f"create macro {macro}")
