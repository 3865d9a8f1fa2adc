"""Disks that are full, and folders that are removed, in each phase: right answers or a clear error, and the next query is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import os, resource, shutil, sys, warnings
folder = sys.argv[1]
os.environ["XDG_CACHE_HOME"], os.environ["XDG_STATE_HOME"] = folder + "/cache", folder + "/state"
import numpy as np
import fuseline
from fuseline.errors import ExecutionError
def full():  # no file may be longer: the system refuses as it does on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
def heard(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert run() is None
    return [str(w.message) for w in found]
def answers(text, expected):
    assert connection.sql(text).fetchall() == expected
rows = 600_000
spills = folder + "/spills"
os.mkdir(spills)
connection = fuseline.connect(device="cpu", fuse="always", spill_dir=spills)
connection.register("t", {"k": np.arange(rows)[::-1] * 1_000_003 % 999_983, "v": np.arange(rows)})
SUM = "select sum(v) from t where k >= 0"
JOIN = "select a.v from t a join t b on a.k = b.k order by a.v limit 1"
"""


def run(folder: Path, program: str) -> None:
    command = [sys.executable, "-c", BEGIN + program, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_room_for_kernels(tmp_path: Path):
    run(
        tmp_path,
        """
full()
said = heard(lambda: answers(SUM, [(179999700000,)]))
assert len(said) == 1 and "FUSELINE_CACHE_DIR" in said[0], said
assert heard(lambda: answers(SUM.replace(">= 0", ">= -1"), [(179999700000,)])) == []
""",
    )


def test_no_room_for_what_spills(tmp_path: Path):
    run(
        tmp_path,
        """
answers(JOIN, [(0,)])
connection.execute("set memory_limit = '8MB'")
connection.execute("set fuse = 'never'")
answers(JOIN, [(0,)])
full()
for _ in range(2):
    try:
        answers(JOIN, None)
    except ExecutionError as error:
        assert "spill_dir" in str(error) and spills in str(error), error
    else:
        raise AssertionError("where did it lie?")
    answers(SUM, [(179999700000,)])
assert not any(name for _, _, names in os.walk(spills) for name in names)
connection.reset_option("memory_limit")
answers(JOIN, [(0,)])
""",
    )


@pytest.mark.parametrize("gone", ["cache", "state", "spills"])
def test_a_folder_is_removed(tmp_path: Path, gone: str):
    run(
        tmp_path,
        f"""
answers(SUM, [(179999700000,)])
shutil.rmtree(folder + "/{gone}", ignore_errors=True)
answers(SUM.replace(">= 0", "> -3"), [(179999700000,)])
connection.execute("set memory_limit = '8MB'")
connection.execute("set fuse = 'never'")
try:
    answers(JOIN, [(0,)])
except ExecutionError as error:
    assert "{gone}" == "spills" and "spill_dir" in str(error), error
answers(SUM, [(179999700000,)])
""",
    )
