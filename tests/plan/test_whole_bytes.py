"""Slices whose bits begin within a byte are copied, and others stay as they are."""

from decimal import Decimal

import pyarrow as pa
import pytest

from fuseline.plan.arrow.whole_bytes import whole_bytes

VALUES = {
    "truth values": [True, None, False] * 30,
    "numbers": [1, None, 3] * 30,
    "texts": ["a", None, "a longer one"] * 30,
    "decimals": [Decimal("1.5"), None, Decimal(0)] * 30,
    "NULL alone": [None] * 90,
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("rows", [0, 1, 60])
def test_chunks_begin_with_a_byte(values: list[object], rows: int) -> None:
    whole = pa.array(values)
    for offset in range(17):
        given = pa.chunked_array([whole.slice(offset, rows), whole])
        found = whole_bytes(given)
        assert found.equals(given)
        assert found.type == given.type
        assert [chunk.offset % 8 for chunk in found.chunks] == [0, 0]


def test_chunks_that_begin_with_a_byte_or_have_no_bits_stay() -> None:
    given = pa.chunked_array([pa.array([True, False] * 20)[8:], pa.array([None, True])])
    assert whole_bytes(given) is given
    without_bits = pa.chunked_array([pa.array(["a", "b"] * 20)[3:], pa.array(["c"])])
    assert whole_bytes(without_bits) is without_bits
    assert whole_bytes(pa.chunked_array([], pa.bool_())).num_chunks == 0
