"""A process that is forked after queries have run: its copy of the connection answers, as one that it makes itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys
import numpy as np
import fuseline
rows = 600_000
connection = fuseline.connect(device="cpu", cache_dir=sys.argv[1], threads=2)
connection.register("t", {"k": np.arange(rows) % 1000, "v": np.arange(rows), "s": [f"x{i % 77}" for i in range(rows)]})
QUERIES = (
    "select k, sum(v), count(*) from t where k > 10 group by k order by k limit 3",
    "select count(*) from t a join t b on a.v = b.v where a.k < 5",
    "select s, k from t order by s, v desc limit 2",
)
def answers(fuse):
    connection.execute(f"set fuse = '{fuse}'")
    return [connection.sql(query).fetchall() for query in QUERIES]
def forked():
    child = os.fork()
    if child == 0:
        right = [answers(fuse) for fuse in ("never", "always")] == [expected] * 2
        new = fuseline.connect(device="cpu", cache_dir=sys.argv[1])
        right &= new.sql("select sum(range) from range(1000000)").fetchall() == [(499999500000,)]
        child = forked() if sys.argv.pop() == "once more" else 0
        os._exit(0 if right and child == 0 else 1)
    return os.waitpid(child, 0)[1]
expected = answers("never")
assert answers("always") == expected
assert forked() == 0
assert answers("never") == expected
"""


def test_a_forked_process_answers_and_one_that_it_forks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "once more"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
