"""ARRAY, a list of a fixed length: in tables, files, results and functions as in DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

VECTORS = pa.table(
    {
        "i": [1, 2, 3, 4, 5],
        "v": pa.array([[1.0, 2.0, 3.0], None, [0.5, -1.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, 1.0]], pa.list_(pa.float32(), 3)),
        "n": pa.array([[1, 2], [3, None], None, [1, 2], [2, 1]], pa.list_(pa.int32(), 2)),
    }
)  # fmt: skip
QUERIES = (
    "select *, typeof(v), typeof(n), v::varchar, n::bigint[2], n::int[], n::varchar[2] from t",
    "select n, count(*), max(v), min(i), list(v order by i), first(n) from t group by n order by n",
    "select distinct n from t order by n desc nulls last",
    "select a.i, b.i from t a join t b on a.n = b.n and a.i <= b.i order by all",
    "select i, n = [1, 2], n < [2, 0]::int[2], n in ([1, 2]::int[2]), n is distinct from null, v = v::double[3] from t",
    "select n[1], n[-1], n[3], n[1:1], list_reverse(n), len(n), list_sum(n), list_contains(n, 2), n || [4], list_append(n, 5) from t",
    "select list_transform(n, lambda x: x + 1), [x + 1 for x in n if x > 1], array_to_string(n, ','), list_sort(n), flatten([n, n]), list_resize(n, 3) from t",
    "select i, unnest(n) as e from t",
    "select i, e from t, unnest(t.n) as u(e)",
    "select array_distance(v, [1, 0, 0]::float[3]), array_inner_product(v, v), array_cosine_similarity(v, v), array_cross_product(v, array_value(1.0::float, 0, 2)) from t",
    "select array_negative_inner_product(v, v), array_dot_product(v, v), array_negative_dot_product(v, v), array_cosine_distance(v, [0, 1, 0]::float[3]), array_distance(v::double[3], v) from t",
    "select to_json(n), {'a': n} as s, {'a': n}.a as f, map {'k': n} as m, [n, n] as l, coalesce(n, [0, 0]), case when i > 2 then n else [9, 9] end from t",
    "select i, row_number() over (partition by n order by i) as r, lag(n) over (order by i) as b, first_value(v) over (order by i) as f from t order by i",
    "select n from t union all select [3, 4]::bigint[2] union all select [5, 6]",
    "select try_cast([1, 2] as int[3]), try_cast([1, 2] as int[2]), try_cast('[1]' as int[2]), '[1, 2]'::int[2], [[1, 2]]::int[2][], null::int[2][1]",
    "select i, try_cast(j as int[2]) as a, try_cast(j as struct(k int[2])) as b, json_transform(j, '[\"INTEGER[2]\"]') as c, json_transform(j, '{\"k\": \"INTEGER[1]\"}') as d from (select i, to_json(n) as j from t union all "
    "select i, '[1, 2, 3]' from t union all select i, '{\"k\": [7]}' from t union all select i, '[[1], [3, 4]]' from t union all select 9, null)",
    "select '[1, 2]'::json::int[2], '[[1, 2], [3, 4]]'::json::int[2][], json_transform_strict('{\"k\": [1]}', '{\"k\": \"TINYINT[1]\"}')",
    "select typeof(array_value(1, 2.5)), array_value('a', null), array_value([1], [2, 3]), typeof([1]::int[1] || [2]), array_concat([1]::int[1], [2]::int[1])",
)  # fmt: skip
REFUSED = {
    "[1, 2]::int[3]": "A list of 2 elements is no INTEGER\\[3\\]",
    "[1, 2]::int[2]::int[3]": "cannot be cast",
    "[1, 2]::int[2] = [1, 2, 3]::int[3]": "cannot be compared",
    "'[1, 2, 3]'::json::int[2]": "A list of 3 elements is no INTEGER\\[2\\]",
    'json_transform_strict(\'{"k": [1]}\', \'{"k": "INTEGER[2]"}\')': "A list of 1 elements",
    "[]::int[0]": "1 to 100,000 elements",
    "array_distance([1.0, 2], [1.0, 2])": "arrays of FLOAT or DOUBLE",
    "array_distance([1, 2]::float[2], [1, 2, 3]::float[3])": "equally many",
    "array_distance([1, null]::float[2], [1, 2]::float[2])": "no NULL",
    "array_cross_product([1, 2]::float[2], [1, 2]::float[2])": "3 elements",
}


@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str) -> None:
    assert_same_as_duckdb(query, {"t": VECTORS}, fuse=("always", "never"))
    assert_same_as_duckdb(query, {"t": VECTORS.slice(1, 1)})
    assert_same_as_duckdb(query, {"t": VECTORS.slice(0, 0)})


@pytest.mark.parametrize("value", REFUSED)
def test_refused(value: str, connection: Any) -> None:
    with pytest.raises(FuselineError, match=REFUSED[value]):
        connection.sql(f"select {value}").fetchall()


def test_tables_keep_the_length(tmp_path: Path) -> None:
    statements = (
        "create table t (i integer, a integer[3], n varchar[2][])",
        "insert into t values (1, [1, 2, 3], [['a', 'b']]), (2, null, null), (3, [4, null, 6], [])",
        "update t set a = [7, 8, 9] where i = 2",
    )
    with duckdb.connect() as duck, fuseline.connect(str(tmp_path / "db"), device="cpu") as ours:
        for statement in statements:
            duck.execute(statement)
            ours.execute(statement)
        with pytest.raises(FuselineError, match="A list of 2 elements"):
            ours.execute("insert into t values (4, [1, 2], [])")
        for query in ("from t order by i", "select column_name, column_type from (describe t)"):
            assert ours.sql(query).fetchall() == duck.sql(query).fetchall()
    with fuseline.connect(str(tmp_path / "db"), device="cpu") as again:
        assert again.sql("select typeof(a), typeof(n) from t").fetchall()[0] == (
            "INTEGER[3]",
            "VARCHAR[2][]",
        )
        assert again.sql("select a from t order by i").fetchall() == [((1, 2, 3),), ((7, 8, 9),), ((4, None, 6),)]  # fmt: skip


def test_files(tmp_path: Path, connection: Any) -> None:
    """Parquet has lists, as DuckDB writes them; what others wrote as a list of fixed length stays one."""
    connection.register("vectors", VECTORS)
    for name in ("a.parquet", "a.json"):
        connection.execute(f"copy vectors to '{tmp_path / name}'")
    rows = VECTORS if int(pa.__version__.split(".")[0]) > 25 else VECTORS.drop_null()
    pq.write_table(rows, tmp_path / "b.parquet")  # Arrow 25 does not read NULLs among these
    kinds = {
        "a.parquet": "INTEGER[]",
        "b.parquet": "INTEGER[2]",
        "a.json": "BIGINT[]",
    }
    for name, kind in kinds.items():
        written = rows if name == "b.parquet" else VECTORS
        query = f"select typeof(n), n::int[2] from '{tmp_path / name}' order by i"
        assert connection.sql(query).fetchall() == [(kind, v and tuple(v)) for v in written["n"].to_pylist()], name  # fmt: skip
    read = pq.read_schema(tmp_path / "a.parquet")
    assert pa.types.is_list(read.field("n").type)


def test_python_values(connection: Any) -> None:
    query = "select [1, 2]::int[2] as a, [[1]::int[1]] as l, {'x': [uuid '00000000-0000-4000-8000-000000000001']::uuid[1]} as s"
    assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()
    assert connection.sql(query).to_arrow().schema == duckdb.sql(query).to_arrow_table().schema
    assert list(connection.sql("select [1, 2]::int[2] as a").to_pandas().a[0]) == [1, 2]
