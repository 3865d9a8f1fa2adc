"""`fuseline warmup`: the kernels of a file of queries, compiled once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.cli.warmup import Warmed, warm_up
from tests.compare import connected
from tests.test_cli import run

SCRIPT = """
-- the first query
select sum(v) from t where k < 3;
create view w as select * from t;
select k, count(*) from w group by k; select nope from t;
select median(v) from t
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "t.parquet"
    pq.write_table(pa.table({"k": np.arange(1000) % 7, "v": np.arange(1000)}), found)
    return found


def warmed(path: Path, folder: Path) -> list[Warmed]:
    with connected({"t": path}, fuse="always", cache_dir=str(folder)) as connection:
        return list(warm_up(connection, SCRIPT))


def test_each_query_says_what_was_compiled(path: Path, tmp_path: Path) -> None:
    first, second, failed, unfused = warmed(path, tmp_path / "kernels")
    assert first.label.startswith("select sum(v) from t where k < 3 ")
    assert (first.found, first.compiled) == (0, 1)
    assert (second.found, second.compiled) == (0, 1)
    assert failed.error is not None
    assert (unfused.found, unfused.compiled, len(unfused.reasons)) == (0, 0, 1)
    assert len(list((tmp_path / "kernels").glob("q_*.py"))) == 2


def test_a_second_time_all_kernels_are_found(path: Path, tmp_path: Path) -> None:
    warmed(path, tmp_path / "kernels")
    again = warmed(path, tmp_path / "kernels")
    assert [(w.found, w.compiled) for w in again] == [(1, 0), (1, 0), (0, 0), (0, 0)]


def test_the_command_prints_a_line_a_query(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "kernels"))
    script = tmp_path / "queries.sql"
    script.write_text(f"create view t as select * from '{path}';\nselect sum(v) from t;")
    done = run("warmup", str(script), "--device", "cpu")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.decode().splitlines()
    assert "0 found, 1 compiled, " in line


def test_the_command_takes_tables_and_fails_with_a_query(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "queries.sql"
    script.write_text("select nope from t")
    done = run("warmup", str(script), "--device", "cpu", "--table", f"t={path}")
    assert done.returncode == 1
    assert b'no column "nope"' in done.stdout
    wrong = run("warmup", str(script), "--device", "cpu", "--table", "t")
    assert b"--table takes name=path" in wrong.stderr
    missing = run("warmup", str(tmp_path / "none.sql"), "--device", "cpu")
    assert b"none.sql cannot be read" in missing.stderr
