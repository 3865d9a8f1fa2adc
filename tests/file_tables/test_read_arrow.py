"""read_arrow: the rows of IPC files, streams and Feather files, as DuckDB has them from Arrow's own reader."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather
import pytest

import fuseline
from tests.compare import Ordering, connected, difference

ROWS = pa.table(
    {
        "i": pa.array([1, None, -(2**63)], pa.int64()),
        "t": pa.array(["é", "", None], pa.large_string()),
        "k": pa.array(["a", None, "a"]).dictionary_encode(),
        "x": pa.array([0.5, float("nan"), None]),
        "d": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
        "n": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
        "l": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "s": pa.array([{"a": 1}, {"a": None}, None], pa.struct([("a", pa.int8())])),
        "z": pa.nulls(3),
    }
)


@pytest.fixture
def connection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with connected({}, device="cpu") as opened:
        yield opened


def write(table: pa.Table, name: str) -> None:
    new = pa.ipc.new_stream if name.endswith(".arrows") else pa.ipc.new_file
    with new(name, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


# Arrow 24 and 25 would have it written as an IPC file, which it is
@pytest.mark.filterwarnings("ignore:pyarrow.feather.write_feather:FutureWarning")
@pytest.mark.parametrize("name", ["f.arrow", "f.arrows", "f.ipc", "f.feather"])
@pytest.mark.parametrize("rows", [3, 0])
def test_rows_are_those_of_the_file(name, rows, connection):
    table = ROWS.slice(0, rows)
    if name == "f.feather":
        pa.feather.write_feather(table, name, "lz4")
    else:
        write(table, name)
    plain = table.set_column(2, "k", table["k"].cast(pa.string()))  # noqa: F841 - DuckDB finds it
    expected = duckdb.connect().sql("from plain").to_arrow_table()
    for query in (f"from '{name}'", f"from read_arrow('{name}')", f"from read_ipc(['{name}'])"):
        assert difference(expected, connection.sql(query).to_arrow(), Ordering(True)) is None
    assert connection.read_ipc(name).count() == rows


def test_several_files_and_copy(connection):
    write(ROWS.select(["i", "t"]), "1.arrow")
    write(ROWS.select(["i", "t"]).slice(1), "2.arrow")
    query = "select filename, count(*), sum(i) from read_arrow('*.arrow', filename = true) group by 1 order by 1"
    assert connection.sql(query).fetchall() == [
        ("1.arrow", 3, 1 - 2**63),
        ("2.arrow", 2, -(2**63)),
    ]
    connection.sql("create table t(a varchar, b varchar)")
    assert connection.sql("copy t from '1.arrow'").fetchall() == [(3,)]
    assert connection.sql("select count(a), max(b) from t").fetchall() == [(2, "é")]
    assert fuseline.read_ipc("2.arrow").to_arrow().num_rows == 2


def test_what_is_wrong_is_named(connection):
    write(ROWS.select(["i"]), "1.arrow")
    write(ROWS.select(["t"]), "2.arrow")
    whole = Path("1.arrow").read_bytes()
    for content in (b"", b"FEA1....", b"ARROW1 nothing", b"\xff" * 100, whole[: len(whole) // 2]):
        Path("f.arrow").write_bytes(content)
        with pytest.raises(fuseline.FuselineError, match=r"f\.arrow"):
            connection.sql("from 'f.arrow'").to_arrow()
    for query in (
        "'no.arrow'",
        "read_arrow('?.arrow')",
        "read_arrow('1.arrow', foo = 1)",
    ):
        with pytest.raises(fuseline.FuselineError):
            connection.sql(f"from {query}").to_arrow()
    write(pa.table({"a": [1], "b": pa.array([1], pa.timestamp("ns"))}), "n.arrow")
    assert connection.sql("select a from 'n.arrow'").fetchall() == [(1,)]
    with pytest.raises(fuseline.FuselineError, match="TIMESTAMP_NS"):
        connection.sql("select b from 'n.arrow'").fetchall()
