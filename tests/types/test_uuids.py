"""UUID: 128 bits in tables, files, results and parameters, as values and as keys of any operator; on the CPU alone."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import (
    ConversionError,
    DeviceError,
    ExecutionError,
    FuselineError,
    InvalidQuery,
    TypeMismatch,
)
from tests.compare import assert_same_as_duckdb, connected, duckdb_answer
from tests.limits import SetLimits

A = "47183823-2574-4bfd-b411-99ed177d3e43"
SPELLED = [
    A, A.upper(), f"{{{A}}}", A.replace("-", ""), f"{{{A.replace('-', '')}}}", f"-{A}-", A.replace("-", "--"),
    "4-7183823-25744bfd-b41199ed177d3e43", f"{{{A}", f"{A}}}", f" {A}", A[1:], A + "0", "g" + A[1:], "", "{}", "}", "{", "-",
    f"{{{{{A}}}}}", A + "\n", "é" * 32, None,
]  # fmt: skip
EXTREMES = [UUID(int=0), UUID(int=2**128 - 1), UUID(int=2**127), UUID(int=2**127 - 1), UUID(A)]


def uuids(values: list[UUID | None]) -> pa.Array:
    return pa.array([None if v is None else v.bytes for v in values], pa.uuid())


def drawn(count: int, seed: int) -> list[UUID | None]:
    """Random values, of which each comes several times, extremes and NULL."""
    source = random.Random(seed)
    known = [*EXTREMES, None, *(UUID(int=source.getrandbits(128)) for _ in range(count // 4))]
    return [source.choice(known) for _ in range(count)]


SEED = 3
T = pa.table(
    {
        "a": range(60),
        "u": uuids(drawn(60, SEED)),
        "w": uuids(drawn(60, SEED)[::-1]),
        "s": [*SPELLED, *[A] * (60 - len(SPELLED))],
    }
)
EMPTY = T.slice(0, 0)
NULLS = pa.table({name: pa.nulls(3, T.schema.field(name).type) for name in T.column_names})
QUERIES = [
    "select * from t",
    "select u, count(*), min(w), max(w) from t group by u",
    f"select a from t where u = '{A}' or u > '80000000-0000-0000-0000-000000000000' or w in ('{A}', '{UUID(int=0)}')",
    "select x.a, y.a from t x join t y on x.u = y.w",
    "select x.a, y.a from t x left join t y on x.u < y.w and x.a = y.a",
    "select a from t where u in (select w from t where a > 20) and u not in (select u from t where a = 4 and u is not null)",
    "select u, w from t order by u desc nulls first, w, a",
    "select distinct u from t",
    "select min(u), max(u), count(distinct u), arg_min(u, a), arg_max(a, u), quantile_disc(u, 0.3) from t",
    "select approx_count_distinct(u) > 0, list(u order by u), string_agg(u, ',' order by a), first(u order by a) from t",
    "select a, rank() over (order by u), lag(u) over (order by a), max(u) over (order by a rows 1 preceding) from t",
    "select u::varchar, typeof(u), u::blob, u::blob::uuid, u::varchar::uuid, u || 'x', concat(u, w) from t",
    "select try_cast(s as uuid), try_cast(s::blob as uuid) from t where s <> repeat('é', 32) or s is null",
    "select u = s, u in (s) from t where a between 0 and 5",
    "select [u, null], {'k': u}, {'k': u}::varchar, [[u]] from t",
    "select [u, w] x, count(*) from t group by x order by x",
    "select unnest([u, w]) as e, a from t order by e, a",
    f"select u from t union select w from t union select '{A}'",
    "select u from t except all select w from t where a > 3",
    f"select case when a > 3 then u else '{A}' end, coalesce(u, '{A}'), nullif(u, '{A}'), u is null, greatest(u, w) from t",
    f"select uuid '{A}', '{A}'::guid, cast('{A}' as uuid), null::uuid, '[{A}]'::uuid[]",
    "select uuid_extract_version(u) from t",
    "select uuid_extract_timestamp(u) from t where uuid_extract_version(u) = 7",
    "select uuid_extract_timestamp('ffffffff-ffff-7bfd-b411-99ed177d3e43'), uuid_extract_timestamp('00000000-0000-7000-8000-000000000000')",
    "select count(*), count(distinct x), min(uuid_extract_version(x)), max(uuid_extract_version(x)) from (select uuid() x from range(3000))",
    "select typeof(uuid()), typeof(uuidv4()), typeof(gen_random_uuid()), typeof(uuidv7()), uuid_extract_version(uuidv7())",
    "select uuid() = uuid(), abs(epoch(uuid_extract_timestamp(uuidv7())) - epoch(now())) < 60 from range(3)",
]  # fmt: skip


@pytest.mark.parametrize("rows", [T, EMPTY, NULLS], ids=["some", "none", "nulls"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str, rows: pa.Table) -> None:
    fuse = ("never", "auto") if rows is T else ("auto",)
    assert_same_as_duckdb(query, {"t": rows}, backend="cpu", fuse=fuse)


@pytest.mark.parametrize("extensions", [True, False])
def test_parquet(tmp_path: Path, extensions: bool) -> None:
    """Also of files that do not keep Arrow's types, and of lists and maps."""
    path, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    nested = "select a, u, [u, w] as l, {'x': a, 'k': [{'u': w}]} as n, map {a: u} as m from t"
    with connected({"t": T}) as connection:
        connection.sql(f"copy ({nested}) to '{out}'")
        connection.sql(f"copy t to '{path}'")
    pq.write_table(pq.read_table(path), path, row_group_size=13, store_schema=extensions)
    assert pq.ParquetFile(path).schema.column(1).logical_type.type == "UUID"
    for query in QUERIES[:5]:
        assert_same_as_duckdb(query, {"t": path}, backend="cpu")
    assert_same_as_duckdb("select * from o", {"o": out}, backend="cpu")
    assert duckdb.sql(f"select typeof(l), typeof(n) from '{out}'").fetchall()[0] == (
        "UUID[]",
        "STRUCT(x BIGINT, k STRUCT(u UUID)[])",
    )


def test_files_of_text(tmp_path: Path) -> None:
    with connected({"t": T}) as connection:
        for form in ("csv", "json", "arrow"):
            connection.sql(f"copy (select a, u from t) to '{tmp_path / 'out'}.{form}'")
            connection.sql("create or replace table back (a bigint, u uuid)")
            connection.sql(f"copy back from '{tmp_path / 'out'}.{form}'")
            assert connection.sql("from t select a, u except from back").count() == 0
        json = f"select * from '{tmp_path / 'out'}.json'"
        assert connection.sql(json).to_arrow().equals(duckdb.sql(json).to_arrow_table())


def test_tables_that_change() -> None:
    setup = [
        "create table u (k integer primary key, b uuid not null default '11111111222233334444555566667777', unique (b))",
        f"insert into u values (1, '{A}'), (2, '{UUID(int=0)}')",
        "insert into u (k) values (3)",
        f"update u set b = '{UUID(int=5)}' where k < 2",
        "delete from u where b = '11111111222233334444555566667777'",
        "alter table u add column c varchar default 'a'",
        f"insert into u values (9, '{A}', 'b') on conflict do nothing",
    ]
    assert_same_as_duckdb("select * from u", setup=setup, backend="cpu")


def test_defaults_draw_for_each_row() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute(
            "create table u (id uuid primary key default uuid(), x double default random())"
        )
        connection.execute("insert into u default values")
        connection.execute("insert into u (x) values (default), (default)")
        connection.execute("insert into u select uuid(), range from range(10)")
        connection.execute("insert into u (x) select range from range(10)")
        connection.execute("insert into u values (default, 0), (uuid(), 1)")
        connection.executemany("insert into u values (uuid(), ?)", [(1,), (2,)])
        connection.executemany("insert into u values (default, ?)", [(1,), (2,)])
        query = (
            "select count(*), count(distinct id), count(distinct uuid_extract_version(id)) from u"
        )
        assert connection.sql(query).fetchall() == [(29, 29, 1)]
        assert len({connection.sql("select uuid()").fetchall()[0] for _ in range(3)}) == 3


def test_python_values() -> None:
    key = UUID(A)
    with fuseline.connect("cpu") as connection:
        found = connection.execute("select ?, $1::varchar, typeof($1), [$1]", [key])
        assert found.fetchall() == [(key, A, "UUID", [key])]
        connection.execute("create table u (b uuid)")
        connection.executemany("insert into u values (?)", [(key,), (None,)])
        cursor = connection.execute("select b, {'k': [b]} as n from u")
        assert [row[1] for row in cursor.description] == ["UUID", "STRUCT(k UUID[])"]
        assert cursor.to_arrow().schema.types == [
            pa.string(),
            pa.struct([("k", pa.list_(pa.field("l", pa.string())))]),
        ]
        assert cursor.fetchall() == [(key, {"k": [key]}), (None, {"k": [None]})]
        frame = connection.sql("select b, [b] as l, {'k': b} as n from u")
        shown = frame.to_pandas()
        assert [shown[name].dtype for name in shown] == [object] * 3
        assert shown.loc[0, "b"] == shown.loc[0, "l"][0] == shown.loc[0, "n"]["k"] == key
        assert shown.loc[1, "b"] is shown.loc[1, "l"][0] is shown.loc[1, "n"]["k"] is None
        assert frame.to_polars()["b"].to_list() == [A, None]
        assert [batch.schema.field(0).type for batch in frame.to_batches()] == [pa.string()]
        assert connection.sql("from u").filter(fuseline.col("b") == key).fetchall() == [(key,)]
        assert A in frame._repr_html_()


def test_rows_on_disk(tmp_path: Path, limits: SetLimits) -> None:
    """Sides of joins and sorted rows that do not fit."""
    n = 30_000
    rows = pa.table({"u": uuids([UUID(int=i * 7919 % n << 90) for i in range(n)]), "a": range(n)})
    query = f"select count(*), max(x.u), sum(y.a) from t x join t y on x.u = y.u where y.u > '{UUID(int=2 << 90)}'"
    with connected(
        {"t": rows}, memory_limit=500_000, spill_dir=tmp_path, fuse="never"
    ) as connection:
        assert_same_as_duckdb(query, {"t": rows}, connection=connection)
        assert "spilled" in str(connection.sql(query).explain("analyze"))


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("select 'x'::uuid", ConversionError, "'x' cannot be read as UUID"),
        ("select s::uuid from t", ConversionError, "to UUID"),
        ("select 'abc'::blob::uuid", ConversionError, "for UUID"),
        ("select 1::uuid", TypeMismatch, "INTEGER cannot be cast to UUID"),
        ("select u::int from t", TypeMismatch, "UUID cannot be cast to INTEGER"),
        ("select upper(u) from t", TypeMismatch, "does not take"),
        ("select u = 1 from t", TypeMismatch, "UUID and INTEGER"),
        ("select case when true then u else s end from t", TypeMismatch, "do not mix"),
        ("select sum(u) from t", TypeMismatch, "does not take"),
        (f"select uuid_extract_timestamp('{A}')", ExecutionError, "version 4 has no time"),
        ("select uuid(1)", InvalidQuery, "takes no arguments"),
        ("select count(*) from t group by uuid()", FuselineError, "in GROUP BY"),
        ("create table q as select 1 as x; update q set x = uuid()", FuselineError, "UUID cannot be cast to INTEGER"),
        ("select u as v, uuidv7() as r from t where r = u", FuselineError, "draw anew"),
    ],
)  # fmt: skip
def test_refusals(query: str, error: type[FuselineError], message: str) -> None:
    with connected({"t": T}) as connection, pytest.raises(error, match=message):
        connection.execute(query).fetchall()


@pytest.mark.gpu
def test_a_gpu_refuses_them() -> None:
    refused = pytest.raises(DeviceError, match="the GPU has no UUID columns")
    with connected({"t": T}, "gpu", require_gpu=True) as connection, refused:
        connection.sql("select u from t").fetchall()


def test_duckdb_reads_what_leaves() -> None:
    with connected({"t": T}) as connection, duckdb.connect() as reader:
        given = connection.sql("select u from t")
        reader.register("given", given.to_arrow())
        read = duckdb_answer(reader, "select u::uuid::varchar as u from given")
        assert read.column(0).equals(given.to_arrow().column(0))
