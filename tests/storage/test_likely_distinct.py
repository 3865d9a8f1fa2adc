"""The bits of dictionary codes tell roughly how many values a column has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.storage.parquet import ParquetTable


def guess(path: Path, values: list[object], **options: object) -> int | None:
    pq.write_table(pa.table({"x": values}), path / "x.parquet", **options)
    return ParquetTable.open([str(path / "x.parquet")]).chunks("x").likely_distinct


@pytest.mark.parametrize("count", [3, 25, 200])
def test_few_values(tmp_path: Path, count: int) -> None:
    found = guess(tmp_path, [f"value {i * 7919 % count}" for i in range(100_000)])
    assert found is not None
    assert count / 2 <= found <= count * 3


def test_a_column_of_keys_is_not_guessed_at(tmp_path: Path) -> None:
    assert guess(tmp_path, [f"key {i}" for i in range(100_000)]) is None


def test_a_column_without_dictionary_is_not_guessed_at(tmp_path: Path) -> None:
    assert guess(tmp_path, ["a", "b"] * 1000, use_dictionary=False) is None


def test_no_rows(tmp_path: Path) -> None:
    assert guess(tmp_path, pa.array([], pa.string())) is None  # type: ignore[arg-type]
