"""Lists and structs as columns: tables, Parquet, literals, subscripts, comparisons, keys and casts answer as DuckDB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected

INT = pa.int32()
TABLE = pa.table(
    {
        "i": pa.array([1, 2, 3, -1, None, 2], INT),
        "l": pa.array([[1, 2], None, [], [None, 5], [3, 4, 5], [1, 2]], pa.list_(INT)),
        "s": [
            {"a": 1, "b": "x"},
            None,
            {"a": None, "b": "y'"},
            {"a": 4, "b": None},
            {"a": 5, "b": "null"},
            {"a": 1, "b": "x"},
        ],
        "w": [["a", "b,c", "a"], [" x", None], [], None, ['q"'], ["a", "b,c", "a"]],
        "n": [[{"a": [1, 2]}], [None], [], None, [{"a": None}, {"a": []}], [{"a": [1, 2]}]],
        "d": [[1.5, float("nan")], [-0.0], [0.0], None, [float("inf"), None], [1.5, float("nan")]],
    }
)
QUERIES = (
    "select * from t",
    "select l[1], l[-1], l[0], l[9], l[i], l[i + 1] from t",
    "select l[2:3], l[:2], l[2:], l[-2:], l[(i):], l[:(i)], l[1:3:2], l[3:1:-1] from t",
    "select s.a, s['b'], (s).a, t.s.a, s.* from t",
    "select [1, 2] a, {'a': 1} b, [] c, [null] d, [[1], []] e, [{'a': [1]}] g",
    "select [1, 2][1], {'a': 1}.a, [i, i + 1], {'x': i, 'y': l}, [1, '3'], [1, 2.5] from t",
    "select l || [9], l + l, concat(l, l), list_concat(l, null), l || null::int[] from t",
    "select len(l), length(w), array_length(n), flatten([l, [7], null]) from t",
    "select list_contains(l, 5), array_contains(l, i), list_has(n, {'a': [1, 2]}) from t",
    "select list_has([]::int[], null), list_has([], null), list_has([1], null), null in [], null::int = any([]::int[]), list_has(null, 1)",
    "select a.i from t a left join t b on a.i = b.i + 1 where list_has([x for x in b.l if false], b.i) is not null",
    "select {'x': [null, {'n': null}]}, [{'x': [null, {'n': null}]}], [{'x': [{'n': null, 'm': [null, {'n': null}]}]}]",
    "select list(u), max(u, 2) from (select uuid '00000000-0000-0000-0000-000000000001' as u, 1 as i) q where false group by i",
    "select l::varchar, s::varchar, w::varchar, n::varchar, d::varchar from t",
    "select l::varchar[], s::struct(b varchar, a decimal(9, 2), c int), n::struct(a int[])[] from t",
    "select '[1, 2]'::int[], '{a: 1, b: x}'::struct(a int, b varchar), '[[1], NULL, []]'::int[][]",
    "select try_cast('[1, x]' as int[]), try_cast('x' as int[]), null::int[], null::struct(a int)",
    "select array_slice(l, 1, 2), list_slice(l, 2, 3), list_extract(l, 1), list_element(l, 2) from t",
    "select l = [1, 2], l < [2], l >= [1, 2], l is distinct from null, l in ([1, 2]) from t",
    "select s = {'a': 1, 'b': 'x'}, s < {'a': 4, 'b': 'a'}, n = n, d = d, d > [0.0] from t",
    "select l, count(*) from t group by l order by l",
    "select s, count(*), max(l), min(s) from t group by s order by all",
    "select distinct n from t",
    "select distinct d from t",
    "select * from t order by n desc nulls first, i, l",
    "select i from t order by d nulls first, s desc, i",
    "select a.i, b.i from t a join t b on a.l = b.l and a.s = b.s",
    "select coalesce(l, [0]), case when i > 1 then l else [7] end, greatest(l, [2]) from t",
    "select l from t union select [1::int]",
    "select n from t except select [{'a': [1, 2]}]",
    "select typeof(l), typeof(s), typeof(n), typeof([]), typeof([1, 2.5]), typeof({'a': null}) from t",
    "select min(l), max(s), first(l), count(distinct l), arg_max(l, i), any_value(n) from t",
    "select i, (select max(l) from t) m from t",
    "select * from (values ([1], 'a'), ([2, 3], null)) v(a, b)",
    "select l from t where l[1] = 1 and s.a = 1",
    "select i from t where len(l) > 1 and list_contains(l, 4)",
    "select sum(s.a), s.b from t group by s.b order by 2",
    "select lag(l) over (order by i, l), count(*) over (partition by l) from t",
    "select x.l, y.n from t x left join t y on x.i = y.s.a",
    "select l from t where l is not null order by l limit 2 offset 1",
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_nested_columns_answer_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, {"t": TABLE}, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize("rows", [TABLE.slice(0, 0), TABLE.slice(1, 1), TABLE.slice(2, 3)])
def test_few_rows_and_parts_of_arrays(rows: pa.Table) -> None:
    query = "select *, l[1], s.a, l || [1], len(n), s::varchar, [s, s], l = l from t"
    assert_same_as_duckdb(query, {"t": rows}, backend="cpu", fuse=("always", "never"))


def test_they_are_written_and_read_again(tmp_path: Path) -> None:
    with connected({"t": TABLE}) as connection:
        connection.execute("create table u (l int[], s struct(a bigint, b varchar), w varchar[])")
        connection.execute("insert into u select l, s, w from t")
        connection.execute("insert into u values ([8], {'a': 9, 'b': null}, [])")
        found = connection.sql("from u")
        assert [str(c.type) for c in found.plan.columns] == [
            "INTEGER[]",
            "STRUCT(a BIGINT, b VARCHAR)",
            "VARCHAR[]",
        ]
        table = found.to_arrow()
        pq.write_table(table, tmp_path / "u.parquet")
        again = connection.sql(f"from '{tmp_path / 'u.parquet'}'").to_arrow()
        assert again.to_pylist() == table.to_pylist()
        assert found.fetchall()[0] == ([1, 2], {"a": 1, "b": "x"}, ["a", "b,c", "a"])
        assert found.to_polars()["l"].to_list() == table["l"].to_pylist()
        assert list(found.to_pandas()["s"])[:2] == [{"a": 1, "b": "x"}, None]


KINDS = (
    pa.int32(), pa.uint8(), pa.float64(), pa.string(), pa.bool_(), pa.date32(),
    pa.timestamp("us"), pa.decimal128(9, 2), pa.decimal128(30, 4),
)  # fmt: skip


def random_type(random: np.random.Generator, depth: int) -> pa.DataType:
    if depth == 0 or random.random() < 0.2:
        return KINDS[random.integers(len(KINDS))]
    if random.random() < 0.5:
        return pa.list_(random_type(random, depth - 1))
    fields = [(f"f{i}", random_type(random, depth - 1)) for i in range(random.integers(1, 4))]
    return pa.struct(fields)


def random_array(random: np.random.Generator, kind: pa.DataType, count: int) -> pa.Array:
    mask = random.random(count) < 0.2
    if pa.types.is_list(kind):
        lengths = np.where(mask, 0, random.integers(0, 4, count))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        elements = random_array(random, kind.value_type, int(offsets[-1]))
        return pa.ListArray.from_arrays(pa.array(offsets), elements, kind, mask=pa.array(mask))
    if pa.types.is_struct(kind):
        fields = [random_array(random, field.type, count) for field in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pa.array(mask))
    numbers = pa.array(random.integers(0, 5, count), pa.int32(), mask=mask)
    if pa.types.is_decimal(kind):
        numbers = numbers.cast(pa.decimal128(38, kind.scale))
    return (
        numbers.cast(pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else numbers.cast(kind)
    )


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_nested_types_go_through_parquet_and_sql(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    columns = {f"c{i}": random_array(random, random_type(random, 3), 40) for i in range(3)}
    columns["k"] = pa.array(random.integers(0, 3, 40))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    for query in (
        "select *, c0 = m, c0 <= m, c0 is distinct from m from (select *, max(c0) over (partition by k) m from t)",
        "select c0, c1, count(*), max(c2), min(c0) from t group by c0, c1",
        "select c1::varchar, [c0, c0], {'a': c1, 'b': [c2]} from t order by c1, c0, c2",
        "select k, count(distinct c0), count(distinct c2), max(c1) from t group by k",
    ):
        assert_same_as_duckdb(query, {"t": path}, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("select [1, 2].a", "a"),
        ("select {'a': 1}.b", "b"),
        ("select {'a': 1, 'A': 2}", None),
        ("select [1][1.5]", "1.5"),
        ("select (5)[1]", None),
        ("select [1, 2]::int", None),
        ("select {'a': 1}::struct(b int)", None),
        ("select [1]::int[3]", None),
        ("select 'x'::int[]", None),
        ("select [1, 2][1:2:0]", None),
        ("select [1] = 1", None),
    ],
)
def test_what_is_wrong_is_refused(query: str, place: str | None) -> None:
    with fuseline.connect("cpu") as connection:
        with pytest.raises(FuselineError) as caught:
            connection.sql(query).fetchall()
        span = caught.value.span
        assert place is None or (span is not None and query[span.start : span.end] == place)
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_choices_among_lists_and_structs_of_no_type() -> None:
    """They were an internal error: Arrow has no if_else for them."""
    tables = {"t": {"a": [1, 2, None]}}
    for value in ("[null]", "{'a': null}", "[{'a': []}]"):
        assert_same_as_duckdb(f"select case when a > 1 then {value} end as x from t", tables)
    query = (
        "select case when a > 1 then [null, null] when a = 1 then [] else [null] end as x from t"
    )
    assert_same_as_duckdb(query, tables)
