"""Columns without an alias have DuckDB's names."""

from __future__ import annotations

import duckdb
import pytest

import fuseline
from fuseline.errors import FuselineError, ParseError
from fuseline.plan.derived import DERIVED
from fuseline.plan.functions import AGGREGATE, SCALAR
from fuseline.sql.names import result_name
from tests.sql.written_expressions import Writer

TABLE = """create table t(a int, b varchar, d double, e decimal(10, 2), m timestamp, dt date,
    "distance" int, "My Col" int, g boolean)"""
ROW = """insert into t values (1, 'x', 1.5, 2.25, timestamp '2024-01-31 01:02:03', date '2024-02-29', 3, 4, true)"""
# What a name is made of that is not in random expressions.
WRITTEN = (
    "a not in (((select max(a) from t)) / 2)", "a in (((select 2)) + 1, 4)", "~5", "m + interval '1 day 2 hours'",
    "string_agg(b, '|' order by b)", "extract(epoch from m)", 'sum("distance")', "max(null::decimal)", "(a)",
    '("My Col")', "+a", "-(-5)", "- - a", "date '2024-01-01'::varchar", "decimal(5, 1) '1.5'", "a::dec(5,1)",
    "a::character varying", "a::Text",
    "(select x from (select a as x from t) s limit 1)",
    "(select t.a from t left join t u using (a) limit 1)",
    "(select t.a from t join t u on t.a = u.a join t w on w.a = u.a limit 1)",
    "(select 1 union select 2 union select 3 limit 1)",
    "((select 1) union all (select 2) order by 1 desc limit 1)",
    "(with q as (select 1 z), r(y) as (select 2) select y from r)",
    "(from t select a limit 1)", "(select sum(range) from range(3))",
    "(select count(*) from t where a in (1, 2) group by b having count(*) > 0 limit 1)",
    "(select distinct a from t order by a nulls first limit 1 offset 0)",
    "a in (values (1), (2))", "exists (from t)", "overlay('abc' placing 'x' from 2 for 1)", "b.upper()",
)  # fmt: skip
CI_SEED, CI_EXPRESSIONS = 12, 600


@pytest.fixture(scope="module")
def pair():
    with duckdb.connect() as theirs, fuseline.connect(device="cpu") as ours:
        for connection in (theirs, ours):
            connection.execute(TABLE)
            connection.execute(ROW)
        yield theirs, ours


def expected_name(theirs, expression: str) -> str | None:
    try:
        return str(theirs.sql(f"select {expression} from t").columns[0])
    except duckdb.Error:
        return None


def check(pair, expression: str) -> bool:
    """Compare the name of one expression; False for one that DuckDB refuses."""
    theirs, ours = pair
    expected = expected_name(theirs, expression)
    if expected is None:
        return False
    try:
        assert ours.sql(f"select {expression} from t").columns == [expected], expression
    except FuselineError:
        # Not every function and type is here; its name is right all the same.
        assert result_name(expression) == expected, expression
    return True


@pytest.mark.parametrize("expression", WRITTEN)
def test_name_is_duckdbs(pair, expression):
    assert check(pair, expression)


def checked(pair, seed: int, count: int) -> int:
    writer = Writer(seed)
    return sum(check(pair, writer.expression()) for _ in range(count))


def test_names_of_random_expressions_are_duckdbs(pair):
    assert checked(pair, CI_SEED, CI_EXPRESSIONS) > CI_EXPRESSIONS * 0.8


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 110))
def test_names_of_many_random_expressions_are_duckdbs(pair, seed):
    assert checked(pair, seed, 5000) > 4000


def test_names_of_all_functions_are_duckdbs(pair):
    """Each function by each of its names, with arguments that DuckDB takes."""
    lists = (
        "", "a", "B", "m", "2,a", "B, 'x'", "'Year',m", "m,'x'", "B, 'x',1", "a,2,1", "g, a, a",
    )  # fmt: skip
    named = set()
    for name in {*SCALAR, *AGGREGATE, *DERIVED}:
        for arguments in lists:
            if check(pair, f"{name.upper()}({arguments})"):
                named.add(name)
    assert len(named) > 130


def test_question_marks_count_through_the_query(pair):
    query, values = "select ? + 1, abs(?) + ?", [1, 2, 3]
    theirs, ours = pair
    assert ours.sql(query, values).columns == theirs.sql(query, params=values).columns


def test_names_in_views_and_tables_are_duckdbs(pair):
    for connection in pair:
        connection.execute("create or replace view v as select ~a, sum(d)+1 from t group by a")
    theirs, ours = pair
    query = "select * from v"
    assert ours.sql(query).columns == theirs.sql(query).columns


@pytest.mark.parametrize("chained", [
    "1 < 2 < 3", "1 = 1 = true", "1 < 2 = true",
    "true is distinct from true is distinct from 1",
    "1 is 2",
])  # fmt: skip
def test_chained_comparisons_are_refused(pair, chained):
    theirs, ours = pair
    with pytest.raises(ParseError):
        ours.sql(f"select {chained}")
    with pytest.raises(duckdb.Error):
        theirs.sql(f"select {chained}")


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("select $ 1, $  1 + 2", [1]),
        ("select $ x", {"x": 1}),
        ("select $1,$2", [1, 2]),
        ("select ($1)+$2, ($2)-$1,1e2-$1", [1, 2]),
        ("select $a,$b,$a,$c", {"a": 1, "b": 2, "c": 3}),
        ("select $1::int,$2||$a$,$1,$2,$a$", [1, "x"]),
        ("select '$1,$2', 1 as a$b,2 as \"$c,$d\" -- $1,$2", None),
    ],
)
def test_parameters_side_by_side_and_with_a_blank_behind_the_dollar(
    pair, query: str, values: object
) -> None:
    theirs, ours = pair
    expected, found = theirs.execute(query, values), ours.sql(query, values)
    assert found.columns == [column[0] for column in expected.description]
    assert found.fetchall() == expected.fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "select sum(a) over w from t window w as (order by a rows between 1 preceding and 1 following)",
        'select sum(a) over (w rows 1 preceding), 1 + count(*) over "W" from t window w as (partition by b order by a desc)',
        "select max(a) over v, min(a) over w from t window w as (partition by b || 'x'), v as (w order by a, d nulls first)",
        "select sum(sum(a)) over w, count(*) over () from t group by b window w as ()",
        'select sum(a) over "My W", over.a from t as "over" window "My W" as (order by (a), g)',
    ],
)
def test_a_window_with_a_name_is_shown_as_it_is_defined(pair, query) -> None:
    theirs, ours = pair
    assert ours.sql(query).columns == theirs.sql(query).columns


def test_another_definition_of_a_window_is_another_name() -> None:
    with fuseline.connect(device="cpu") as ours:
        for start in (1, 2, 1):
            text = f"select sum(i) over w from range(3) r(i) window w as (partition by i + {start})"
            assert ours.sql(text).columns == [f"sum(i) OVER (PARTITION BY (i + {start}))"]
