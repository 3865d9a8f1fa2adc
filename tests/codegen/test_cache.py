"""Kernel files: shared, rebuilt when damaged, kept in memory when nothing can be written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline.codegen.targets.cache import binary, kernel_key, source_file

QUERY = "select sum(v), count(*) from t where v > 1"
TABLE = pa.table({"v": [1, 2, 3]})


def _answer(directory: Path, query: str = QUERY) -> object:
    with fuseline.connect(device="cpu", fuse="always", cache_dir=directory) as connection:
        connection.register("t", TABLE)
        return connection.sql(query).to_arrow().to_pylist()


def test_constants_share_a_kernel(tmp_path: Path) -> None:
    for constant in range(3):
        _answer(tmp_path, f"select sum(v) from t where v > {constant}")
    assert len(list(tmp_path.glob("q_*.py"))) == 1


def test_a_comment_or_plan_is_no_part_of_the_key() -> None:
    assert kernel_key('"""a"""\nx = 1  # b\n') == kernel_key('"""c"""\nx = 1  # d\n')
    assert kernel_key("x = 1\n") != kernel_key("x = 2\n")
    assert kernel_key("x = 1\n", "sm_90") != kernel_key("x = 1\n", "sm_80")


def test_a_damaged_source_is_written_anew(tmp_path: Path) -> None:
    path = source_file(tmp_path, "scan", "abc", "x = 1\n")
    path.write_bytes(b"\xff\xfe broken")
    assert source_file(tmp_path, "scan", "abc", "x = 1\n").read_text() == "x = 1\n"


def test_a_source_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = source_file(tmp_path, "scan", "abc", "x = 1  # one\n")
    source_file(tmp_path, "scan", "abc", "x = 1  # two\n")
    assert path.read_text() == "x = 1  # one\n"


@pytest.mark.parametrize("damaged", [b"", b"short", b"\0" * 200])
def test_damaged_machine_code_is_built_again(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "kernel.cubin"
    assert binary(path, lambda: b"code") == b"code"
    assert binary(path, lambda: b"other") == b"code"
    path.write_bytes(damaged)
    assert binary(path, lambda: b"rebuilt") == b"rebuilt"
    assert binary(path, lambda: b"other") == b"rebuilt"


def test_files_are_not_read_again_unless_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def reading(method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(path: Path, *args: Any, **options: Any) -> Any:
            read.append(path.name)
            return method(path, *args, **options)

        return noted

    for name in ("read_text", "read_bytes"):
        monkeypatch.setattr(Path, name, reading(getattr(Path, name)))
    made = tmp_path / "kernel.cubin"
    for _ in range(3):
        path = source_file(tmp_path, "scan", "abc", "x = 1\n")
        assert binary(made, lambda: b"code") == b"code"
    assert sorted(read) == [made.name, path.name]
    path.unlink()
    made.write_bytes(b"damaged")
    assert source_file(tmp_path, "scan", "abc", "x = 1\n").exists()
    assert binary(made, lambda: b"rebuilt") == b"rebuilt"


def test_damaged_files_are_compiled_again(tmp_path: Path) -> None:
    expected = _fresh_process(tmp_path)
    for file in tmp_path.glob("q_*.o"):
        file.write_bytes(b"broken")
    assert _fresh_process(tmp_path) == expected


def test_a_stored_kernel_runs_without_numba(tmp_path: Path) -> None:
    expected = _fresh_process(tmp_path)
    assert _fresh_process(tmp_path, "sys.modules['numba'] = None\n") == expected
    # Nor does one that is compiled, by another process
    assert _fresh_process(tmp_path / "another", "sys.modules['numba'] = None\n") == expected


def test_a_directory_that_cannot_be_written_gives_a_warning(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.warns(RuntimeWarning, match="FUSELINE_CACHE_DIR"):
        assert _answer(taken / "kernels") == [{"sum(v)": 5, "count_star()": 2}]


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
