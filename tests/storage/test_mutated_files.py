"""Parquet files with faults: each query gives a clear error or what pyarrow reads, in bounded memory, and the process lives on."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.storage.mutated_files import EXPECTED, bases, mutant

ROOT = Path(__file__).parent.parent.parent
SECONDS_A_FILE = 60  # more than any takes; beyond it the process hangs
MOST_MEGABYTES = 1500
LINE = re.compile(r"(\d+) (\[.*\])")


@dataclass
class Found:
    """What came of files, by their numbers, and of which of them a process ended or hung."""

    given: dict[int, list[str]] = field(default_factory=dict)
    crashed: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    peak: int = 0


def read_all(
    seed: int, first: int, count: int, *how: str, program: str = "tests.storage.mutated_files"
) -> Found:
    """Read files in processes: behind one that ends or hangs comes another."""
    found, following, end = Found(), first, first + count
    while following < end:
        numbers = map(str, (seed, following, end - following))
        reached = _read_some(found, following, [program, *numbers, *how])
        if reached < end:
            found.crashed.append(reached)
        following = reached + 1
    return found


def _read_some(found: Found, first: int, program: list[str]) -> int:
    """Return the number of the file at which a process ended, or the one behind the last."""
    command = [sys.executable, "-m", *program]
    lines: queue.Queue[str | None] = queue.Queue()
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as child:

        def pump() -> None:
            assert child.stdout is not None
            for line in child.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=pump, daemon=True).start()
        reached = first
        while (line := _next(lines, child)) is not None:
            if match := LINE.match(line):
                reached = int(match[1]) + 1
                given, peak = json.loads(match[2])
                found.given[int(match[1])], found.peak = given, max(found.peak, peak)
            else:
                found.notes.append(line.strip())
    return reached


def _next(lines: queue.Queue[str | None], child: subprocess.Popen[str]) -> str | None:
    try:
        return lines.get(timeout=SECONDS_A_FILE)
    except queue.Empty:
        child.kill()
        return None


def check(seed: int, first: int, count: int) -> str:
    """Assert that nothing foreign came out of some files, and return the counts."""
    found = read_all(seed, first, count)
    expected = read_all(seed, first, count, "reference")
    assert found.crashed == [], f"seed {seed}"
    foreign = {n: g for n, g in found.given.items() if not all(_is_known(g_) for g_ in g)}
    assert foreign == {}, f"seed {seed}: {found.notes[:5]}"
    read = {n: g[0] for n, g in found.given.items() if g[0].startswith("rows")}
    other = {n for n, rows in read.items() if rows not in expected.given.get(n, [rows])}
    assert other == set(), f"seed {seed}"
    assert found.peak < MOST_MEGABYTES
    counts = Counter(g.split()[0] for given in found.given.values() for g in given)
    return f"{len(found.given)} files, {len(read)} read, {dict(counts)}, {found.peak} MB"


def _is_known(given: str) -> bool:
    return given.startswith("rows") or given in EXPECTED


def test_whole_files_are_read_and_mutants_differ() -> None:
    assert len({mutant(1, number) for number in range(50)} - set(bases())) > 45


def test_damaged_files() -> None:
    print(check(seed=1, first=0, count=40))


def test_a_timestamp_of_96_bits_beyond_nanoseconds() -> None:
    assert check(seed=1795400853, first=580, count=1).startswith("1 files, 1 read")


@pytest.mark.nightly
def test_damaged_files_of_new_seeds() -> None:
    seed = int(time.time())
    print(f"seed {seed}:", *(check(seed, first, 1000) for first in range(0, 10_000, 1000)))
