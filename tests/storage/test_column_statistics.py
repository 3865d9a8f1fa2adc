"""The bits of dictionary codes tell roughly how many values a column has, row groups whether these are in order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.storage.tables.parquet import ParquetTable


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


ORDERED = [1, 2, 2, 3, 3, 4, 9, 9]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (ORDERED, True),
        ([str(v) for v in ORDERED], True),
        (ORDERED[:2], False),  # one row group says nothing
        ([2, 1, 2, 3, 3, 4, 9, 9], True),  # it is a guess
        (ORDERED[::-1], False),
        ([1, 3, 2, 4, 3, 5, 9, 9], False),
        ([1, 2, None, None, 3, 4, 9, 9], False),
        ([float(v) for v in ORDERED], False),  # NaN may be above
    ],
)
def test_row_groups_that_follow_one_another(
    tmp_path: Path, values: list[object], expected: bool
) -> None:
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet", row_group_size=2)
    found = ParquetTable.open([str(tmp_path / "x.parquet")])
    assert found.statistics().columns["x"].likely_sorted is expected


def comes_again(path: Path, values: list[object], **options: object) -> bool:
    pq.write_table(pa.table({"x": values}), path / "x.parquet", **options)
    return ParquetTable.open([str(path / "x.parquet")]).statistics().columns["x"].comes_again()


IDS = [f"id {n * 7919 % 30_000}" for n in range(60_000)]


def test_text_that_comes_again_though_files_have_no_dictionary(tmp_path: Path) -> None:
    assert comes_again(tmp_path, [*IDS, None], use_dictionary=False)
    # A dictionary that grew too large
    assert comes_again(tmp_path, [None, *IDS], dictionary_pagesize_limit=10_000)


@pytest.mark.parametrize(
    "values", [[f"key {n}" for n in range(60_000)], [n // 2 for n in range(60_000)], [], [None]]
)
def test_what_does_not_come_again_or_is_no_text(tmp_path: Path, values: list[object]) -> None:
    assert not comes_again(tmp_path, values, use_dictionary=False)


def test_rows_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    """The query that reads them tells what is wrong."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": IDS}), path, use_dictionary=False, compression="zstd")
    data = bytearray(path.read_bytes())
    data[100:2000] = bytes(1900)
    path.write_bytes(data)
    assert not ParquetTable.open([str(path)]).statistics().columns["x"].comes_again()
