"""A Parquet file, the folder of a store, and that nothing of it outlives its connection."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from fuseline.operators.cpu.scan import read_parts

from .runs import ROWS, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=ROWS // 5)
    return tmp_path / "t.parquet"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "columns"


@pytest.fixture
def without_parquet(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function after which no column is read from a file."""

    def read(*_: object) -> None:
        raise AssertionError("Parquet was read")

    return lambda: monkeypatch.setattr(read_parts, "read_part", read)


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """No thread outlives its connection."""
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert "fuseline-column-store" not in names
