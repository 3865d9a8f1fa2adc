"""The bytes of text rows, and that a column is widened for what is picked alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu import table
from fuseline.operators.cpu.string_bytes import picked_bytes, string_bytes

TEXTS = pa.array(["", "a", None, "äö", "a longer text", "b"])


@pytest.mark.parametrize("offset", [0, 1, 3, 6])
def test_bytes_of_all_rows(offset: int) -> None:
    part = TEXTS.slice(offset)
    expected = sum(len(text.encode()) for text in part.to_pylist() if text is not None)
    assert string_bytes(part) == expected
    assert picked_bytes(part, pa.array(np.arange(len(part)))) == expected


@pytest.mark.parametrize("index", [pa.int32(), pa.int64()])
def test_bytes_of_some_rows(index: pa.DataType) -> None:
    assert picked_bytes(TEXTS.slice(1), pa.array([2, 2, None, 0], index)) == 4 + 4 + 1
    assert picked_bytes(TEXTS, pa.array([], index)) == 0
    assert picked_bytes(TEXTS.slice(6), pa.array([None], index)) == 0


def test_only_what_is_too_long_together_is_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "STRING_LIMIT", 26)
    for rows, arrow in (([4, 4], pa.string()), ([4, 4, 1], pa.large_string())):
        picked = table.take_array(TEXTS, np.array(rows))
        assert picked.type == arrow
        assert picked.to_pylist() == [TEXTS[row].as_py() for row in rows]
