"""Maps answer as DuckDB: in tables, in Parquet, made of keys and values, and searched."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

_OUTER = pa.map_(pa.int64(), pa.map_(pa.string(), pa.float64()))
TABLE = pa.table(
    {
        "i": [1, 2, 3, 4, 5],
        "k": ["a", "b", None, "c", "a"],
        "m": pa.array(
            [[("a", 1), ("b", None)], None, [], [("c", 3)], [("a", 1), ("b", None)]],
            pa.map_(pa.string(), pa.int32()),
        ),
        "n": pa.array([[(1, [("x", 1.5)])], [], None, [(2, None)], [(3, [])]], _OUTER),
        "l": pa.array(
            [[[(1, "q")], None], [], None, [[]], [[(2, None)]]],
            pa.list_(pa.map_(pa.int32(), pa.string())),
        ),
    }
)
QUERIES = (
    "select * from t",
    "select m['a'], m[k], map_keys(m), map_values(m), map_entries(m), cardinality(m), map_contains(m, k), map_extract(m, k), element_at(m, 'b'), map_extract_value(m, 'c') from t",
    "select map_contains(map {}::map(int, int), null), map_contains(map {1: 2}, null), map_contains(m, null), map_contains(null::map(int, int), 1) from t",
    "select n[1]['x'], n[1.0], l[1][1], m[null], map_extract(m, null) from t",
    # A key of another type is compared in the type of both
    "select map_extract(map([[1], [2]]::tinyint[][], [3, i]), [1]), map([1, 2]::tinyint[], [3, i])[300], map([1, 2], [3, i])[1.5], map([{'a': 1}], [i])[{'a': 1::bigint}], map([1, 2], [i, 4])['2'], map_contains(map([1.5]::float[], [i]), 1.5) from t",
    "select m, count(*) from t group by m",
    "select m from t order by m, i",
    "select a.i, b.i from t a join t b on a.m = b.m order by all",
    "select m::varchar, n::varchar, l::varchar, m::map(varchar, double), map {'a b': 'x,y', 'c': null}::varchar from t",
    "select map {t.k: t.i, upper('a'): 2}, map {i % 3: 1, case when i > 0 then -7 end: 2}, map {t.k[1]: 1} from t where k is not null and i > 0",
    "select map_concat(m, map {'z': 1, 'a': 9}), map {i: k, -i: k}, map([i, 0], [k, k]), map([k], null) from t where k is not null",
    "select map_from_entries(map_entries(m)), map_from_entries([{'x': i, 'y': k}]) from t",
    "select map_from_entries([])::varchar, typeof(map_from_entries([])), map_keys(map_from_entries([])), map_entries(map_from_entries([])), map_from_entries(null)::varchar, cardinality(map_from_entries([]))",
    "select list(m order by i), count(distinct m) from t",
    "select m from t union all select map {'q': 1}",
    "select [x['a'] for x in [m, null]], case when i > 1 then m end, coalesce(m, map {}), m is null, m = map {'a': 1, 'b': null} from t",
    "select i, lag(m) over (order by i) from t order by i",
    "select map {'a': 1, 'b': 2.5}, map {1: [1, 2]}[1][2], map {'x': map {'y': 5}}['x']['y'], {'m': map {'a': 1}}, typeof(map {'a': [1]}), cardinality(map()), null::map(int, int)",
)  # fmt: skip
WRONG = (
    "map([1, 2], [3])", "map {null: 1}", "map {'a': 1, 'a': 2}", "map(['a', null], [1, 2])", "map_from_entries([null, {'k': 1, 'v': 2}])",
    "map_from_entries([1])", "map([1])", "map_keys([1])", "map {'a': 1}[[1]]", "unnest(map {'a': 1})", "'{a=1, a=2}'::map(varchar, int)", "'{null=1}'::map(varchar, int)", "'{a}'::map(varchar, int)", "'{a=1,}'::map(varchar, int)", "'a=1'::map(varchar, int)",
    "'{=1}'::map(int, int)", "'{a=x}'::map(varchar, int)",
    "len(map {'a': 1})", "map_concat(map {'a': 1}, map {1: 1})",
)  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_maps_answer_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, backend="cpu", fuse=("always", "never"))


def test_few_rows() -> None:
    query = (
        "select m, m['a'], map_keys(m), cardinality(n), map([k], [m]) from t where k is not null"
    )
    for rows in (TABLE.slice(0, 0), TABLE.slice(1, 1), TABLE.slice(3, 1)):
        assert_same_as_duckdb(query, {"t": rows}, backend="cpu")


def test_files_tables_and_python_values(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "given.parquet")
    with fuseline.connect("cpu") as connection:
        connection.sql(f"create table t as select * from '{tmp_path}/given.parquet'")
        connection.sql(f"copy t to '{tmp_path}/made.parquet'")
        for name in ("given", "made"):
            read = connection.sql(
                f"select m, n, l from '{tmp_path}/{name}.parquet' where i in (1, 3)"
            )
            rows = read.fetchall()
            assert rows == [
                ({"a": 1, "b": None}, {1: {"x": 1.5}}, [{1: "q"}, None]),
                ({}, None, None),
            ]
        connection.sql("create table z (m map(varchar, int)); insert into z values (map {'a': 1})")
        assert connection.sql("select m['a'] from z").fetchall() == [(1,)]
    assert pq.read_table(tmp_path / "made.parquet")["m"].type == TABLE["m"].type


def test_keys_that_python_cannot_hash_are_beside_their_values() -> None:
    query = "select map {[1]: 2, [3]: 4}, [map {{'a': 1}: 'x'}], map {1: map {[5]: 6}}, {'s': map {[1]: null}}"
    with fuseline.connect("cpu") as connection:
        assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()


def test_what_is_wrong_is_refused() -> None:
    with fuseline.connect("cpu") as connection:
        for call in WRONG:
            with pytest.raises(FuselineError):
                connection.sql(f"select {call}").fetchall()
        assert connection.sql("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("query", [
    "select t::map(varchar, varchar) as m from (values ('{a=1}'), (null), ('{}'), ('{ }'), ('{b = 2 , c=NULL}'), ('{''k=1''=\"x, y\"}'), ('{a=1=2}'), ('{p=}')) v(t)",
    "select try_cast(t as map(varchar, int)) as m from (values ('{a=1}'), ('{a=1, a=2}'), ('{NULL=1}'), ('{a=x}'), ('{a}'), ('{a=1,}'), ('x'), ('')) v(t)",
    "select '{a=[1, 2], b=[]}'::map(varchar, int[]), '{[1, 2]=x}'::map(int[], varchar), '{a={b=1}}'::map(varchar, map(varchar, int))",
    "select '[{a=1}, {}]'::map(varchar, int)[], '{m: {a=1}}'::struct(m map(varchar, int)), '{1=2024-01-01}'::map(int, date)",
    "select m::varchar::map(varchar, int) = m as same from t",
])  # fmt: skip
def test_text_is_read_as_a_map(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, fuse=("always", "never"))
