"""Where a constant is wanted, an expression of constants is one, as in DuckDB; what is none is refused at its place or taken row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError, InvalidQuery, Unsupported
from tests.compare import assert_same_as_duckdb, connected

SETUP = [
    """create table t as select * from (values
        (1, 'ab', 1.567::decimal(9, 3), 2.71828::double, timestamp '2021-03-04 05:06:07.123456', ['b', 'a', null], 'year'),
        (2, 'c%', -7.255, 'nan', timestamp '1969-12-31 23:59:59.999999', [], 'HOURS'),
        (3, null, null, null, null, null, null), (4, '', 999999.999, '-inf', timestamp '2024-02-29', ['x'], 'isodow')
    ) v(i, s, d, f, ts, l, u)""",
    "create sequence numbers",
    "set variable digits = 1",
]
OF_ROWS = """
round(d, 1 + 1), round(d, -(1)), round(f, 3 - 1), trunc(d, cast('1' as int)), round_even(d, 1 + 1)
round(d, getvariable('dig' || 'its')), round(d, if(1 > 2, 1, 2)) is null, round(i, 1 - 2)
strftime(ts, '%Y' || '-%m'), strftime(concat('%d', '.%H'), ts), strftime(ts, coalesce(null, '%j'))
strptime('2020-' || '01', '%Y' || '-%m'), try_strptime(s, lower('%Y')), strptime('2020', ['%d' || '.', '%Y' || ''])
date_trunc('mon' || 'th', ts), date_part(lower('YEAR'), ts), date_diff('d' || 'ay', ts, now()::timestamp) is null
date_sub(concat('ho', 'ur'), ts, timestamp '2024-01-01'), datepart(['ye' || 'ar', 'month'], ts)
s like 'a!%' escape chr(33), s not like 'c!%' escape '!' || '', s ilike 'C!%' escape upper('!'), s like 'a' escape null
regexp_replace(s, 'A', 'b', 'g' || 'i'), regexp_matches(s, 'A', lower('I')), regexp_extract(s, '(a)(b)', 1 + 1)
regexp_extract(s, '(a)(b)', ['x' || 'y', 'z']), regexp_extract_all(s, '(a)(b)', 2 - 1), string_split_regex(s, 'a' || 'b')
list_aggregate([i, 2, 3], 'su' || 'm'), list_aggregate([i, 2, 3], 'string_agg', '|' || '|'), list_sort(l, 'DE' || 'SC', 'nulls ' || 'last')
{'a': i, 'b': s}[lower('B')], struct_extract({'a': i}, 'a' || ''), (row(i, s))[3 - 1], decimal_division(d, 3, 1 + 1)
json_extract('{"a": [1, 2]}', '$.a' || '[1]'), '{"a": 1, "b": 2}'::json ->> ['$.' || 'a', '$.b'], json_transform('{"a": 1}', '{"a": ' || '"INTEGER"}')
nextval('num' || 'bers') > 0, current_setting('time' || 'zone') is not null
""".strip().splitlines()
OF_GROUPS = """
string_agg(s, ',' || ' ' order by i), string_agg(s, chr(10) order by i desc), listagg(s, concat('<', '>') order by i)
quantile_cont(i, 1 - 0.5), quantile_disc(i, 1 / 2), quantile_cont(i, cast('0.25' as double)), approx_quantile(i, 0.25 + 0.25)
quantile_cont(i, [0.1 + 0.1, 0.5]), quantile_cont(i, list_transform([10, 50], lambda x: x / 100))
percentile_cont(1 - 0.25) within group (order by i), percentile_disc(0.5 / 2) within group (order by i desc)
approx_top_k(i, 1 + 1), min(i, 1 + 1), max(i, 3 - 1), arg_min(s, i, 1 + 1), arg_max(s, i, cast('2' as int)), reservoir_quantile(i, 1 - 0.5, 10 * 10)
histogram(i, [0 + 1, 2 * 2]), bitstring_agg(i, 0 + 1, 5 - 0)
""".strip().splitlines()
STATEMENTS = """
select string_agg(s, '-' || '>' order by i) over (order by i), lag(i, 2 - 1, 0 - 1) over (order by i), nth_value(i, 1 + 1) over (order by i) from t
select sum(i) over (order by i rows between length('a') preceding and 2 - 1 following) from t
select * from range(cast('3' as int)) union all select * from generate_series(10, 1 * 2, -3 + 1)
select * from range(timestamp '2020-01-01', timestamp '2020-01-01' + interval 2 day, interval 1 day)
select i from t order by i limit cast('2' as int) offset 2 - 1
select i from t order by i limit least(2, 3) offset length('a')
select i from t order by i limit '2'
select i from t order by i limit (select count(*) - 2 from t)
select i from t order by i limit (20 + 30)%
select unnest([[[1]]], max_depth := 1 + 1), unnest([[1], [2]], recursive := 1 = 1)
select columns(['i', 'd' || '']) from t
select * from (select i, s from t) pivot (count(*) for s in ('a' || 'b', 'c%'))
select * from repeat('a' || 'b', 1 + 1), repeat_row(1 + 1, num_rows := 3 - 1), query('select ' || '42'), query_table(['numbered' || ''])
values (1 + 1, 'a' || 'b'), (cast('3' as int), upper('c'))
""".strip().splitlines()
EXECUTED = """
time '10:00'
timestamptz '2020-01-01 00:00:00+00'
date '2020-01-01' + 1
1::tinyint
1.5::decimal(10, 4)
[1, 2] || [3]
{'a': upper('b')}
map {'a': 1}
uuid '00000000-0000-4000-8000-000000000001'
'a' || 'b'
timestamp '294246-01-01'::varchar
null
""".strip().splitlines()


@pytest.mark.parametrize("items", OF_ROWS)
def test_in_functions_of_rows(items: str) -> None:
    assert_same_as_duckdb(f"select i, {items} from t", setup=SETUP, fuse=("always", "never"))


@pytest.mark.parametrize("items", OF_GROUPS)
def test_in_aggregates(items: str) -> None:
    assert_same_as_duckdb(f"select {items} from t", setup=SETUP, fuse=("always", "never"))


@pytest.mark.parametrize("query", STATEMENTS)
def test_in_clauses(query: str) -> None:
    views = ["create view numbered as select 7 as n"]
    assert_same_as_duckdb(query, setup=[*SETUP, *views])


@pytest.mark.parametrize("value", EXECUTED)
def test_values_of_execute_keep_their_types(value: str) -> None:
    prepared = "prepare p as select $1 as v, typeof($1) as t"
    assert_same_as_duckdb(f"execute p({value})", setup=[prepared], ordered=True)


def test_in_options_of_files(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    copied = f"copy (select i, s from t) to '{path}' (delimiter '|' || '', header 1 = 1)"
    there = f"'{tmp_path}' || '/x.csv'"
    for query in (
        f"from read_csv({there}, delim = '|' || '', skip = 1 - 1, header = not false)",
        f"from read_csv(list_transform(['x'], lambda a: '{tmp_path}/' || a || '.csv'), delim = chr(124))",
    ):
        assert_same_as_duckdb(query, setup=[*SETUP, copied])


def test_a_parameter_is_a_constant() -> None:
    query = "select round(d, $1), strftime(ts, $2 || '-%m'), date_trunc($3, ts), s like 'a!%' escape $4 from t limit $1 + 1"
    params = [2, "%Y", "year", "!"]
    assert_same_as_duckdb(query, setup=SETUP, params=params, fuse=("always", "never"))
    assert_same_as_duckdb("select string_agg(s, $1 order by i) from t", setup=SETUP, params=["|"])


def test_a_plan_serves_no_other_value() -> None:
    """Texts of one shape, and a function of the session's state."""
    with connected() as connection:
        connection.execute("create table t as select 1.2345 as d")
        found = [
            connection.sql(f"select round(d, {n} + 1) from t").fetchone()[0] for n in (0, 1, 2)
        ]
        assert [str(value) for value in found] == ["1.2", "1.23", "1.235"]
        for digits in ("1", "2"):
            connection.execute(f"set variable n = {digits}")
            (value,) = connection.sql("select round(d, getvariable('n') + 0) from t").fetchone()
            assert len(str(value)) == 2 + int(digits)


UNITS = """
select i, date_trunc(u, ts), date_trunc(u, ts::date), date_trunc(u, ts::timestamptz), date_part(u, ts), date_part(u, ts::timestamptz) from t
select i, date_diff(u, ts, timestamp '2021-01-01'), date_diff(u, ts::date, date '2021-01-01'), datesub(u, ts, timestamp '2021-01-01') from t
select date_part(u, ts::time), date_diff(u, ts::time, time '12:00') from t where i in (2, 3)
select date_part(u, interval '1 year 3 days 5 hours'), date_trunc(u, interval '14 months 50 hours') from t where i < 4
select count(*) from t group by date_trunc(u, ts)
select i from t where date_trunc(u, ts) = timestamp '2021-01-01'
select date_part(case i when 1 then 'epoch' when 2 then 'julian' when 3 then 'timezone' else 'era' end, ts::timestamptz) from t
select date_trunc(null::varchar, ts), date_part(null::varchar, ts), date_trunc(u, null::timestamp) from t
""".strip().splitlines()


@pytest.mark.parametrize("query", UNITS)
def test_units_may_be_columns(query: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP, fuse=("always", "never"))


@pytest.mark.parametrize(
    ("query", "kind", "place"),
    [
        ("select round(d, i) from t", InvalidQuery, "i"),
        ("select strftime(ts, s) from t", InvalidQuery, "s"),
        ("select string_agg(s, u) from t", InvalidQuery, "u"),
        ("select string_agg(s, random()::varchar) from t", InvalidQuery, "random()"),
        ("select string_agg(s, (select ',')) from t", InvalidQuery, "','"),
        ("select quantile_cont(i, i / 10) from t", InvalidQuery, "i / 10"),
        ("select getvariable(s) from t", Unsupported, "s"),
        ("select * from read_csv(['a', t.s]), t", FuselineError, "t.s"),
        ("select date_trunc('mon' || 'the', ts) from t", FuselineError, "'mon' || 'the'"),
        ("select strftime(ts, '%' || 'k') from t", FuselineError, "'%' || 'k'"),
        ("select i from t limit 1 - 2", InvalidQuery, "1 - 2"),
        ("select quantile_cont(i, 1 + 1) from t", InvalidQuery, "1 + 1"),
    ],
)
def test_what_is_no_constant_is_refused(query: str, kind: type[FuselineError], place: str) -> None:
    with connected() as connection:
        for statement in SETUP:
            connection.execute(statement)
        with pytest.raises(kind) as caught:
            connection.sql(query).fetchall()
        span = caught.value.span
        assert span is not None
        assert place in query[span.start : span.end + 2]


def test_a_unit_that_is_none_raises_where_its_row_is_read() -> None:
    query = "select date_trunc(u, ts) from (values ('parsec', timestamp '2020-01-01')) v(u, ts)"
    with connected() as connection, pytest.raises(FuselineError, match='no unit "parsec"'):
        connection.sql(query).fetchall()
