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
    done = run("explain", f"select sum(a) from '{file}'", "--device", "cpu")
    assert b"ParquetScan" in done.stdout


def test_explain_takes_queries_alone() -> None:
    done = run("explain", "create table x(a int)", "--device", "cpu")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Only queries can be explained: CREATE does not start one." in done.stderr
    assert run("explain", "create table x(a int); from x", "--device", "cpu").returncode == 0


def test_shell_takes_statements_over_several_lines(file: Path) -> None:
    done = run(
        "shell", "--device", "cpu", stdin=f"select max(a)\nfrom '{file}';\nselect x;\n.quit\n"
    )
    printed = done.stdout.decode()
    assert "2" in printed
    assert "UnknownName" in printed


def test_the_shell_reads_a_pipe_without_prompts() -> None:
    done = run("shell", "--device", "cpu", stdin="select ';\n' as a -- ;\n;\n.tables\nselect 42")
    printed = done.stdout.decode()
    assert "42" in printed
    assert "fuseline>" not in printed
    assert done.returncode == 0
    assert run("shell", "--device", "cpu", stdin="select x;\nselect 1;\n").returncode == 1


def test_the_shell_names_its_commands() -> None:
    printed = run("shell", "--device", "cpu", stdin=".help\n.nosuch\nexit\nselect 77;\n").stdout
    assert b".tables" in printed
    assert b'There is no command ".nosuch"' in printed
    assert b"77" not in printed


def test_sql_from_standard_input() -> None:
    done = run("sql", "-", "--device", "cpu", "--format", "csv", stdin="select 6 * 7 as answer")
    assert done.stdout.decode().splitlines() == ['"answer"', "42"]


def test_a_pipe_gets_whole_values() -> None:
    done = run("sql", f"select '{'x' * 200}' as a, 12345678 as b", "--device", "cpu")
    assert "x" * 200 in done.stdout.decode()


def test_intervals_are_written_as_duckdb_writes_them() -> None:
    query = "select interval '1 year -2 days 4 hours' as i"
    for form in ("table", "csv", "json"):
        done = run("sql", query, "--format", form, "--device", "cpu")
        assert "1 year -2 days 04:00:00" in done.stdout.decode()


def test_version_and_help() -> None:
    assert run("--version").stdout.decode().startswith("fuseline ")
    assert b"doctor" in run("-h").stdout


def test_doctor_runs_a_query_and_names_the_extra() -> None:
    printed = run("doctor").stdout.decode()
    assert "cpu: answers queries" in printed
    assert "not installed" not in printed or "'fuseline[cuda13]'" in printed
