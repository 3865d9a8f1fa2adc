"""The command line, run as a user runs it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.cli import configuration
from fuseline.errors import FuselineError
from tests.command_line import run

COMMAND = [sys.executable, "-c", "from fuseline.cli import main; main()"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2, None], "b": ["p", "q", "r"]}), path)
    return path


def test_sql_prints_a_table(file: Path) -> None:
    """In a process that nothing was imported in."""
    arguments = ["sql", f"select sum(a) as total from '{file}'", "--device", "cpu"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "total" in done.stdout.decode()
    assert "3" in done.stdout.decode()


def test_commands_open_a_folder(tmp_path: Path) -> None:
    place = str(tmp_path / "shop")
    made = run("sql", "create table t as select 7 as a", "--database", place, "--device", "cpu")
    assert made.returncode == 0, made.stderr
    shown = run("shell", place, "--readonly", "--device", "cpu", stdin="from t;\ndrop table t;")
    assert b"7" in shown.stdout
    assert b"only read" in shown.stderr
    assert shown.returncode == 1


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
    assert "2" in done.stdout.decode()
    assert "UnknownColumn" in done.stderr.decode()


def test_the_shell_reads_a_pipe_without_prompts() -> None:
    done = run("shell", "--device", "cpu", stdin="select ';\n' as a -- ;\n;\n.tables\nselect 42")
    printed = done.stdout.decode()
    assert "42" in printed
    assert "fuseline>" not in printed
    assert done.returncode == 0
    assert run("shell", "--device", "cpu", stdin="select x;\nselect 1;\n").returncode == 1


def test_the_shell_names_its_commands() -> None:
    done = run("shell", "--device", "cpu", stdin=".help\n.nosuch\nexit\nselect 77;\n")
    assert b".tables" in done.stdout
    assert b'There is no command ".nosuch"' in done.stderr
    assert b"77" not in done.stdout


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


def test_files_say_settings_and_how_the_shell_begins(tmp_path: Path) -> None:
    own, here = tmp_path / "config" / "fuseline", tmp_path / "here"
    own.mkdir(parents=True)
    here.mkdir()
    (own / "fuseline.toml").write_text(
        'threads = 3\nexternal_access = false\n[shell]\nmode = "csv"\n'
    )
    (here / "fuseline.toml").write_text(
        'threads = 2\nmax_memory = "1GB"\n[shell]\nheaders = false\n'
    )
    asked = "select value from duckdb_settings() where name in ('threads', 'memory_limit', 'external_access', 'device') order by name;"
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "FUSELINE_DEVICE": "cpu",
    }

    def shell(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return run(*arguments, "shell", "-c", asked, cwd=here, env=environment)

    assert shell().stdout.decode().split() == ["cpu", "false", "1000000000", "2"]
    for wrong, said in (
        ("external_access = true", "stays so"),
        ("cache_dir = '/tmp'", "cache_dir is chosen"),
        ("treads = 1", 'no setting "treads"'),
        ("[shell]\nmood = 1", "[shell] has no mood"),
        ("[shell]\nmode = true", "mode is no True"),
        ("=", "is no TOML"),
    ):
        (here / "fuseline.toml").write_text(wrong)
        assert said in refused(here, own), wrong
    (tmp_path / "other.toml").write_text("threads = 5\n[shell]\nmode = 'list'\n")
    assert shell("--config", str(tmp_path / "other.toml")).stdout.decode().split()[-1] == "5"


def refused(here: Path, own: Path) -> str:
    """What is said of the files of a folder and of a user."""
    before = configuration.typer.get_app_dir
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setattr(configuration.typer, "get_app_dir", lambda _: str(own))
        with pytest.raises(FuselineError) as error:
            configuration.configured(None)
    assert configuration.typer.get_app_dir is before
    return str(error.value)


def test_the_shell_runs_texts_and_files(tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("create table t as select 5 as a;\nselect nothing;\nselect 99;")
    done = run(
        "shell", "--device", "cpu", "--mode", "csv", "-f", str(script), "-c", "select 6 as six"
    )
    assert done.stdout.decode().split() == ["six", "6"]
    assert b"UnknownColumn" in done.stderr
    assert done.returncode == 1
    assert run("shell", "--device", "cpu", "-f", str(tmp_path / "none")).returncode == 1


def test_without_a_command_it_is_the_shell(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text('[shell]\nmode = "csv"\n')
    assert run(stdin="select 6 as six;").stdout == run("shell", stdin="select 6 as six;").stdout
    for options in (["--mode", "csv"], ["--config", str(config)], [f"--config={config}"]):
        done = run(*options, "-c", "select 6 as six")
        assert done.stdout.decode().split() == ["six", "6"]
    refused = run("--nothing")
    assert refused.returncode == 2
    assert b"--nothing" in refused.stderr
    assert run("nothing").returncode == 2


def test_completions_of_the_command() -> None:
    assert b"_fuseline_completion" in run("completions", "bash").stdout
    environment = {
        **os.environ,
        "COMP_WORDS": "fuseline do",
        "COMP_CWORD": "1",
        "_FUSELINE_COMPLETE": "complete_bash",
    }
    found = subprocess.run(
        [str(Path(sys.executable).parent / "fuseline")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.stdout.split() == ["doctor"]
