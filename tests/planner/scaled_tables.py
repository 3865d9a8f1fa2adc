"""Tables of TPC-H as the footers of a larger scale factor would describe them, for plans that nobody runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import duckdb

from fuseline.plan.physical import RowGroups
from fuseline.storage.tables.column_chunks import ColumnChunks
from fuseline.storage.tables.parquet import ParquetTable

GROUP_ROWS = 1_000_000
FEW_VALUES = 200  # which are all that there are at any scale
UNSCALED = ("nation", "region")


def scaled_table(path: Path, name: str, factor: int) -> ParquetTable:
    """Return a table of `factor` times the rows; keys grow with them, and rows ascend by the first column as the generator makes them."""
    table = replace(ParquetTable.open([str(path)], name=name), name=name, settled=True)
    if name in UNSCALED:
        return table
    rows = table.num_rows * factor
    counts = [min(GROUP_ROWS, rows - start) for start in range(0, rows, GROUP_ROWS)]
    first = table.fields[0][0]
    wanted = ", ".join(f"count(distinct {column})" for column, _ in table.fields)
    (found,) = duckdb.sql(f"select {wanted} from '{path}'").fetchall()
    for (column, _), values in zip(table.fields, found, strict=True):
        known = _of_rows(table.chunks(column), counts, factor, column, values)
        table._chunks[column] = _ascending(known) if column == first else known
    facts = {
        "stored_rows": (tuple(counts),),
        "group_rows": (tuple(counts),),
        "num_rows": rows,
        "all_row_groups": (RowGroups(0, tuple(range(len(counts)))),),
    }
    table.__dict__.update(facts)
    return table


def _of_rows(
    chunks: ColumnChunks, counts: list[int], factor: int, column: str, values: int
) -> ColumnChunks:
    """What footers say of each row group where all have values of the whole range; few values are codes, with a dictionary that counts no more."""
    low, high = min(chunks.lows), max(chunks.highs)
    if column.endswith("key") and not column.endswith(("nationkey", "regionkey")):
        high *= factor
    groups = len(counts)
    width = sum(chunks.bytes) / max(1, sum(chunks.rows))
    if values <= FEW_VALUES:
        width = max(1, (values - 1).bit_length()) / 8
    sizes = [round(width * count) for count in counts]
    return replace(
        chunks, rows=counts, nulls=[0] * groups, lows=[low] * groups, highs=[high] * groups,
        bytes=sizes, values=sum(counts),
    )  # fmt: skip


def _ascending(chunks: ColumnChunks) -> ColumnChunks:
    """The same range cut into that of each row group; the key at an end is in two."""
    low, high = chunks.lows[0], chunks.highs[0]
    ends = [low + (high - low) * row // sum(chunks.rows) for row in accumulate(chunks.rows)]
    return replace(chunks, lows=[low, *ends[:-1]], highs=ends)
