"""The command line, run as a user runs it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

COMMAND = [sys.executable, "-c", "from fuseline.cli import main; main()"]


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments], input=stdin.encode(), capture_output=True, check=False, timeout=120
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2, None], "b": ["p", "q", "r"]}), path)
    return path


def test_sql_prints_a_table(file: Path) -> None:
    done = run("sql", f"select sum(a) as total from '{file}'", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "total" in done.stdout.decode()
    assert "3" in done.stdout.decode()


def test_sql_writes_json_csv_and_arrow(file: Path) -> None:
    query = f"select a, b from '{file}' order by b"
    as_json = run("sql", query, "--format", "json", "--device", "cpu")
    assert json.loads(as_json.stdout)[2] == {"a": None, "b": "r"}
    as_csv = run("sql", query, "--format", "csv", "--device", "cpu")
    assert as_csv.stdout.decode().splitlines()[1] == '1,"p"'
    as_arrow = run("sql", query, "--format", "arrow", "--device", "cpu")
    assert pa.ipc.open_stream(io.BytesIO(as_arrow.stdout)).read_all().num_rows == 3


def test_an_error_has_a_caret_and_a_status(file: Path) -> None:
    done = run("sql", f"select c from '{file}'", "--device", "cpu")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1].strip() == "^"
    assert b"Traceback" not in done.stderr


def test_explain(file: Path) -> None:
    done = run("explain", f"select count(*) from '{file}'", "--device", "cpu")
    assert b"ParquetScan" in done.stdout


def test_shell_takes_statements_over_several_lines(file: Path) -> None:
    done = run(
        "shell", "--device", "cpu", stdin=f"select max(a)\nfrom '{file}';\nselect x;\n.quit\n"
    )
    printed = done.stdout.decode()
    assert "2" in printed
    assert "UnknownName" in printed


def test_doctor_runs_a_query() -> None:
    done = run("doctor")
    assert "cpu: answers queries" in done.stdout.decode()
