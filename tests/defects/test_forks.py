"""A process that is forked after queries have run, or amid those of other threads: its copy of the connection answers, as one that it makes itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import fuseline

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


HELD = """
import faulthandler, functools, gc, os, sys, threading
import fuseline
from fuseline.operators.cpu.functions.udf import row_calls
from fuseline.threads import fork_locks
connection = fuseline.connect(device="cpu", cache_dir=sys.argv[1], fuse="always")
connection.create_function("f", lambda x: f"<{x}>", ["BIGINT"], "VARCHAR")
def answers(opened):
    opened.execute("create or replace table t as select range as x from range(1000)")
    return opened.sql("select sum(x), max(x) from t where x > 3").fetchall() == [(499494, 999)]
def of_function():
    return connection.sql("select max(f(x)) from t where x < 10").fetchall() == [("<9>",)]
assert answers(connection) and of_function()
held, forked = threading.Event(), threading.Event()
def hold():
    properties = [each for each in gc.get_objects() if type(each) is functools.cached_property]
    locks = [*fork_locks._made, *(each.lock for each in properties if hasattr(each, "lock"))]
    taken = [lock for lock in locks if lock.acquire(blocking=False)]
    print(len(taken), row_calls._one in taken)
    held.set()
    forked.wait()
    for lock in taken:
        lock.release()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    right = answers(connection) and of_function()
    right &= answers(fuseline.connect(device="cpu", cache_dir=sys.argv[1]))
    os._exit(0 if right else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
forked.set()
thread.join()
assert answers(connection)
sys.exit(code)
"""


def test_locks_that_another_thread_holds_are_free_in_a_forked_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    count, of_functions = done.stdout.split()
    assert int(count) > 10
    assert of_functions == "True"


# Locks of their own: of a query or reading that ends with its thread, of what a fork renews itself, and of what runs in servers and workers
OWN = {
    "codegen/compile/compile_pool.py", "distributed/clusters.py", "distributed/crew.py", "distributed/meetings.py", "distributed/orders.py",
    "operators/cpu/aggregate/selected_places.py", "operators/cpu/pipeline/pipeline.py", "operators/cpu/scan/remote_parts.py", "progress/run_progress.py",
    "reading.py", "server/calls.py", "server/turns.py", "stopping.py", "threads/fork_locks.py",
}  # fmt: skip


def test_locks_that_live_longer_than_a_query_are_made_where_forks_free_them() -> None:
    root = Path(fuseline.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"(?<!_)\b(Lock|RLock|Condition)\(\)", path.read_text())
    }
    on_gpu = {name for name in found if name.startswith("operators/gpu/")}
    assert found - on_gpu == OWN
