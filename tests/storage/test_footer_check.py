"""Footers are checked before pyarrow's column chunks are asked for anything; by patterns where writers do as most do."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError
from fuseline.storage.tables import footer_check

ROWS = """select i::int a, i b, 'text ' || i s, i::double d, date '2020-01-01' + i::int d1, (i / 7)::decimal(10, 2) e,
    (i / 7)::decimal(30, 2) f, i % 2 = 0 g, null::int n from range(5000) t(i)"""


def table() -> pa.Table:
    return duckdb.sql(ROWS).arrow().read_all()


WRITERS: dict[str, Any] = {
    "pyarrow": lambda path: pq.write_table(table(), path, row_group_size=2048),
    "pyarrow, version 1": lambda path: pq.write_table(table(), path, row_group_size=2048, version="1.0", use_dictionary=False),
    "pyarrow, page index": lambda path: pq.write_table(table(), path, data_page_version="2.0", write_page_index=True, compression="zstd"),
    "duckdb": lambda path: duckdb.sql(f"copy ({ROWS}) to '{path}' (row_group_size 2048)"),
    "polars": lambda path: pl.DataFrame(table()).write_parquet(path, row_group_size=2048),
}  # fmt: skip


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize("writer", WRITERS)
def test_patterns_fit_what_writers_write(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No field is walked through, which takes 50 times as long."""
    WRITERS[writer](tmp_path / "t.parquet")
    monkeypatch.setattr(footer_check, "fields", None)
    footer, metadata = footer_of(tmp_path / "t.parquet"), pq.read_metadata(tmp_path / "t.parquet")
    footer_check.check_footer(footer, metadata, "t.parquet")


def outcome(footer: bytes, metadata: Any) -> str:
    try:
        footer_check.check_footer(footer, metadata, "t.parquet")
    except FileError as error:
        return error.message
    return "sound"


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_what_patterns_match_the_walk_accepts(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever bytes of a footer are others: with patterns and without them the same is said."""
    WRITERS[writer](tmp_path / "t.parquet")
    footer, metadata = footer_of(tmp_path / "t.parquet"), pq.read_metadata(tmp_path / "t.parquet")
    draw = random.Random(writer)
    changed = []
    for _ in range(300):
        data = bytearray(footer)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.choice(
                (draw.randrange(256), 0, 0x18, 0x1C, 0x8C)
            )
        changed.append(bytes(data))
    with_patterns = [outcome(data, metadata) for data in changed]
    monkeypatch.setattr(footer_check, "_usual_row_group", lambda *_: 0)
    monkeypatch.setattr(footer_check, "_usual_chunk", lambda *_: 0)
    assert with_patterns == [outcome(data, metadata) for data in changed]
    assert with_patterns.count("sound") > 10
    assert len(set(with_patterns)) > 3


def test_a_column_chunk_without_metadata() -> None:
    # FileMetaData {4: [RowGroup {1: [ColumnChunk {2: 0}]}]}
    footer = bytes([0x49, 0x1C, 0x19, 0x1C, 0x26, 0, 0, 0, 0])
    schema = pa.schema({"a": pa.int32()})
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    assert "a column chunk has no metadata" in outcome(footer, metadata)


def with_counts(data: bytes, total: int, groups: int) -> bytes:
    """A file whose footer says another number of rows: of the whole, and of its one row group."""
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[begin:-8]
    right = b"\x16\xc8\x01"  # a field of 64 bits: 100
    places = [at for at in range(len(footer)) if footer.startswith(right, at)]
    for place, rows in ((places[0], total), (places[-1], groups)):
        number = bytes([0x16, 2 * rows & 0x7F | 0x80, rows >> 6])
        footer = footer[:place] + number + footer[place + 3 :]
    return data[:begin] + footer + data[-8:]


@pytest.mark.parametrize("total", [99, 100, 101])
@pytest.mark.parametrize("groups", [99, 100, 101])
def test_counts_of_rows_that_are_not_those_of_the_columns(
    total: int, groups: int, tmp_path: Path
) -> None:
    """Columns of different lengths gave a wrong count, or an IndexError."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(100), "b": ["x"] * 100}), path, write_statistics=False)
    path.write_bytes(with_counts(path.read_bytes(), total, groups))
    metadata = pq.read_metadata(path)
    assert (metadata.num_rows, metadata.row_group(0).num_rows) == (total, groups)
    with fuseline.connect("cpu") as connection:
        for query in ("select count(a), min(b) from '{}'", "select b from '{}' where a >= 0"):
            if total == groups <= 100:  # fewer rows than there are: as pyarrow reads it
                assert connection.sql(query.format(path)).fetchall()
                continue
            with pytest.raises(FileError, match=r"t\.parquet.* rows"):
                connection.sql(query.format(path)).fetchall()
