"""Text that becomes numbers, at the edges of types."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb


@pytest.mark.parametrize("text", [str(1 << 127), str((1 << 127) + 1), str(-(1 << 127) - 1)])
def test_text_at_the_edge_of_128_bits(text: str) -> None:
    query = "select try_cast(s as hugeint) as h, s from t"
    assert_same_as_duckdb(query, {"t": pa.table({"s": [text]})})


def test_a_cast_beyond_128_bits_is_an_error() -> None:
    with fuseline.connect("cpu") as connection, pytest.raises(FuselineError, match="HUGEINT"):
        connection.execute(f"select cast('{1 << 127}' as hugeint)").fetchall()
