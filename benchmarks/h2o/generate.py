"""Write the five tables of the db-benchmark's shape as Parquet, a row group at a time, the same rows each time.

`x` has keys of K values (`id1`, `id2`, `id4`, `id5`) and of N / K (`id3`, `id6`), evenly drawn. A key of the tables to join has nine parts in ten in
common with that of `j`: the rest of each side is only there. `id4` to `id6` are the texts of `id1` to `id3`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.zipf import Integers, generator

SEED = 108
K = 100
GROUP_ROWS = 500_000
LEAST_SMALL = 10  # rows of `small`, which N / 1e6 would be below 10 M


def make_h2o(folder: Path, rows: int) -> None:
    """Fill `folder` with the tables for N = `rows`."""
    write(folder / "x.parquet", rows, lambda start, number: _grouped(rows, start, number))
    small, medium, big = (_keys(place, n) for place, n in enumerate(_sizes(rows)))
    keys = (small, medium, big)
    write(folder / "j.parquet", rows, lambda start, number: _left(keys, start, number))
    for depth, name in enumerate(("small", "medium", "big")):
        size = len(keys[depth][1])
        write(folder / f"{name}.parquet", size, lambda start, n, d=depth: _right(keys, d, start, n))


def write(path: Path, rows: int, made: Callable[[int, int], pa.Table]) -> None:
    """A file of `rows` rows from the row groups that a function makes, by their first row and their number of rows."""
    with pq.ParquetWriter(path, made(0, 0).schema, compression="snappy") as writer:
        for start in range(0, rows, GROUP_ROWS):
            writer.write_table(made(start, min(GROUP_ROWS, rows - start)))


def _sizes(rows: int) -> tuple[int, int, int]:
    return max(LEAST_SMALL, rows // 1_000_000), max(LEAST_SMALL, rows // 1_000), rows


def _grouped(rows: int, start: int, number: int) -> pa.Table:
    random = generator(SEED, 0, start)
    many = max(1, rows // K)
    few = [random.integers(1, K + 1, number) for _ in range(4)]
    large = [random.integers(1, many + 1, number) for _ in range(2)]
    return pa.table(
        {
            "id1": named(few[0], 3),
            "id2": named(few[1], 3),
            "id3": named(large[0], 10),
            "id4": pa.array(few[2], pa.int32()),
            "id5": pa.array(few[3], pa.int32()),
            "id6": pa.array(large[1], pa.int32()),
            "v1": pa.array(random.integers(1, 6, number), pa.int32()),
            "v2": pa.array(random.integers(1, 16, number), pa.int32()),
            "v3": np.round(random.random(number) * 100, 6),
        }
    )


def _keys(place: int, rows: int) -> tuple[Integers, Integers]:
    """The keys that `j` draws from, and those of the table to join: each once, in no order, nine of ten in both."""
    mixed = generator(SEED, 1, place).permutation(rows + rows // 10) + 1
    return mixed[:rows], generator(SEED, 2, place).permutation(mixed[rows // 10 :])


Keys = tuple[tuple[Integers, Integers], ...]


def _left(keys: Keys, start: int, number: int) -> pa.Table:
    random = generator(SEED, 3, start)
    return _joined([random.choice(left, number) for left, _ in keys], "v1", random)


def _right(keys: Keys, depth: int, start: int, number: int) -> pa.Table:
    """Rows of the table of this depth: its own key each once, those of smaller tables drawn."""
    random = generator(SEED, 4 + depth, start)
    drawn = [random.choice(right, number) for _, right in keys[:depth]]
    return _joined([*drawn, keys[depth][1][start : start + number]], "v2", random)


def _joined(columns: list[Integers], value: str, random: np.random.Generator) -> pa.Table:
    numbers = {f"id{i}": pa.array(c, pa.int32()) for i, c in enumerate(columns, 1)}
    texts = {f"id{i}": named(c) for i, c in enumerate(columns, 4)}
    values = np.round(random.random(len(columns[0])) * 100, 6)
    return pa.table(numbers | texts | {value: values})


def named(numbers: Integers, digits: int = 1) -> pa.Array:
    """`id` and the number with at least so many digits."""
    shown = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(pa.scalar("id"), shown, "")
