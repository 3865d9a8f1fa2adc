"""SIGTERM in each phase: the process ends at once with its compilers, no file is there by half, and the next one goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuseline
from fuseline.storage import spill_folders

BEGIN = """
import os, sys, time
folder = sys.argv[1]
os.environ["XDG_CACHE_HOME"], os.environ["XDG_STATE_HOME"] = folder + "/cache", folder + "/state"
import numpy as np
import fuseline
from fuseline import planner
from fuseline.codegen.compile import compile_pool
from fuseline.database import commit_log
from fuseline.writing.copy_to import _NewOutput

def said(*_, **__):
    print("now", flush=True)

def held(owner, name, calls=1):
    before, left = getattr(owner, name), [calls]
    def call(*args, **options):
        answer = before(*args, **options) if owner is _NewOutput else None
        left[0] -= 1
        if left[0] == 0:
            said()
            time.sleep(100)
        return answer or before(*args, **options)
    setattr(owner, name, call)

def without_end(text):
    connection.sql(text).fetchall()
    said()
    while True:
        connection.sql(text).fetchall()

rows = 300_000
connection = fuseline.connect(sys.argv[2], device="cpu", fuse=sys.argv[3], spill_dir=folder + "/spills")
connection.register("r", {"k": np.arange(rows)[::-1] * 1_000_003 % 999_983, "v": np.arange(rows)})
"""
MEMORY = ":memory:"
# By phase: the database, how pipelines run, and what is done
PHASES = {
    "planning": (MEMORY, "never", "held(planner, 'as_physical')\nconnection.sql('select sum(v) from r').fetchall()"),
    "reading": (MEMORY, "never", "connection.sql(f\"copy r to '{folder}/r.parquet'\")\nconnection.execute('set column_cache_limit = 0')\nwithout_end(f\"select sum(v), max(k) from '{folder}/r.parquet'\")"),
    "compiling": (MEMORY, "always", "held(compile_pool.stopping, 'wait')\nconnection.sql('select sum(v * k) from r where k > 5').fetchall()"),
    "kernels": (MEMORY, "always", "without_end('select sum(v * k) from r where k > 5')"),
    "sorting": (MEMORY, "never", "without_end('select * from r order by k limit 9')"),
    "spilling": (MEMORY, "never", "connection.execute(\"set memory_limit = '5MB'\")\nwithout_end('select a.v from r a join r b on a.k = b.k order by a.v limit 1')"),
    "fetching": (MEMORY, "never", "without_end('from r')"),
    "copying": (MEMORY, "never", "held(_NewOutput, '_write')\nconnection.sql(f\"copy r to '{folder}/old.csv'\")"),
    "partitions": (MEMORY, "never", "held(_NewOutput, '_write', 3)\nconnection.sql(f\"copy (select k % 5 as p, v from r) to '{folder}/parts' (partition_by p)\")"),
    "exporting": ("db", "never", "connection.execute('create table a as from r')\nheld(_NewOutput, '_write')\nconnection.sql(f\"export database '{folder}/all'\")"),
    "committing": ("db", "never", "connection.execute('create table a as select 7 as x')\nheld(commit_log.os, 'fsync')\nconnection.execute('insert into a select v from r')"),
    "checkpoint": ("db", "never", "connection.execute('create table a as select 7 as x')\nheld(commit_log.os, 'fsync')\nconnection.execute('checkpoint')"),
}  # fmt: skip
BY_DAY = ("spilling", "copying", "committing")


@pytest.mark.parametrize(
    "phase", [p if p in BY_DAY else pytest.param(p, marks=pytest.mark.nightly) for p in PHASES]
)
def test_a_process_is_terminated(phase: str, tmp_path: Path) -> None:
    database, fuse, work = PHASES[phase]
    place = database if database == MEMORY else str(tmp_path / database)
    (tmp_path / "old.csv").write_text("x\n1\n")
    command = [sys.executable, "-c", BEGIN + work, str(tmp_path), place, fuse]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    begun = children(process.pid)
    process.terminate()
    assert process.wait(20) == -15
    process.stdout.close()
    give_up = time.monotonic() + 20
    while any(runs(child) for child in begun) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not [child for child in begun if runs(child)]
    unfinished = [path for path in tmp_path.rglob("*") if ".writing-" in path.name]
    whole = set(tmp_path.rglob("*.csv")) | set((tmp_path / "db" / "data").glob("*.parquet"))
    assert whole <= {tmp_path / "old.csv"} or phase == "exporting"
    assert (tmp_path / "old.csv").read_text() == "x\n1\n"
    assert bool(unfinished) == (phase in WRITING)
    spill_folders._swept.clear()
    with fuseline.connect(place, device="cpu", spill_dir=tmp_path / "spills") as connection:
        if phase in ("committing", "checkpoint"):
            assert connection.sql("from a").fetchall() == [(7,)]
            connection.execute("insert into a values (8)")
            assert not [path for path in unfinished if path.exists()]
        assert connection.sql("select 42").fetchall() == [(42,)]
    assert not list((tmp_path / "spills").glob("*"))


WRITING = ("copying", "partitions", "exporting", "committing", "checkpoint")


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(number) for path in found for number in path.read_text().split()]


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
