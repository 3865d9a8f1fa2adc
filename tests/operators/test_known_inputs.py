"""Which kernels serve rows that other constants have left: numbers of rows, and what is told of their columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.ranges import I64_MAX, IntegerRange
from fuseline.codegen.row_sources import input_of
from fuseline.codegen.typed_values import Input
from fuseline.operators.known_inputs import (
    serve_column,
    serve_rows,
    widened,
    widened_count,
)
from fuseline.plan.expr import new_column
from fuseline.plan.types import BIGINT, DOUBLE, INTEGER, VARCHAR, decimal
from fuseline.storage.columns.encode import encode, encode_numbers

COUNTS = [0, 1, 2, 3, 4, 5, 1000, 1 << 20, (1 << 20) + 1]


def _told(values: pa.Array, data_type: object = INTEGER, narrow: bool = True) -> Input:
    encoded = encode(values, data_type, 1, narrow)
    assert encoded is not None
    return input_of(new_column("x", data_type), encoded)


@pytest.mark.parametrize("rows", COUNTS)
def test_kernels_for_more_rows_serve_as_many_and_fewer(rows: int) -> None:
    count = widened_count(rows)
    assert rows <= count <= max(4 * rows, 1)
    assert serve_rows(count, rows)
    assert serve_rows(count, rows - 1) is (rows > 2)
    assert not serve_rows(count, count + 1)


def test_no_row_and_one_row_have_kernels_of_their_own() -> None:
    assert not serve_rows(4, 0)
    assert not serve_rows(4, 1)
    assert not serve_rows(1 << 40, 2)  # whose memory is much too large


@pytest.mark.parametrize("high", [1, 200, 60_000, 2**31 - 1])
def test_what_is_told_of_integers_holds_for_fewer_of_them(high: int) -> None:
    values = pa.array([0, 1, high], pa.int64())
    told = widened(_told(values, BIGINT, narrow=False))
    fewer = replace(_told(pa.array([0, 1, high // 2], pa.int64()), BIGINT, narrow=False))
    assert serve_column(told, replace(_told(values, BIGINT, narrow=False), column=told.column))
    assert serve_column(told, replace(fewer, column=told.column))


@pytest.mark.parametrize("bits", [33, 34, 62, 63])
def test_a_sum_has_room_for_a_greater_one(bits: int) -> None:
    column = new_column("x", decimal(18, 4))
    found = input_of(column, encode_numbers(np.array([1, (1 << bits) - 1]), None, column.type))
    greater = IntegerRange(0, min(2 * (1 << bits) - 1, I64_MAX))
    assert serve_column(widened(found), replace(found, raw=greater))


def test_codes_are_widened_within_their_bytes() -> None:
    found = _told(pa.array([7, 8, 107], pa.int32()))
    assert found.raw is None
    told = widened(found)
    assert told.codes == 256
    assert told.interval == IntegerRange(7, 262)
    assert serve_column(told, replace(found, codes=250))
    assert not serve_column(found, told)
    assert not serve_column(told, replace(found, nullable=True))


def test_a_dictionary_serves_itself_alone() -> None:
    found = _told(pa.array(["a", "b"]), VARCHAR)
    assert widened(found) is found
    assert serve_column(found, _told(pa.array(["b", "a"]), VARCHAR))
    assert not serve_column(found, _told(pa.array(["a", "c"]), VARCHAR))


def test_doubles_serve_doubles_alone() -> None:
    found = _told(pa.array([0.5, 1.5]), DOUBLE)
    assert widened(found) == found
    assert serve_column(found, _told(pa.array([2.5, 1e300]), DOUBLE))
    assert not serve_column(found, _told(pa.array([1, 2], pa.int64()), BIGINT, narrow=False))
