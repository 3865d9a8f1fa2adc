"""NumPy's types of Arrow's values are those in which Arrow gives them."""

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.arrow.values_type import values_type

NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us")),
    *(pa.timestamp("ns"), pa.duration("us"), pa.time64("us")),
)


@pytest.mark.parametrize("arrow", NUMBERS, ids=str)
def test_values_are_read_by_their_type(arrow: pa.DataType) -> None:
    numbers = np.array([1, 0, 3], values_type(arrow))
    array = pa.Array.from_buffers(arrow, 3, [None, pa.py_buffer(numbers)])
    whole = array if pa.types.is_floating(arrow) else array.view(f"uint{arrow.bit_width}")
    assert whole.to_pylist() == [1, 0, 3]
    assert numbers.dtype.itemsize * 8 == arrow.bit_width


def test_truth_values_are_bytes_of_numpy() -> None:
    assert values_type(pa.bool_()) == np.dtype(bool)


def test_numbers_have_the_type_that_arrow_gives_them() -> None:
    for arrow in NUMBERS[:11]:
        assert values_type(arrow) == pa.nulls(1, arrow).fill_null(1).to_numpy().dtype
