"""What was encoded comes back as it was, whole and in parts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import fuseline
from fuseline.operators.cpu.table import decode as written_out, physical_type, to_physical
from fuseline.plan import types as t
from fuseline.plan.types import DataType, Kind
from fuseline.storage.columns.encode import encode
from fuseline.storage.columns.encodings import Encoding, codes_of

INTEGERS = (
    *(t.TINYINT, t.SMALLINT, t.INTEGER, t.BIGINT, t.UTINYINT, t.USMALLINT, t.UINTEGER),
    *(t.DATE, t.TIMESTAMP, t.decimal(9, 2), t.decimal(18, 4), t.decimal(38, 3)),
)
OTHERS = (t.UBIGINT, t.BOOLEAN, t.FLOAT, t.DOUBLE, t.VARCHAR)
I64 = 2**63
SPANS = (0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**62, 2**64 - 1)


def bounds(data_type: DataType) -> tuple[int, int]:
    """The least and the greatest register value."""
    if data_type.is_decimal:
        digits = min(data_type.precision, 18)
        return -(10**digits) + 1, 10**digits - 1
    if data_type.kind is Kind.DATE:
        return -(2**31) + 2, 2**31 - 2
    if data_type.kind is Kind.TIMESTAMP:
        return -I64 + 2, I64 - 2
    return data_type.integer_range


@st.composite
def integers(draw: st.DrawFn, data_type: DataType) -> list[int | None]:
    """Values some step apart, in a span that one of the widths just holds or just does not."""
    least, greatest = bounds(data_type)
    low = draw(st.integers(least, greatest))
    high = min(greatest, low + draw(st.sampled_from(SPANS)) * draw(st.sampled_from((1, 7, 100))))
    step = draw(st.sampled_from((1, 7, 100, 3 * 2**20)))
    place = st.integers(0, (high - low) // step)
    values = draw(st.lists(st.none() | place.map(lambda p: low + p * step), max_size=30))
    return values if draw(st.booleans()) else [v for v in values if v is not None]


def column(data_type: DataType, values: list[Any]) -> pa.Array:
    """Values in physical form; integers stand for what is behind decimals, dates and timestamps."""
    if data_type.is_wide_decimal:
        unscaled = [None if v is None else Decimal(v).scaleb(-data_type.scale) for v in values]
        return pa.array(unscaled, physical_type(data_type))
    expected = physical_type(data_type)
    if data_type in INTEGERS and pa.types.is_temporal(expected):
        return pa.array(values, pa.int32() if expected.bit_width == 32 else pa.int64()).view(
            expected
        )
    return pa.array(values, expected)


def assert_comes_back(array: pa.Array, data_type: DataType, bound: int = 0) -> None:
    encoded = encode(array, data_type)
    assert encoded is not None
    codes = codes_of(encoded)
    for part in (slice(None), slice(bound, None), slice(bound, bound + 9), slice(0, 0)):
        start, stop, _ = part.indices(len(array))
        length = max(0, stop - start)
        found = encoded.encoding.decode(codes.slice(start, length), physical_type(data_type))
        found.validate(full=True)
        expected = array.slice(start, length)
        assert written_out(found).type == written_out(expected).type
        if data_type.is_float:  # NaN equals NaN in text, and 0.0 not -0.0
            assert repr(found.to_pylist()) == repr(expected.to_pylist())
        else:
            assert written_out(found).equals(written_out(expected))


@pytest.mark.by_day
@pytest.mark.parametrize("data_type", INTEGERS, ids=str)
@given(st.data())
def test_integers_of_each_type_and_width(data_type: DataType, data: st.DataObject) -> None:
    values = data.draw(integers(data_type))
    array = column(data_type, values)
    assert_comes_back(array, data_type, data.draw(st.integers(0, 20)))


VALUES = {
    Kind.UBIGINT: st.integers(0, 2**63 - 1), Kind.BOOLEAN: st.booleans(), Kind.FLOAT: st.floats(width=32),
    Kind.DOUBLE: st.floats(), Kind.VARCHAR: st.text(max_size=3),
}  # fmt: skip


@pytest.mark.parametrize("data_type", OTHERS, ids=str)
@given(st.data())
def test_other_types(data_type: DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[data_type.kind], max_size=30))
    array = to_physical(column(data_type, values), data_type)
    assert_comes_back(array, data_type, data.draw(st.integers(0, 20)))


@pytest.mark.parametrize("data_type", [*INTEGERS, *OTHERS], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 70])
def test_nulls_alone(data_type: DataType, rows: int) -> None:
    array = to_physical(pa.nulls(rows, physical_type(data_type)), data_type)
    assert_comes_back(array, data_type, 3)


def test_many_blocks_on_threads() -> None:
    array = pa.array([None if n % 7 == 0 else n * 100 for n in range(300_000)], pa.int64())
    encoded = encode(array, t.BIGINT, 2)
    assert encoded is not None
    assert encoded.encoding.width == 4
    assert encoded.encoding.decode(codes_of(encoded), pa.int64(), 2).equals(array)


@pytest.mark.parametrize("values", [200, 300, 70_000])
def test_strings_of_each_code_width(values: int) -> None:
    codes = pa.array([n % values if n % 5 else None for n in range(2 * values)], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array([f"text {n}" for n in range(values)]))
    assert_comes_back(array, t.VARCHAR, 13)


def test_an_encoding_that_cannot_be_read_is_none() -> None:
    lacking = type("RunLength", (Encoding,), {"width": 4})
    with pytest.raises(TypeError, match="decode"):
        lacking()


def test_no_dtype_is_parsed_while_rows_are_read(tmp_path, monkeypatch):
    """NumPy reads texts such as "2i8" with Python's parser, which threads of Python 3.11 cannot use at once."""

    def parsed(text):
        raise AssertionError(f"NumPy parses {text}")

    values = [Decimal(i) for i in range(40)]
    pq.write_table(pa.table({"d": pa.array(values, pa.decimal128(38, 2))}), tmp_path / "t.parquet")
    monkeypatch.setattr(np._core._internal, "_commastring", parsed)
    for fuse in ("never", "always"):
        with fuseline.connect(device="cpu", fuse=fuse) as connection:
            table = connection.read_parquet(tmp_path / "t.parquet", "t")
            assert [row[0] for row in table.sort("d").fetchall()] == values
            assert connection.sql("select sum(d) from t where d > 1").fetchall() == [(779,)]
