"""A process that is killed while it commits: nothing that was committed is lost, and nothing is there by half."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fuseline
from tests.database.committing import check

KILLS = 100


def committing(folder: Path, *call: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.database.committing", str(folder), *map(str, call)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def last_number(process: subprocess.Popen[str]) -> int:
    """Return the number of the last transaction that was committed as far as the process has said."""
    assert process.stdout is not None
    numbers = [int(line) for line in process.stdout if line.strip() != "ready"]
    process.stdout.close()
    process.wait()
    return numbers[-1] if numbers else 0


@pytest.mark.parametrize("call", [7])
def test_a_process_that_is_killed_at_a_call_leaves_whole_commits(call: int, tmp_path: Path) -> None:
    process = committing(tmp_path / "db", call)
    said = last_number(process)
    assert process.returncode == -9
    with fuseline.connect(tmp_path / "db", device="cpu") as connection:
        check(connection, said)


@pytest.mark.nightly
def test_a_process_that_is_killed_at_any_time_leaves_whole_commits(tmp_path: Path) -> None:
    draws = random.Random(16)
    folder, said = tmp_path / "db", 0
    for _ in range(KILLS):
        process = committing(folder)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(draws.random() * 1.5)
        process.kill()
        said = max(said, last_number(process))
        with fuseline.connect(folder, read_only=True, device="cpu") as connection:
            said = check(connection, said)
    assert said > KILLS
