"""DEFECTS B6: threads that compiled in the background kept the interpreter for 12-80 s after the last answer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import sys, threading, time
import fuseline
connection = fuseline.connect("cpu", fuse="auto", cache_dir=sys.argv[1])
connection.register("t", {"a": list(range(200_000)), "b": [i % 7 for i in range(200_000)]})
for i in range(8):
    terms = " + ".join(f"a * {j + 2}" for j in range(i + 1))
    connection.sql(f"select b, sum({terms}), count(*) from t where a > {i} group by b").fetchall()
connection.close()
busy = [t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
pools = ("fuseline-rows", "fuseline-expressions", "fuseline-kernel")
print([name for name in busy if not name.startswith(pools)])
print(time.time())
"""


def ended(folder: Path) -> tuple[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    threads, moment = done.stdout.split("\n")[:2]
    return threads, time.time() - float(moment)


def test_no_thread_is_left_that_an_interpreter_waits_for(tmp_path: Path) -> None:
    assert ended(tmp_path)[0] == "[]"


@pytest.mark.nightly
def test_a_process_ends_soon(tmp_path: Path) -> None:
    assert min(ended(tmp_path / str(i))[1] for i in range(3)) <= 0.3
