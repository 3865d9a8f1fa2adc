"""The extremes of columns of integers, with and without NULL, by a kernel and by libcudf."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytestmark = pytest.mark.gpu
KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


@pytest.fixture(params=["always", "never"])
def fuse(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    from fuseline.operators.gpu.memory.device import kernel_files

    before, kernel_files.place = kernel_files.place, (tmp_path, request.param)
    yield request.param
    kernel_files.place = before


def test_extremes(fuse: str) -> None:
    import pylibcudf as plc

    from fuseline.operators.gpu.column_extremes import measured

    rng = np.random.default_rng(1)
    arrays, expected = [], []
    for kind in KINDS:
        ends = np.iinfo(kind)
        values = rng.integers(ends.min // 2, ends.max // 2, 3001).astype(kind)
        valid = rng.random(3001) < 0.5
        arrays += [pa.array(values), pa.array(values, mask=~valid)]
        expected += [(v.min(), v.max()) for v in (values, values[valid])]
    arrays += [pa.array([-(2**63), 2**63 - 1], pa.int64()), pa.array([7], pa.int32())]
    expected += [(-(2**63), 2**63 - 1), (7, 7)]
    arrays += [pa.array([None, None], pa.int64()), pa.array([], pa.int32())]
    columns = [plc.Column.from_arrow(array) for array in arrays]
    assert measured(columns) == [*expected, None, None]
    assert measured([]) == []
    (part,) = plc.copying.slice(columns[0], [5, 9])
    assert measured([part]) == [(min(arrays[0][5:9].to_pylist()), max(arrays[0][5:9].to_pylist()))]


WIDE = {
    "few bits": [0, 5, 2**63 - 1],
    "one": [12],
    "zero": [0, 0],
    "negative": [-1, -7],
    "both": [-1, 3],
    "64 bits": [2**63, 1],
    "65 bits": [2**64 + 1, 2**64 + 7],
    "ends": [-(10**38) + 1, 10**38 - 1],
    "low words alike": [5, 2**64 + 5],
}


@pytest.mark.parametrize("values", WIDE.values(), ids=WIDE)
def test_extremes_of_integers_of_128_bits(fuse: str, values: list[int]) -> None:
    import pylibcudf as plc

    from fuseline.operators.gpu.column_extremes import measured

    found = [Decimal(v) for v in values]
    wide = pa.array(found * 40, pa.decimal128(38, 0))
    beyond = pa.array([*found, Decimal(10**37), Decimal(-(10**37))], pa.decimal128(38, 0))
    with_nulls = pc.if_else(pa.array([*[True] * len(found), False, False]), beyond, None)
    none, small = pa.array([None, None], pa.decimal128(38, 0)), pa.array([3, 4], pa.int16())
    columns = [plc.Column.from_arrow(a) for a in (wide, small, with_nulls, none)]
    ends = min(values), max(values)
    assert measured(columns) == [ends, (3, 4), ends, None]
