"""Device objects of other libraries come in and go out without a copy."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import pytest

import fuseline
import fuseline.errors
from fuseline import col

pytestmark = pytest.mark.gpu


SETTINGS = {"device": "gpu"}


def test_cupy_arrays_are_a_table(connection: Any) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    keys = cupy.arange(1000, dtype=cupy.int64) % 7
    frame = connection.register("t", {"k": keys, "x": cupy.ones(1000, dtype=cupy.float64)})
    assert frame.columns == ["k", "x"]
    rows = connection.sql("select k, sum(x) as s from t group by k order by k").fetchall()
    assert rows == [(k, 143.0 if k < 6 else 142.0) for k in range(7)]


def test_cupy_memory_is_shared(connection: Any) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    values = cupy.zeros(10, dtype=cupy.int32)
    connection.register("t", {"v": values})
    values[:] = 5
    assert connection.sql("select sum(v) from t").fetchall() == [(Decimal(50),)]


def test_a_device_table_answers_on_the_cpu_too(connection: Any) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    connection.register("t", {"v": cupy.arange(5)})
    assert connection.table("t").filter(col("v") > 2).to_arrow().column("v").to_pylist() == [3, 4]
    assert connection.sql("select count(*) from t where v between 1 and 3").fetchall() == [(3,)]


def test_cudf_frames_come_in_and_go_out(connection: Any) -> None:
    cudf = pytest.importorskip("cudf", reason="cudf is not installed")
    source = cudf.DataFrame({"k": [1, 2, None], "s": ["a", None, "c"]})
    frame = connection.register("t", source).sort("k")
    assert frame.to_arrow().column("s").to_pylist() == ["a", None, "c"]
    back = frame.filter(col("k") > 1).to_cudf()
    assert back.to_arrow().column("k").to_pylist() == [2]


def test_to_cudf_without_cudf_names_the_extra(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cudf", None)
    with pytest.raises(fuseline.errors.DeviceError, match=r"fuseline\[cudf\]"):
        connection.sql("select 1").to_cudf()
