"""DEFECTS B2: an encrypted column, or an extreme that is too short, ended the process in C++'s terminate."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError
from tests.storage.encrypted import write_encrypted

TABLE = pa.table({"a": range(100), "b": [f"text {i}" for i in range(100)]})
QUERIES = ("select * from '{}'", "select a from '{}' where a > 5", "describe select * from '{}'")


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("plain_footer", [True, False])
def test_an_encrypted_file_is_refused(tmp_path: Path, query: str, plain_footer: bool) -> None:
    path = tmp_path / "t.parquet"
    write_encrypted(path, TABLE, ["b"], plain_footer)
    names = r'has encrypted columns \("b"\)' if plain_footer else "is encrypted"
    with fuseline.connect("cpu") as connection, pytest.raises(FileError, match=names):
        connection.sql(query.format(path)).fetchall()


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_an_extreme_that_is_cut_off(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([0x11223344, 5], pa.int32())}), path)
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    whole = struct.pack("<i", 0x11223344)
    footer = data[begin:-8].replace(b"\x04" + whole, bytes([kept]) + whole[:kept])
    assert len(footer) < len(data) - 8 - begin
    path.write_bytes(data[:begin] + footer + struct.pack("<i", len(footer)) + b"PAR1")
    with fuseline.connect("cpu") as connection, pytest.raises(FileError, match="footer is damaged"):
        connection.sql(f"select * from '{path}' where a > 5").fetchall()
