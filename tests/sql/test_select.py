"""SELECT lists, FROM items, WHERE, VALUES, and the names of columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fuseline.errors import OutOfRange, UnknownColumn
from tests.compare import assert_same_as_duckdb, connected
from tests.sql.tables import TABLES, T

LISTS = [
    "select s.upper(), t.s.upper().length(), (x + 1).power(2), 'a'.concat('b', s) from t",
    "select x.sum(), 'abc'.left(2).right(1) from t", "select #1, #2 + 1 from t",
    "select * from t", "from t", "from t select y, x where x > 1", "table t", "select t.* from t, u",
    'select T.X, Y as "Big" from t', "select main.t.x from main.t", "select * exclude (x, D) from t",
    "select * exclude s from t",
    "select * replace (x + 1 as x, upper(s) as s) from t",
    "select * rename (x as xx, s as name) from t",
    "select t.* exclude (s), u.* exclude (x) replace (-z as z) from t join u on t.x = u.x",
    "select x, x, x + 1 as x from t",
    "select x as a, a + 1 as b, b * 2 as c from t",
    "select 1, 'a', null, true, 1.50, 1e3", "select 1 where false", 'select x as "a b", "a b" + 1 from t',
]  # fmt: skip
WHERES = [
    "select x from t where x > 1 and y < 30", "select x from t where x > 1 or y > 10",
    "select x from t where not (x > 1)", "select x from t where x is null", "select x + 1 as k from t where k > 2",
    "select x from t where x", "select x from t where null", "select x from t where true",
    "select x from empty where x > 1", "select x from t where x in (1, 4, null)",
    "select x from t where x not in (1, 4)", "select x from t where x not in (1, null)",
    "select x from t where x between 1 and 2 and s like 'b%'",
]  # fmt: skip
SOURCES = [
    "select * from (select x as a, y from t) q where a > 1",
    "select * from (select x, y from t) q(a)", "select a, b from (select 1, 2) as q(a, b)",
    "select * from (select 1 as a, 2 as a, 3 as A)",
    "select q.x from (from t) q", "values (1, 'a'), (2.5, null)", "values (1), ('2')",
    "select * from (values (1, 2), (3, null)) v(a, b)",
    "select * from (values (1, 2)) v(a)", "select * from (values (1, 2))",
    "select b, a from (values (date '2024-01-01', 'x')) v(a, b)",
    "select * from range(5)", "select range + 1 from range(2, 4)", "select i from range(1, 10, 3) r(i)",
    "select g from generate_series(3, 1, -1) g", "select * from generate_series(1, 3)",
    "select a, range, a.range from range(3) a", "select * from range(5, 1)", "select * from range(null)",
    "select * from range(date '2024-01-31', date '2024-06-30', interval 1 month)", "select d.range from range(timestamp '2024-01-01', null, interval 1 day) d",
    "select g from generate_series(timestamp '2024-03-01', timestamp '2024-01-01', interval '-1 month') g",
    "select x, i from t, range(x, y) r(i)", "select x, k from t left join lateral (select sum(i) as k from generate_series(1, t.x) g(i)) on true",
]  # fmt: skip
NAMES = [
    "select x+1, -x, not x=1, x is null, x is not null, x between 1 and 2, x in (1,2) from t",
    "select x not in (1, 2), s like 'a%', s not like 'a', s ilike 'a', x <> 1, x != 1 from t",
    "select cast(x as bigint), x::double, try_cast(s as int), coalesce(x,1), nullif(x,1) from t",
    "select case when x=1 then 2 else 3 end, case x when 1 then 2 end from t",
    "select extract(year from d), year(d), date_part('month', d), date_trunc('month', d) from t",
    "select count(*), count(distinct x), sum(x) filter (where x>1), max(x), avg(y), count() from t",
    "select substring(s,1,2), substr(s,1), left(s,1), upper(s), round(1.25,1), x%2, x//2 from t",
    "select x>=1 and y>2 and x<9, x=1 or y=2 or s='a', (x+y)*2, x+y*2, t.x+1, s||'b' from t",
    "select 1=1, 'it''s', 1 is distinct from 2, -1, -1.5, date '2024-01-01', (x) from t",
    "select d + interval 1 day, d - interval '1' month, mod(x, 2), trim(s), concat(s, 1) from t",
    "select interval '1 day' + d, interval '1 month' / 7, interval '2 days' * x from t",
    "select (select 1), exists(select 1), x in (select 1), x > all(select 1) from t",
    "select concat('x', null), concat(null, s, NULL), concat_ws(',', s, null, true), upper(null) from t",
    "select coalesce(null, false, x > 1), if(x > 1, null, s), date_trunc('month', null::date) from t",
    "select sum(null), count(distinct null), string_agg(null, ','), count(true) from t",
    "select null::varchar, cast(null as VARCHAR) from t",
    "select date '2024-01-01'::varchar, x::bigint::double, '1'::int::double, (x + 1)::decimal(4, 1)::varchar from t",
    "select null::int, try_cast(null as integer), concat(null::int, s), true::int from t",
    "select s ~ 'b', s !~ 'b', not s ~ s, ('a' || s) ~ ('a'), regexp_matches(s, 'b') from t",
    "select s similar to 'b.*', s not similar to 'b' from t",
    "select strftime('%Y', d), strftime(d, '%Y'), strftime(d, null), fmod(x, 2) from t",
]


@pytest.mark.parametrize("query", [*LISTS, *WHERES, *SOURCES])
def test_select(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize("query", NAMES)
def test_columns_without_alias_have_duckdbs_names(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize(("query", "params"), [
    ("select x + ? as a, ? as b from t where x >= ?", [10, "w", 2]),
    ("select $2 as a, $1 as b, $2 as c", [1, "two"]),
    ("select x from t where x = $key limit $n", {"key": 2, "n": 1}),
    ("select ?::bigint as a, coalesce(?, 5) as b", [3, None]),
    ("select ?, ?::int, x + ? from t", [1, 2, 3]),
    ("select * from t limit ? offset ?", [2, 1]),
    ("select * from range(9) limit ? offset ?", [2.5, 0.5]),
    ("with unread as (select ?::int as a) select ?::int as b", [1, 2]),
    ("select ? as a, ? as b, ? as c, ? as d, ? as e", [[1, None], [1, 2.5], [1, "x"], [[], [2]], []]),
    ("select $1 as a, $2 as b", [{"a": [1], "b": {"c": "x"}}, {"key": ["k"], "value": [7]}]),
    ("select $m['k'] as a, $s.b as b, x from t where x in (select unnest($l))", {"m": {"key": ["k"], "value": [7]}, "s": {"b": 1}, "l": [1, 2]}),
])  # fmt: skip
def test_parameters(query: str, params: object, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend, params=params, ordered=False)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 2**63])
@pytest.mark.parametrize("query", ["from t limit ?", "from t offset ?", "from range(?)"])
def test_numbers_that_are_no_count(query: str, value: float) -> None:
    with connected(TABLES) as connection, pytest.raises(OutOfRange, match="must be a BIGINT"):
        connection.sql(query, [value])


@pytest.mark.parametrize("source", [
    "'{folder}/a.parquet'", '"{folder}/a.parquet"', "'{folder}/*.parquet' w", "read_parquet('{folder}/a.parquet')",
    "read_parquet('{folder}/*.parquet')",
    "read_parquet(['{folder}/a.parquet', '{folder}/b.parquet'])",
    "parquet_scan('{folder}/a.parquet') as p(one, two)",
])  # fmt: skip
def test_files(source: str, tmp_path: Path, backend: str) -> None:
    for name in ("a", "b"):
        pq.write_table(T, tmp_path / f"{name}.parquet")
    query = f"select * from {source.format(folder=tmp_path)}"
    assert_same_as_duckdb(query, backend=backend)


def test_a_file_is_called_by_its_stem(tmp_path: Path, backend: str) -> None:
    pq.write_table(T, tmp_path / "sales.parquet")
    query = f"select sales.x, count(*) from '{tmp_path}/sales.parquet' group by sales.x"
    assert_same_as_duckdb(query, backend=backend)


def test_hive_partitions_become_columns(tmp_path: Path, backend: str) -> None:
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        pq.write_table(T, folder / "part.parquet")
    files = f"read_parquet('{tmp_path}/*/*.parquet', hive_partitioning = true)"
    query = f"select year, sum(x) from {files} where year > 2023 group by year"
    assert_same_as_duckdb(query, backend=backend)


ALIASES = [
    "select x + 1 as b, b * 2 as c, 1 as x, x as d from t",
    "select x as y, y + 1 as z from t where z > 1",
    "select x as a, x + 5 as a, a as b from t",
    "select 1 as c, (select c) as d from t",
    "select count(*) as n, n + 1 as m, x as g from t group by g order by m, g",
    "select {'b': x} as a, (a).b from t order by (a).b",
]


@pytest.mark.parametrize("query", ALIASES)
def test_items_read_the_aliases_before_them(query: str, backend: str) -> None:
    tables = {"t": {"x": [1, 2, None]}}
    assert_same_as_duckdb(query, tables, backend=backend, fuse=("always", "never"))


NOT_YET = [
    "select b + 1 as c, 1 as b from t",
    "select b, 1 as B from t",
    "select (select b) as c, x as b from t",
    "select x as b, b as c, x + 5 as b from t",
    "select sum(b) as c, x as b from t group by x",
    "select b + 1 as b from t",
    "select (select b + 1 as b) from (select 5 as b)",
    "select list_transform([1], lambda q: q + b), 1 as b from t",
    "select user as u, 1 as user",
    "select user as user",
]


@pytest.mark.parametrize("query", NOT_YET)
def test_items_do_not_read_themselves_or_those_behind(query: str) -> None:
    with connected({"t": {"x": [1, 2]}}) as connection:
        with pytest.raises(UnknownColumn, match="may only be read in items after it") as raised:
            connection.sql(query)
        assert raised.value.span is not None


def test_an_alias_is_no_table() -> None:
    with connected({"t": {"x": [1, 2]}}) as connection:
        for query in ("a.b from t", "1 from t order by a.b", "1 from t where a.b = 1"):
            with pytest.raises(UnknownColumn, match='no table "a"'):
                connection.sql(f"select {{'b': x}} as a, {query}")
