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

from fuseline.errors import DataError
from fuseline.storage import footer_check

ROWS = """select i::int a, i b, 'text ' || i s, i::double d, date '2020-01-01' + i::int d1, (i / 7)::decimal(10, 2) e,
    (i / 7)::decimal(30, 2) f, i % 2 = 0 g, null::int n from range(5000) t(i)"""


def table() -> pa.Table:
    return duckdb.sql(ROWS).arrow().read_all()


WRITERS: dict[str, Any] = {
    "pyarrow": lambda path: pq.write_table(table(), path, row_group_size=2048),
    "pyarrow, version 1": lambda path: pq.write_table(
        table(), path, row_group_size=2048, version="1.0", use_dictionary=False
    ),
    "pyarrow, page index": lambda path: pq.write_table(
        table(), path, data_page_version="2.0", write_page_index=True, compression="zstd"
    ),
    "duckdb": lambda path: duckdb.sql(f"copy ({ROWS}) to '{path}' (row_group_size 2048)"),
    "polars": lambda path: pl.DataFrame(table()).write_parquet(path, row_group_size=2048),
}


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
    except DataError as error:
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
