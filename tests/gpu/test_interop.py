"""Device objects of other libraries come in and go out without a copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import fuseline
import fuseline.errors
from fuseline import col

pytestmark = pytest.mark.gpu


@pytest.fixture
def db() -> Iterator[Any]:
    with fuseline.connect(device="gpu") as connection:
        yield connection


def test_cupy_arrays_are_a_table(db: Any) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    keys = cupy.arange(1000, dtype=cupy.int64) % 7
    frame = db.register("t", {"k": keys, "x": cupy.ones(1000, dtype=cupy.float64)})
    assert frame.columns == ["k", "x"]
    rows = db.sql("select k, sum(x) as s from t group by k order by k").fetchall()
    assert rows == [(k, 143.0 if k < 6 else 142.0) for k in range(7)]


def test_cupy_memory_is_shared(db: Any) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    values = cupy.zeros(10, dtype=cupy.int32)
    db.register("t", {"v": values})
    values[:] = 5
    assert db.sql("select sum(v) from t").fetchall() == [(Decimal(50),)]


def test_a_device_table_answers_on_the_cpu_too(db: Any) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    db.register("t", {"v": cupy.arange(5)})
    assert db.table("t").filter(col("v") > 2).to_arrow().column("v").to_pylist() == [3, 4]
    assert db.sql("select count(*) from t where v between 1 and 3").fetchall() == [(3,)]


def test_cudf_frames_come_in_and_go_out(db: Any) -> None:
    cudf = pytest.importorskip("cudf", reason="cudf is not installed")
    source = cudf.DataFrame({"k": [1, 2, None], "s": ["a", None, "c"]})
    frame = db.register("t", source).sort("k")
    assert frame.to_arrow().column("s").to_pylist() == ["a", None, "c"]
    back = frame.filter(col("k") > 1).to_cudf()
    assert back.to_arrow().column("k").to_pylist() == [2]


def test_to_cudf_without_cudf_names_the_extra(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudf", None)
    with pytest.raises(fuseline.errors.DeviceError, match=r"fuseline\[cudf\]"):
        db.sql("select 1").to_cudf()
