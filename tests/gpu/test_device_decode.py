"""What was encoded on the device comes back as it was, whole and in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.expr import new_column
from fuseline.plan.types import BIGINT, VARCHAR, DataType, to_arrow

from .plans import TYPES, value

pytestmark = pytest.mark.gpu


def assert_comes_back(array: pa.Array, data_type: DataType) -> None:
    import pylibcudf as plc

    from fuseline.operators.gpu.pipeline.stored import decoded
    from fuseline.operators.gpu.scan.encode_columns import encode_by_libcudf
    from fuseline.operators.gpu.table import Table, device_type, to_arrow, to_device
    from fuseline.storage.columns.device_decode import codes_of
    from fuseline.storage.columns.encodings import EncodedColumn

    column = new_column("x", data_type)
    encoded = encode_by_libcudf(to_device(array, data_type), data_type)
    assert isinstance(encoded, EncodedColumn)
    codes = codes_of(encoded)
    for start, stop in ((0, len(array)), (len(array) // 3, len(array)), (0, len(array) // 2)):
        (part,) = plc.copying.slice(codes, [start, stop])
        table = Table(
            {column.id: decoded(part, encoded.encoding, device_type(data_type))}, stop - start
        )
        found = to_arrow(table, [column]).column(0).combine_chunks()
        expected = array.slice(start, stop - start)
        assert found.equals(expected) or repr(found.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", [k for k in TYPES if k not in ("hugeint", "wide", "ubigint")])
def test_each_type(kind: str, nulls: float, rows: int) -> None:
    random = np.random.default_rng(rows)
    pool = [value(random, TYPES[kind]) for _ in range(20)]
    values = [None if random.random() < nulls else pool[random.integers(20)] for _ in range(rows)]
    assert_comes_back(pa.array(values, to_arrow(TYPES[kind])), TYPES[kind])


@pytest.mark.parametrize("low", [0, -1, -(2**63), 2**62])
@pytest.mark.parametrize("step", [1, 100, 3 * 2**20])
@pytest.mark.parametrize("last", [0, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32])
def test_each_width(last: int, step: int, low: int) -> None:
    high = low + last * step
    values: list[Any] = [low, None, low + step * (last // 3), high, high, None]
    assert_comes_back(pa.array([v if v is None else min(v, 2**63 - 1) for v in values]), BIGINT)


@pytest.mark.parametrize("count", [1, 126, 127, 256, 257, 32_766, 32_767, 70_000])
def test_strings_of_each_code_width(count: int) -> None:
    # Of the most, a sample meets few
    rare = 9 if count > 1 << 16 else 1
    values = [
        f"text {n % count if n % rare == 0 else n % 100}" if n % 5 else None
        for n in range(max(65_536, 11 * count))
    ]
    assert_comes_back(pa.array(values), VARCHAR)
