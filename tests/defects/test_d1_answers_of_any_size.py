"""D1: an answer of any size is read within the limits, whatever the process had to hold before."""

import os
import subprocess
import sys

import pytest

MEASURED = """
import sys, fuseline
def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
limit = 100_000_000
with fuseline.connect("cpu", memory_limit=limit, column_cache_limit=limit) as connection:
    connection.sql("select sum(x) from range(1000) t(x)").fetchall()
    before, rows = peak(), 0
    for batch in connection.sql(sys.argv[1]).to_batches():
        rows += batch.num_rows
    print(rows, peak() - before, limit)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("order", ["", "order by k"])
def test_the_process_holds_little_more_than_the_limits(order):
    count = 10_000_000
    text = f"select x, x * 7919 % {count} as k, 'a longer text ' || x as s from range({count}) t(x) {order}"
    cores = {"OMP_NUM_THREADS": "64"}  # as many threads has Arrow where as many cores are
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, text],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **cores},
    )
    rows, more, limit = map(int, ran.stdout.split())
    assert rows == count  # of some 400 MB
    assert more <= 2 * limit + 100_000_000  # memory_limit and column_cache_limit
