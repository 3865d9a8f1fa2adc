"""Kernels on disk: shared by processes, made anew when they are damaged, kept in memory when nothing can be written."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from fuseline.codegen.compile import kernel_files
from fuseline.codegen.compile.kernel_files import KernelFile, kernel_file, kernel_key
from tests.compare import connected

QUERY = "select sum(v), count(*) from t where v > 1"
TABLE = pa.table({"v": [1, 2, 3]})
ADD = '"""Add."""\n\n\ndef add(a, b):\n    return a + b  # the sum\n'


def _answer(directory: Path, query: str = QUERY) -> object:
    with connected({"t": TABLE}, fuse="always", cache_dir=directory) as connection:
        return connection.sql(query).to_arrow().to_pylist()


def add(directory: Path) -> KernelFile:
    return kernel_file("add", ADD, [("a", "int64"), ("b", "int64")], directory, None)


def test_constants_share_a_kernel(tmp_path: Path) -> None:
    for constant in range(3):
        _answer(tmp_path, f"select sum(v) from t where v > {constant}")
    assert len(list(tmp_path.glob("q_*.py"))) == 1


def test_a_comment_or_plan_is_no_part_of_the_key() -> None:
    assert kernel_key('"""a"""\nx = 1  # b\n') == kernel_key('"""c"""\nx = 1  # d\n')
    assert kernel_key("x = 1\n") != kernel_key("x = 2\n")
    assert kernel_key("x = 1\n", "sm_90") != kernel_key("x = 1\n", "sm_80")


def test_a_kernel_is_compiled_once(tmp_path: Path) -> None:
    file = add(tmp_path)
    assert not file.is_compiled
    code, origin = file.machine_code()
    assert (origin, file.is_compiled) == ("compiler", True)
    assert add(tmp_path).machine_code() == (code, "memory")
    kernel_files.forget()
    assert add(tmp_path).machine_code() == (code, "disk")


def test_a_long_name_has_a_file(tmp_path: Path) -> None:
    name = "a" * 5000
    source = ADD.replace("add", name)
    file = kernel_file(name, source, [("a", "int64"), ("b", "int64")], tmp_path, None)
    assert file.machine_code()[1] == "compiler"
    kernel_files.forget()
    assert file.machine_code()[1] == "disk"


def test_what_lies_in_the_place_of_a_source_is_left_alone(tmp_path: Path) -> None:
    file = add(tmp_path)
    file.path.write_text("raise SystemExit")
    assert file.machine_code()[1] == "compiler"
    assert file.path.read_text() == "raise SystemExit"


def test_a_stored_kernel_runs_without_numba(tmp_path: Path) -> None:
    _answer(tmp_path)
    assert _fresh_process(tmp_path, "sys.modules['numba'] = None\n") == "5\n"
    # Nor does one that is compiled, by another process
    assert _fresh_process(tmp_path / "another", "sys.modules['numba'] = None\n") == "5\n"


def test_a_directory_that_cannot_be_written_gives_one_warning(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    expected = [{"sum(v)": 5, "count_star()": 2}]
    with pytest.warns(RuntimeWarning, match="FUSELINE_CACHE_DIR"):
        assert _answer(taken / "kernels") == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _answer(taken / "kernels") == expected


def test_several_processes_share_a_directory(tmp_path: Path) -> None:
    running = [_start(tmp_path) for _ in range(3)]
    outputs = [process.communicate(timeout=120) for process in running]
    assert {out for out, _ in outputs} == {"5\n"}, outputs
    assert len(list(tmp_path.glob("q_*.py"))) == 1


PROGRAM = f"""
import fuseline, pyarrow as pa
with fuseline.connect(device="cpu", fuse="always", cache_dir=sys.argv[1]) as connection:
    connection.register("t", pa.table({{"v": [1, 2, 3]}}))
    print(connection.execute({QUERY!r}).fetchone()[0])
"""


def _start(directory: Path, before: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"import sys\n{before}{PROGRAM}", str(directory)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _fresh_process(directory: Path, before: str = "") -> str:
    out, error = _start(directory, before).communicate(timeout=120)
    assert out, error
    return out
