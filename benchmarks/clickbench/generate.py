"""Write `hits` as Parquet: files of a million rows by as many processes as there are cores, a row group at a time.

Each row group has random numbers of its own (by seed and its place), so that the same rows come out whatever ran where, and memory
holds one row group a process.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.clickbench.columns import COLUMNS, SCHEMA, drawn
from benchmarks.zipf import generator

SEED = 43
FILE_ROWS, GROUP_ROWS = 1_000_000, 500_000


def make_hits(folder: Path, rows: int, processes: int | None = None) -> None:
    """Fill `folder` with the files of a table of so many rows."""
    starts = range(0, rows, FILE_ROWS)
    write = partial(_write_file, folder, rows)
    if len(starts) == 1:
        write(0)
        return
    workers = min(len(starts), processes or os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        list(pool.map(write, starts))


def row_group(rows: int, whole: int, start: int) -> pa.Table:
    """`rows` rows from row `start` on of a table of `whole` rows; texts that many rows share come as dictionaries."""
    hits = drawn(generator(SEED, start), rows, whole, start)
    made = {}
    for name, (kind, maker) in COLUMNS.items():
        found = maker(hits)
        made[name] = found if isinstance(found, pa.Array) else pa.array(found).cast(kind)
    return pa.table(made)


def _write_file(folder: Path, rows: int, start: int) -> None:
    pa.set_cpu_count(1)  # a process a core
    path = folder / f"{start // FILE_ROWS:03}.parquet"
    end = min(rows, start + FILE_ROWS)
    with _writer(path, row_group(0, rows, 0).schema) as writer:
        for first in range(start, end, GROUP_ROWS):
            number = min(GROUP_ROWS, end - first)
            writer.write_table(row_group(number, rows, first), row_group_size=GROUP_ROWS)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Bytes as the published file has them: without a word in it that they are text."""
    assert schema.names == SCHEMA.names
    return pq.ParquetWriter(path, schema, compression="snappy", store_schema=False)
