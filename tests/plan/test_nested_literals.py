"""Values of Python, NumPy and pandas as constants."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd

import fuseline


def test_arrays_and_buffers_are_lists_and_bytes() -> None:
    """Of NumPy and pandas, whose long arrays show themselves alike."""
    connection = fuseline.connect(device="cpu")

    def answer(text: str, value: object) -> object:
        return connection.execute(text, [value]).fetchall()

    first, second = np.zeros(3000, np.int64), np.zeros(3000, np.int64)
    second[1500] = 7
    assert [answer("select list_sum(?)", a) for a in (first, second)] == [
        [(0,)],
        [(7,)],
    ]
    for value, wanted in (
        (np.array([[1.5], [2.0]]), [[1.5], [2.0]]),
        (np.array(["2024-01-01"], "datetime64[ns]"), [datetime(2024, 1, 1)]),
        (pd.Series(["a", None]), ["a", None]),
        (pd.NA, None),
        ([pd.NaT, pd.Timestamp("2024-01-01")], [None, datetime(2024, 1, 1)]),
        (bytearray(b"x"), b"x"),
        (memoryview(b"yz"), b"yz"),
        ({"a": np.array([1])}, {"a": [1]}),
    ):
        assert answer("select ? as x", value) == [(wanted,)]
        assert connection.sql("select 1 as a").select(x=fuseline.lit(value)).fetchall() == [
            (wanted,)
        ]
