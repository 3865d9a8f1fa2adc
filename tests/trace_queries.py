"""How far two queries walk through the house: files and functions entered, calls, changes of file, and calls to a higher floor.

python -m tests.trace_queries

The queries run on the CPU over 200,000 rows with `fuse=always`: cold in a new connection with an empty kernel folder, then hot.  Calls are
counted in all threads; what other processes compile is not seen.  A climb is a pair of rooms of which
the one on the lower floor calls the other, as test_layout ranks them; callbacks that walks over a tree are given count too.
Commit 90bdf64 gives 122, 32, 137 and 37 files.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

import fuseline
from tests.test_layout import FLOORS, ROOT, TOP, inside, module, room

ROWS = 200_000
TEXTS = {
    "group": "select flag, sum(x) from t where d < date '2024-03-01' group by 1",
    "join": "select g.name, sum(t.x) as total from t join g on t.k = g.k where t.d < date '2024-03-01' "
    "group by g.name order by total desc limit 5",
}
HOUSE = tuple(f"{ROOT / name}/" for name in ("engine", "sql"))
PASSING = ("deep", "fence", "stopping")  # rooms that only hand calls on


@dataclass
class Walk:
    """What a run entered; `climbs` are pairs of rooms, from the lower to the higher one."""

    files: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    calls: int = 0
    changes: int = 0
    climbs: set[tuple[str, str]] = field(default_factory=set)

    def row(self) -> tuple[int, int, int, int, int]:
        return len(self.files), len(self.functions), self.calls, self.changes, len(self.climbs)


@cache
def height(name: str) -> int:
    """The floor of a room: one above the highest that it may import."""
    if name in TOP:
        return 100
    below = [each for each in FLOORS[name] if each != name and name not in FLOORS[each]]
    return 1 + max(map(height, below), default=-1)


@cache
def room_of(filename: str) -> str | None:
    """The room of a file of the house, None for libraries and for what only hands calls on."""
    path = Path(filename).resolve()
    if not str(path).startswith(HOUSE) or path.suffix != ".py":
        return None
    return None if inside(module(path)) in PASSING else room(module(path))


def walked(run: Callable[[], Any]) -> Walk:
    """Run with every call of ours written down, but for those by which garbage of earlier runs goes."""
    walk, last = Walk(), threading.local()

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & CO_OPTIMIZED:  # else a module or a class
            return
        here = room_of(code.co_filename)
        if here is None:
            return
        walk.calls += 1
        walk.files.add(code.co_filename)
        walk.functions.add(f"{code.co_filename}:{code.co_firstlineno}")
        walk.changes += getattr(last, "file", None) != code.co_filename
        last.file = code.co_filename
        caller = frame.f_back
        while caller is not None and room_of(caller.f_code.co_filename) is None:
            caller = caller.f_back
        there = None if caller is None else room_of(caller.f_code.co_filename)
        if there is not None and height(there) < height(here):
            walk.climbs.add((there, here))

    before = sys.getprofile()
    gc.collect()
    gc.disable()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
        gc.enable()
    return walk


def tables() -> dict[str, pa.Table]:
    draw = np.random.default_rng(1)
    days = np.datetime64("2024-01-01") + draw.integers(0, 200, ROWS)
    flags = np.array(["A", "N", "R"])[draw.integers(0, 3, ROWS)]
    columns = {"flag": flags, "x": draw.integers(0, 1000, ROWS), "k": draw.integers(0, 100, ROWS)}
    names = [f"g{i % 20}" for i in range(100)]
    return {"t": pa.table({**columns, "d": days}), "g": pa.table({"k": range(100), "name": names})}


def walks() -> dict[str, Walk]:
    """The walks of both queries, cold and hot."""
    found = {}
    for name, text in TEXTS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            fuseline.connect(device="cpu", fuse="always", cache_dir=folder) as connection,
        ):
            for table, rows in tables().items():
                connection.register(table, rows)
            for heat in ("cold", "hot"):
                found[f"{name}, {heat}"] = walked(lambda: connection.sql(text).to_arrow())  # noqa: B023
    return found


def main() -> None:
    found = walks()
    print(f"{'':12}{'files':>8}{'functions':>11}{'calls':>8}{'changes':>9}{'climbs':>8}")
    for name, walk in found.items():
        files, functions, calls, changes, climbs = walk.row()
        print(f"{name:12}{files:8}{functions:11}{calls:8}{changes:9}{climbs:8}")
    for lower, higher in sorted(set().union(*(walk.climbs for walk in found.values()))):
        print(f"  {lower} calls {higher or 'the top floor'}")


if __name__ == "__main__":
    main()
