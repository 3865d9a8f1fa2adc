"""BLOB: bytes in tables, files, results and parameters, as values and as keys of any operator; on the CPU alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import (
    ConversionError,
    DeviceError,
    ExecutionError,
    FuselineError,
    TypeMismatch,
)
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

VALUES = [b"x", b"\xff\x00", None, b"x", b"", b'it\'s \\ "quoted"', b"\x7f\x80 \n", b"xx"]
T = pa.table(
    {
        "a": range(len(VALUES)),
        "b": pa.array(VALUES, pa.binary()),
        "large": pa.array(VALUES[::-1], pa.large_binary()),
        "two": pa.array([None if v is None else (v + b"??")[:2] for v in VALUES], pa.binary(2)),
        "coded": pa.array(VALUES, pa.binary()).dictionary_encode(),
        "s": ["x", "\\xFF\\x00", None, "é", "", "'", "\\x7F", "\\x"],
    }
)
EMPTY = T.slice(0, 0)
NULLS = pa.table({name: pa.nulls(3, T.schema.field(name).type) for name in T.column_names})
QUERIES = [
    "select * from t",
    "select b, count(*), min(large), max(two) from t group by b",
    "select a from t where b = 'x' or b > 'xa' or large in ('xx', '\\xFF\\x00')",
    "select x.a, y.a from t x join t y on x.b = y.large",
    "select a from t where b in (select large from t where a > 2) and b not in (select b from t where a = 4)",
    "select b, large from t order by b desc nulls first, large, a",
    "select distinct b, coded from t",
    "select min(b), max(b), count(distinct b), arg_min(b, a), arg_max(a, b), mode(two) filter (a <> 1) from t",
    "select a, rank() over (order by b), lag(b) over (order by a), max(b) over (order by a rows 1 preceding) from t",
    "select b::varchar, typeof(b), hex(b), to_base64(b), md5(b), sha1(b), sha256(b), octet_length(b) from t",
    "select b || large, b || 'q', concat(b, large) from t",
    "select try_cast(s as blob), try_cast(s as blob)::varchar, encode(s), decode(encode(s)) from t",
    "select decode(b, 'ignore'), decode('\\xE2\\x82b'::blob, 'ignore'), repeat(b, 2), repeat('\\xFF'::blob, 3) from t",
    "select list(b order by a), [b, null], {'k': b}, {'k': b}::varchar from t group by b",
    "select b from t union select large from t union select '\\x01'::blob",
    "select b from t except all select large from t where a > 3",
    "select case when a > 3 then b else 'q' end, coalesce(b, 'z'), nullif(b, 'x'), b is null, greatest(b, large) from t",
    "select string_agg(b, ',' order by a) from t",
    "select '\\xAA'::bytea, cast('a' as varbinary), null::blob, 'a'::blob < 'b'",
    "select from_base64('YWI='), unhex('FFa'), unbin('111000010'), from_hex(''), base64(encode('é')), unhex(null)",
]  # fmt: skip


@pytest.mark.parametrize("rows", [T, EMPTY, NULLS], ids=["some", "none", "nulls"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str, rows: pa.Table) -> None:
    assert_same_as_duckdb(query, {"t": rows}, backend="cpu", fuse=("never", "auto"))


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(T, path, row_group_size=3)
    for query in QUERIES[:4]:
        assert_same_as_duckdb(query, {"t": path}, backend="cpu")
    with connected() as connection:
        connection.sql(f"copy (select * from '{path}') to '{tmp_path / 'out.parquet'}'")
    assert_same_as_duckdb("select * from o", {"o": tmp_path / "out.parquet"}, backend="cpu")


def test_tables_that_change() -> None:
    setup = [
        "create table u (k integer primary key, b blob not null default 'none', unique (b))",
        "insert into u values (1, 'one'), (2, '\\xFF')",
        "insert into u (k) values (3)",
        "update u set b = b || 'more'::blob where k < 3",
        "delete from u where b = 'none'",
    ]
    assert_same_as_duckdb("select * from u", setup=setup, backend="cpu")


def test_python_values() -> None:
    with fuseline.connect("cpu") as connection:
        found = connection.execute("select ?, $2 || 'b'::blob", [b"a\x00", b"\xff"])
        assert found.fetchall() == [(b"a\x00", b"\xffb")]
        connection.execute("create table u (b blob)")
        connection.executemany("insert into u values (?)", [(b"\x01",), (None,)])
        assert connection.execute("select * from u").fetchall() == [(b"\x01",), (None,)]
        assert connection.sql(
            "select a from (values (1, 'x'::blob)) v(a, b) where b = ?", [b"x"]
        ).fetchall() == [(1,)]


def test_rows_on_disk(tmp_path: Path, limits: SetLimits) -> None:
    """Sides of joins and sorted rows that do not fit."""
    n = 30_000
    values = pa.array([str(i * 7919 % n).encode() for i in range(n)], pa.binary())
    rows = pa.table({"b": values, "a": range(n)})
    query = "select count(*), max(x.b), sum(y.a) from t x join t y on x.b = y.b where y.b > '2'"
    with connected(
        {"t": rows}, memory_limit=500_000, spill_dir=tmp_path, fuse="never"
    ) as connection:
        assert_same_as_duckdb(query, {"t": rows}, connection=connection)
        assert "spilled" in str(connection.sql(query).explain("analyze"))


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("select 'é'::blob", ConversionError, "Could not convert string 'é' to BLOB"),
        ("select '\\y'::blob", ConversionError, "to BLOB"),
        ("select decode('\\xFF'::blob)", ConversionError, "no valid UTF-8"),
        ("select from_base64('Y')", ConversionError, "multiple of 4"),
        ("select unhex('1z')", ExecutionError, "'z' is no hexadecimal digit"),
        ("select unbin('12')", ExecutionError, "'2' is no binary digit"),
        ("select 1::blob", TypeMismatch, "INTEGER cannot be cast to BLOB"),
        ("select 'a'::blob::int", TypeMismatch, "BLOB cannot be cast to INTEGER"),
        ("select upper(b) from t", TypeMismatch, "does not take"),
        ("select b = 1 from t", TypeMismatch, "BLOB and INTEGER"),
    ],
)
def test_refusals(query: str, error: type[FuselineError], message: str) -> None:
    with connected({"t": T}) as connection, pytest.raises(error, match=message):
        connection.sql(query).fetchall()


@pytest.mark.gpu
def test_a_gpu_refuses_them() -> None:
    with connected({"t": T}, "gpu", require_gpu=True) as connection:
        with pytest.raises(DeviceError, match="the GPU has no BLOB columns"):
            connection.sql("select b from t").fetchall()
        assert connection.sql("select sum(a) from t").fetchall() == [(28,)]


def test_no_kernel_reads_them(monkeypatch: Any) -> None:
    with connected({"t": T}, fuse="always") as connection:
        frame = connection.sql("select count(*), sum(a) from t where a < 5 group by a % 2")
        assert "Pipeline" in frame.explain()
        assert connection.sql("select b, sum(a) from t group by b").fetchall()
