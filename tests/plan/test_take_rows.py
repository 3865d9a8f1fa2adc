"""Rows of arrays, against what pyarrow's own function makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.arrow.take_rows import take_rows

ARRAYS = [
    pa.array([1, None, 3]),
    pa.array([1.5, 2.5], pa.float32()),
    pa.array([], pa.int64()),
    pa.array(["a", None, "", "bcd"]),
    pa.array([True, False, None]),
    pa.array([None, 5], pa.decimal128(12, 2)),
    pa.array([0, 1], pa.date32()),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_rows_are_those_of_their_numbers(array: pa.Array) -> None:
    numbers = pa.array([*reversed(range(len(array))), None], pa.int64())
    assert take_rows(array, numbers).equals(array.take(numbers))


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(pa.ArrowIndexError):
        take_rows(pa.array([1]), pa.array(np.array([1])))
