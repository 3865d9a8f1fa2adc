"""Runs of queries over files: again where one has changed meanwhile, without what was just written, from loaded columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import running
from fuseline.errors import FileError
from fuseline.storage.tables import parquet


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    write(path, [1, 2, 3])
    return path


def write(path: Path, values: list[int]) -> None:
    pq.write_table(pa.table({"v": values}), path)


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as written long ago, however soon they are read."""
    monkeypatch.setattr(parquet, "is_settled", lambda file: True)


def run_once_broken(patch: pytest.MonkeyPatch, before: Any) -> list[int]:
    """Have the first run of a plan end with a `FileError` after something happened; return what each run was, by number."""
    runs: list[int] = []
    for name in ("execute", "stream"):
        real = getattr(running, name)

        def broken(*given: Any, real: Any = real) -> Any:
            runs.append(len(runs))
            if len(runs) == 1:
                before()
                raise FileError("The file is not what its footer says.")
            return real(*given)

        patch.setattr(running, name, broken)
    return runs


def test_a_file_that_is_written_while_it_is_read_is_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fuseline.connect() as connection:
        query = connection.sql(f"select sum(v) as total from '{file}'")
        runs = run_once_broken(monkeypatch, lambda: write(file, [10, 20, 30, 40]))
        assert query.to_arrow().to_pylist() == [{"total": 100}]
        assert runs == [0, 1]


def test_a_file_that_stays_as_it_is_is_not_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fuseline.connect() as connection:
        query = connection.sql(f"select sum(v) from '{file}'")
        runs = run_once_broken(monkeypatch, lambda: None)
        with pytest.raises(FileError, match="footer"):
            query.to_arrow()
        assert runs == [0]
        assert query.to_arrow()[0].to_pylist() == [6]


def test_no_column_is_kept_of_a_file_that_was_just_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a file may be written again without another time or size."""
    monkeypatch.setattr(parquet, "is_settled", lambda file: False)
    query = f"select sum(v) from '{file}'"
    with fuseline.connect() as connection:
        forgotten: list[object] = []
        monkeypatch.setattr(connection._runner, "forget", forgotten.append)
        connection.sql(query).to_arrow()
        assert forgotten
        forgotten.clear()
        run_once_broken(monkeypatch, lambda: None)
        assert connection.sql(query).to_arrow()[0].to_pylist() == [6]
        assert forgotten


@pytest.mark.parametrize(("fuse", "lies"), [("never", "arrow"), ("always", "narrow")])
def test_columns_are_loaded_in_the_form_in_which_the_next_run_reads_them(
    file: Path, fuse: str, lies: str
) -> None:
    with fuseline.connect(fuse=fuse) as connection:
        connection.sql(f"from '{file}'").cache()
        connection.sql(f"select sum(v) from '{file}'").to_arrow()
        (column,) = connection.sql("from fuseline_columns()").to_arrow().to_pylist()
        assert column["encoding"].split()[0] == lies
        assert column["hits"] == 1
