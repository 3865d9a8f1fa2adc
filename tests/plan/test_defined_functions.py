"""Functions that DuckDB defines by others, series of moments with a zone, and VALUES in FROM without parentheses."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import ExecutionError, FuselineError
from tests.compare import assert_same_as_duckdb, connected

DAYS = "timestamptz '2024-03-30 00:00:00+00', timestamptz '2024-04-02 00:00:00+00', interval 1 day"


@pytest.mark.parametrize(
    "query",
    [
        "select array_pop_back([1, 2]), array_pop_front([1, 2]), array_pop_back([]::int[]), array_pop_front(null::int[])",
        "select map_contains_value(m, 2), map_contains_entry(m, 1, 2), map_contains_entry(m, 1, 3) from (select map {1: 2} as m)",
        "select days_in_month(d), pg_typeof(d) from (values (date '2024-02-05'), (null)) as t(d)",
        "select fdiv(7, 2), fdiv(-7, 2), fdiv(7.5, 2), fdiv(1, 0), fdiv(null, 1)",
        "select pg_size_pretty(123456), typeof(ago(interval 1 day)), ago('1 day') < now()",
        "select assert_true(x > 0, 'low') from (values (1), (2)) as t(x)",
        "from values (1, 2), (3, 4) as t(a, b) order by a",
        "select * from (values (1)) as a(x) join values (1, 2) as b(x, y) using (x)",
        r"select regexp_extract(s, '([a-z])(?P<n>\d)?', ['l', 'n']), regexp_extract(s, '[(](b)|(.)', ['x']) from (values ('a1'), (null), ('b'), ('7')) t(s)",
        r"select regexp_extract('ab', '(A)(?:b)', ['x'], 'i'), regexp_extract('aB', 'b', 'i'), regexp_extract('a1b2', '([a-z])(\d)', 2)",
        "select make_date({'year': 2024, 'month': m, 'day': 14}), make_date(19723), make_date(2024, m, 2) from (values (11), (null)) t(m)",
        "select array_length(l, 1), array_length(l), l && [2, null] as o from (values ([1, 2]), ([]), (null)) t(l)",
        "select concat_ws(',', ['a', null], l, s, [1, 2]::int[2]), concat_ws(null, l), concat_ws('-', l) from (values ([1, null], 'x'), (null, 'y'), ([], null)) t(l, s)",
        "select current_date() = current_date, typeof(current_date())",
        f"select range({DAYS}) as a, generate_series({DAYS}) as b",
        f"select * from range({DAYS}) as t(x) order by x",
        "select range(timestamptz '2024-01-31 00:00:00+00', t, interval 2 hours) from (values (timestamptz '2024-01-31 05:00:00+00'), (null)) as s(t)",
    ],
)
def test_they_answer_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query)


@pytest.mark.parametrize(
    "query",
    [
        "select typeof(sum(k)), pg_typeof(count(*)) from t",
        "select typeof(any_value(k)) from t where k > 9",
        "select exists (select typeof(sum(k)) from t where k > 9), (select typeof(list(k)) from t)",
        "select k, (select typeof(count(*)) from t u where u.k > t.k) from t",
        "select 5 from t order by typeof(sum(k))",
        "select typeof(row_number() over ()) from t qualify typeof(row_number() over ()) = 'BIGINT'",
        "select typeof(unnest([1, 2])) from t",
        "select typeof(k) from t group by all",
        "select count(typeof(k)), max(typeof(k)) from t",
        "select constant_or_null(1, null), enum_first(max(e)) from (select 'b'::enum('a', 'b') e from t)",
    ],
)
def test_a_type_is_that_of_something_for_each_row_or_group(query: str) -> None:
    assert_same_as_duckdb(query, {"t": {"k": [1, 2, 3]}})


def test_a_type_beside_an_aggregate_is_not_one_of_rows() -> None:
    with connected({"t": {"k": [1]}}) as connection, pytest.raises(FuselineError, match="GROUP BY"):
        connection.sql("select typeof(sum(k)), k from t")


def test_offsets_that_strptime_reads() -> None:
    texts = [
        "+02",
        "-00:30",
        "+0230",
        "+02:30:15",
        "+2500",
        "+02:99",
        "Z",
        "+2",
        "02:00",
        "+02:3",
        "+023015",
        None,
    ]
    table = {"t": {"s": [t and f"2024-01-01 10:00 {t}" for t in texts]}}
    form = "'%Y-%m-%d %H:%M %z'"
    assert_same_as_duckdb(
        f"select s, try_strptime(s, {form}), strptime('2024 +01 +02', '%Y %z %z') from t", table
    )
    assert_same_as_duckdb(
        "select strptime(s, ['%Y', '%Y %z']), strptime('2024 +02', '%Y %z')::date from (values ('2024'), ('2024 +02'), ('infinity')) t(s)",
        setup=["set timezone = 'America/New_York'"],
    )


def test_series_by_hours_go_through_changes_of_clocks() -> None:
    query = "select range(timestamptz '2024-03-31 00:00:00+00', timestamptz '2024-03-31 04:00:00+00', interval 90 minutes) as r"
    assert_same_as_duckdb(query, setup=["set timezone = 'Europe/Berlin'"])


def test_what_is_asserted_is_raised() -> None:
    with pytest.raises(ExecutionError, match="Assertion: low"):
        fuseline.connect(device="cpu").sql("select assert_true(1 > 2, 'low')").fetchall()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select array_length([[1]], 2)", "takes the dimension 1 alone"),
        (
            r"select regexp_extract('1', '(\\d)', ['a', 'b'])",
            "The pattern has 1 groups, and 2 names",
        ),
        (
            "select regexp_extract('1', '(1)', [s]) from (values ('x')) t(s)",
            "list of constant texts",
        ),
    ],
)
def test_what_they_do_not_take(query: str, message: str) -> None:
    with pytest.raises(FuselineError, match=message):
        fuseline.connect(device="cpu").sql(query)
