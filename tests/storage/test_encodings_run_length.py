"""An encoding that the engine does not have, added as others would be: kernels, operators and the column store read it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu.scan import encoded
from fuseline.storage.columns.encode import with_order
from fuseline.storage.columns.encodings import Array, EncodedColumn, Encoding, PlaceTerms, T
from tests.compare import assert_same_as_duckdb

_ONES = np.array([number.bit_count() for number in range(256)], np.uint8)


@dataclass(frozen=True, slots=True)
class RunLength(Encoding):
    """The codes of runs; `_first` counts for every eight rows the runs before them, `_starts` has a bit for each row that begins one."""

    flat: Encoding

    def __str__(self) -> str:
        return f"runs of {self.flat}"

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.flat.width

    @property
    def base(self) -> int:  # type: ignore[override]
        return self.flat.base

    @property
    def step(self) -> int:  # type: ignore[override]
        return self.flat.step

    @property
    def values(self) -> pa.Array | None:  # type: ignore[override]
        return self.flat.values

    @property
    def is_float(self) -> bool:  # type: ignore[override]
        return self.flat.is_float

    @property
    def form(self) -> Hashable:
        return type(self), self.flat.form

    @property
    def arrays(self) -> tuple[tuple[str, str], ...]:
        others = ("_first", "uint32"), ("_starts", "uint8"), ("_ones", "uint8")
        return (*self.flat.arrays, *others)

    def count(self, high: int | None) -> int | None:
        return self.flat.count(high)

    def place(self, row: T, terms: PlaceTerms[T]) -> T:
        eight = terms.apply(">>", row, 3)
        before = terms.apply("-", terms.apply("<<", 2, terms.apply("&", row, 7)), 1)
        begun = terms.apply("&", terms.element("_starts", eight), before)
        count = terms.element("_ones", begun)
        return terms.apply("-", terms.apply("+", terms.element("_first", eight), count), 1)

    def row_codes(self, column: EncodedColumn, rows: slice) -> Array:
        start, end, step = rows.indices(column.rows)
        first, starts, _ = column.others
        at = start // 8
        bits = np.unpackbits(starts[at : -(-end // 8)], bitorder="little")
        if not len(bits):
            return column.codes[:0]
        runs = np.int64(first[at]) + np.cumsum(bits, dtype=np.int64) - 1
        return column.codes[runs[start - 8 * at : end - 8 * at : step]]

    def registers(self, codes: Array) -> Array:
        return self.flat.registers(codes)

    def decode(self, codes: pa.Array, arrow_type: pa.DataType, threads: int = 1) -> pa.Array:
        return self.flat.decode(codes, arrow_type, threads)


def in_runs(column: EncodedColumn) -> EncodedColumn:
    """Return a column without order in runs else as it is."""
    if column.ascending or column.clustered or column.others or not column.rows:
        return column
    codes = column.codes
    begins = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=begins[1:])
    runs = np.flatnonzero(begins)
    starts = np.packbits(begins, bitorder="little")
    counts = _ONES[starts].astype(np.uint32)
    first = np.cumsum(counts, dtype=np.uint32) - counts
    return replace(
        column,
        encoding=RunLength(column.encoding),
        codes=codes[runs],
        others=(first, starts, _ONES),
    )


ROWS = 20_003
TEXTS = [
    "select count(*), sum(v), sum(w), min(s) from t where s <> 's3' and w > 0",
    "select s, v, count(*), sum(f), max(w) from t group by s, v order by s, v",
    "select k, w, s, f from t where v = 7 order by k limit 50",
    "select t.s, count(*), count(u.f) from t left join t as u on t.v = u.k and u.s is not null group by t.s order by 1",
]


def rows() -> pa.Table:
    draw = np.random.default_rng(5)

    def runs(values: Array, length: int) -> Array:
        return np.repeat(values, length)[:ROWS]

    mask = runs(draw.random(ROWS) < 0.1, 80)
    values = runs(draw.integers(0, 50, ROWS), 100)
    texts = np.array([f"s{i}" for i in range(9)])[values % 9]
    wide = runs(draw.integers(-(10**12), 10**12, ROWS), 37)
    columns = {"v": pa.array(values, mask=mask), "w": wide, "s": pa.array(texts, mask=mask)}
    return pa.table({**columns, "f": runs(draw.integers(0, 90, ROWS) / 4, 50), "k": range(ROWS)})


@pytest.mark.parametrize("text", TEXTS)
def test_a_new_encoding_is_one_class_and_one_line(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[EncodedColumn] = []

    def choose(column: EncodedColumn, threads: int) -> EncodedColumn:
        made.append(in_runs(with_order(column, threads)))
        return made[-1]

    monkeypatch.setattr(encoded, "with_order", choose)
    assert_same_as_duckdb(text, {"t": rows()}, fuse=("always", "never"))
    assert any(isinstance(column.encoding, RunLength) for column in made)
    assert all(column.flat().codes.size == column.rows for column in made)
