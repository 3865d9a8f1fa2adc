"""Encoded columns decode to what they were made of, and lie in as few bytes as they can."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu.table import to_physical
from fuseline.plan import types as t
from fuseline.plan.types import DataType
from fuseline.storage.columns.encode import encode
from fuseline.storage.columns.encodings import (
    BLOCK,
    PADDING,
    Dictionary,
    EncodedColumn,
    Narrow,
    Plain,
)


def _encoded(values: Any, data_type: DataType, threads: int = 1) -> EncodedColumn:
    array = values if isinstance(values, pa.Array) else pa.array(values, t.to_arrow(data_type))
    column = encode(to_physical(array, data_type), data_type, threads)
    assert column is not None
    return column


def _decoded(column: EncodedColumn) -> list[Any]:
    """Register values, None for NULL."""
    match column.encoding:
        case Narrow(base, step):
            values = [base + step * int(c) for c in column.codes]
        case Dictionary(strings):
            values = [strings[int(c)].as_py() if len(strings) else None for c in column.codes]
        case Plain():
            values = column.codes.tolist()
    if column.validity is None:
        return values
    bits = np.unpackbits(column.validity, bitorder="little")[: column.rows]
    return [v if bit else None for v, bit in zip(values, bits, strict=True)]


@pytest.mark.parametrize(("values", "base", "step", "width"), [
    ([5], 5, 1, 1), ([7, 7, 7], 7, 1, 1), ([0, 255], 0, 1, 1), ([0, 255, 1], 0, 1, 1), ([0, 256, 1], 0, 1, 2),
    ([-1, 65534, 0], -1, 1, 2), ([0, 65536, 1], 0, 1, 4),
    ([100, 5000, 300], 100, 100, 1),
    ([0, 1000 * 2**32 - 1000, 1000], 0, 1000, 4),
    ([0, 2**32, 1], 0, 1, 8),
    ([-(2**63), 2**63 - 1], 0, 1, 8),
    ([-(2**63), -(2**63) + 300], -(2**63), 300, 1),
    ([2**63 - 1, 2**63 - 3, 2**63 - 2], 2**63 - 3, 1, 1),
])  # fmt: skip
def test_the_narrowest_width(values: list[int], base: int, step: int, width: int) -> None:
    column = _encoded(values, t.BIGINT)
    assert (column.low, column.high) == (min(values), max(values))
    assert _decoded(column) == values
    if width == 8:
        assert column.encoding == Narrow(0, 1, 8)
    else:
        assert column.encoding == Narrow(base, step, width)
    with_null = [None, *values, None]
    assert _decoded(_encoded(with_null, t.BIGINT)) == with_null


def test_a_step_that_the_sample_missed() -> None:
    values = np.arange(30_000, dtype=np.int64) * 100
    values[20_001] += 50
    column = _encoded(pa.array(values), t.BIGINT)
    assert column.encoding == Narrow(0, 50, 2)
    assert _decoded(column) == values.tolist()
    values[25_003] += 1
    assert _encoded(pa.array(values), t.BIGINT).encoding == Narrow(0, 1, 4)


@pytest.mark.parametrize("data_type", [t.TINYINT, t.SMALLINT, t.INTEGER, t.BIGINT])
def test_the_ends_of_each_type(data_type: DataType) -> None:
    low, high = data_type.integer_range
    values = [high, None, low, 0]
    assert _decoded(_encoded(values, data_type)) == values


@pytest.mark.parametrize("data_type", [t.UTINYINT, t.USMALLINT, t.UINTEGER])
def test_unsigned_integers(data_type: DataType) -> None:
    values = [data_type.integer_range[1], None, 0, 3]
    assert _decoded(_encoded(values, data_type)) == values


def test_unsigned_integers_beyond_63_bits_are_not_encoded() -> None:
    assert encode(pa.array([2**64 - 1], pa.uint64()), t.UBIGINT) is None
    assert _decoded(_encoded([2**63 - 1, None], t.UBIGINT)) == [2**63 - 1, None]


def test_wide_decimals_that_fit_64_bits() -> None:
    wide = t.decimal(38, 2)
    values = [Decimal("-1.50"), None, Decimal("12345678901234567.89")]
    assert _decoded(_encoded(values, wide)) == [-150, None, 1234567890123456789]
    array = pa.array([Decimal(10) ** 30], pa.decimal128(38, 2))
    assert encode(to_physical(array, wide), wide) is None


def test_dates_timestamps_and_truth_values() -> None:
    assert _decoded(_encoded(pa.array([0, -5, None], pa.date32()), t.DATE)) == [0, -5, None]
    moments = pa.array([0, None, 10**15], pa.timestamp("us"))
    assert _decoded(_encoded(moments, t.TIMESTAMP)) == [0, None, 10**15]
    assert _decoded(_encoded([True, None, False], t.BOOLEAN)) == [1, None, 0]


def test_floats_stay() -> None:
    column = _encoded([1.5, None, -0.0, float("inf")], t.DOUBLE)
    assert column.encoding == Plain(8)
    assert _decoded(column) == [1.5, None, 0.0, float("inf")]
    assert _encoded([1.5], t.FLOAT).encoding == Plain(4)


def test_strings_are_codes_in_the_order_of_the_values() -> None:
    values = ["b", None, "a", "", "é", "b"]
    column = _encoded(values, t.VARCHAR)
    assert isinstance(column.encoding, Dictionary)
    assert column.encoding.values.to_pylist() == ["", "a", "b", "é"]
    assert _decoded(column) == values


def test_a_dictionary_that_repeats_values_or_holds_null() -> None:
    indices = pa.array([0, 1, 2, 3, None], pa.int32())
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "a", "x", None]))
    column = _encoded(array, t.VARCHAR)
    assert _decoded(column) == ["x", "a", "x", None, None]


def test_strings_that_differ_in_most_rows_are_not_encoded() -> None:
    array = pa.array([str(i) for i in range(20_000)])
    assert encode(array, t.VARCHAR) is None


@pytest.mark.parametrize("data_type", [t.BIGINT, t.decimal(38, 2), t.DOUBLE, t.VARCHAR, t.BOOLEAN])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_nulls_alone(data_type: DataType, rows: int) -> None:
    column = _encoded([None] * rows, data_type)
    assert _decoded(column) == [None] * rows
    assert (column.rows, column.nulls) == (rows, rows)


@pytest.mark.parametrize("rows", [1, 63, 64, 65])
def test_buffers_are_padded(rows: int) -> None:
    column = _encoded([None, *range(rows)], t.BIGINT)
    assert column.codes.base.nbytes % PADDING == 0
    assert column.validity.base.nbytes % PADDING == 0


def test_slices() -> None:
    array = pa.array([1, None, 300, 4, None, 70_000, 7])
    for start in range(5):
        assert _decoded(_encoded(array.slice(start, 3), t.BIGINT)) == array.to_pylist()[start:][:3]


@pytest.mark.parametrize("threads", [1, 3])
def test_many_blocks(threads: int) -> None:
    values = np.arange(5 * BLOCK + 7) * 40_000 - 11
    mask = values % 3 == 0
    column = _encoded(pa.array(values, mask=mask), t.BIGINT, threads)
    assert column.encoding.step == 40_000
    assert _decoded(column) == [
        None if m else v for v, m in zip(values.tolist(), mask, strict=True)
    ]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [BLOCK, BLOCK + 1, 7 * BLOCK + 5])
def test_strings_of_many_blocks(threads: int, rows: int) -> None:
    """Each of which has some that the one before lacks, and NULLs."""
    codes = (np.arange(rows) // 1000 + np.arange(rows) % 7).tolist()
    array = pa.array([None if code % 11 == 3 else f"é{code}" for code in codes], pa.large_string())
    column = encode(array, t.VARCHAR, threads)
    assert column is not None
    values = sorted(set(array.drop_null().to_pylist()))
    assert column.encoding.values.to_pylist() == values
    picked = slice(None, None, 997)
    assert _decoded(column)[picked] == array.to_pylist()[picked]


@pytest.mark.parametrize("threads", [1, 3])
def test_strings_of_which_a_later_block_has_too_many(threads: int) -> None:
    array = pa.array(["one"] * BLOCK + [str(i) for i in range(5 * BLOCK)])
    assert encode(array, t.VARCHAR, threads) is None


@pytest.mark.parametrize(
    ("values", "rows", "coded"),
    [
        (5000, 10_000, True), (9_000, 10_000, False), (60_000, 120_000, True), (60_000, 400_000, True), (70_000, 280_000, False),
        (4096, 4096, True), (60_000, 66_000, False),
    ],
)  # fmt: skip
def test_texts_whose_values_come_again_have_a_dictionary(
    values: int, rows: int, coded: bool
) -> None:
    texts = [f"id {n * 7919 % values}" for n in range(rows)]
    found = encode(pa.array(texts), t.VARCHAR)
    assert (found is not None) is coded
    assert found is None or _decoded(found) == texts


def test_a_frequent_text_among_many_others_makes_no_dictionary() -> None:
    texts = [f"id {n}" if n % 2 else "often" for n in range(300_000)]
    assert encode(pa.array(texts), t.VARCHAR) is None
