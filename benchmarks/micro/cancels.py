"""Queries stopped at random moments: how long it takes until they end, and what they leave behind.

    python -m benchmarks.micro.cancels --sf 1 --cancels 300 --timeouts 100 --device cpu

Each of thirteen kinds of work runs once to its end, and then again and again with a stop at a moment drawn from that time: by
`interrupt()` from another thread, or by `statement_timeout`.  The delay is what passes from that moment until the call raises.  After
each stop a small query has to be right; at the end no thread, open file or child process may be left that was not there before.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import fuseline
from benchmarks.data import tpch_tables
from fuseline.errors import FuselineError, Interrupted

GPU_LIMIT = "70GB"  # which is never reached: RMM counts what is taken only under a limit
LEAST_SECONDS = 0.002  # of the time in which a moment is drawn


@dataclass
class Delays:
    """The stops of one kind of work, in milliseconds; `finished` were done before they came, `wrong` are next answers."""

    kind: str
    seconds: float
    stopped: list[float] = field(default_factory=list)
    finished: int = 0
    wrong: int = 0
    device_bytes: int = 0  # that the kind's connection left on the GPU

    def quantile(self, share: float) -> float:
        found = sorted(self.stopped)
        return found[min(int(share * len(found)), len(found) - 1)] if found else 0.0

    def __str__(self) -> str:
        return (
            f"{self.kind:20} takes {self.seconds:7.2f} s  stopped {len(self.stopped):4}  finished {self.finished:4}  "
            f"p50 {self.quantile(0.5):7.1f} ms  p95 {self.quantile(0.95):7.1f}  max {self.quantile(1):7.1f}  wrong {self.wrong}  "
            f"left on the device {self.device_bytes}"
        )


@dataclass(frozen=True)
class Kind:
    """Work of one kind: `run` takes a connection and a number that makes it new."""

    name: str
    run: Callable[[fuseline.Connection, int], object]
    options: dict[str, Any] = field(default_factory=dict)


def _query(text: str) -> Callable[[fuseline.Connection, int], object]:
    return lambda connection, _: connection.sql(text).to_arrow()


def _planned(connection: fuseline.Connection, number: int) -> object:
    sums = ", ".join(f"sum(l_quantity + {i}) as s{i}" for i in range(400))
    return connection.sql(f"select {sums} from lineitem where l_orderkey > {number}").explain()


def _parsed(connection: fuseline.Connection, number: int) -> object:
    values = ", ".join(str(number + i) for i in range(30_000))
    return connection.sql(f"select count(*) from nation where n_nationkey in ({values})").to_arrow()


def _cold(connection: fuseline.Connection, _: int) -> object:
    connection.cache.clear()
    return connection.sql("select * from lineitem").to_arrow()


def _compiled(connection: fuseline.Connection, number: int) -> object:
    """A kernel that nobody has compiled: the number of terms is part of its text."""
    terms = " + ".join(f"l_quantity * {i + 2}" for i in range(3 + number % 40))
    others = ", ".join(f"max(l_tax + {i})" for i in range(number // 40 % 40))
    return connection.sql(
        f"select sum({terms}){', ' if others else ''}{others} from lineitem"
    ).to_arrow()


def _fetched(connection: fuseline.Connection, _: int) -> object:
    return connection.execute(
        "select l_orderkey, l_shipdate, l_extendedprice from lineitem"
    ).fetchall()


def _copied(connection: fuseline.Connection, _: int) -> object:
    """Write a file; a stop leaves none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return connection.execute(f"copy lineitem to '{folder}/copied.parquet'")
        finally:
            files = {path.name for path in Path(folder).iterdir()}
            if files and files != {"copied.parquet"}:
                raise RuntimeError(f"COPY left {files}")


def _called(function: Any) -> Callable[[fuseline.Connection, int], object]:
    """Call a Python function with each row."""

    def run(connection: fuseline.Connection, _: int) -> object:
        with suppress(FuselineError):  # it is there already
            connection.create_function("called", function)
        return connection.sql(
            "select sum(called(l_extendedprice::double)) from lineitem"
        ).to_arrow()

    return run


@fuseline.udf("DOUBLE", returns="DOUBLE")
def halved_often(value):
    """Loop, so that it is compiled as it is."""
    for _ in range(60):
        value = value / 2 + 1
    return value


@fuseline.udf("DOUBLE", returns="DOUBLE", vectorized=True)
def rounded(values):
    return pc.round(values, 1)


JOIN = "select count(*), sum(a.l_quantity) from lineitem a join lineitem b on a.l_suppkey = b.l_suppkey"
KINDS = [
    Kind("parsing", _parsed),
    Kind("planning", _planned),
    Kind("cold read", _cold),
    Kind("compiling", _compiled, {"fuse": "always"}),
    Kind("kernel", _query(f"{JOIN} where a.l_linenumber = 7"), {"fuse": "always"}),
    Kind(
        "operators",
        _query(
            "select l_orderkey, count(distinct l_partkey), sum(l_tax) from lineitem group by l_orderkey"
        ),
        {"fuse": "never"},
    ),
    Kind(
        "sort",
        _query("select l_orderkey, l_comment from lineitem order by l_extendedprice, l_comment"),
        {"fuse": "never"},
    ),
    Kind(
        "regular expression",
        _query(
            "select count(*) from lineitem where regexp_matches(l_comment, '(a|e)+[^q]*(ly|s)+$')"
        ),
        {"fuse": "never"},
    ),
    Kind(
        "spill",
        _query(
            "select count(*), max(a.l_comment) from lineitem a join lineitem b "
            "on a.l_orderkey = b.l_orderkey and a.l_linenumber = b.l_linenumber"
        ),
        {"fuse": "never", "memory_limit": "256MB", "column_cache_limit": "256MB"},
    ),
    Kind("fetch", _fetched),
    Kind("copy", _copied),
    Kind("compiled function", _called(halved_often)),
    Kind("vectorized function", _called(rounded)),
]


def measured(
    kind: Kind,
    connect: Callable[..., fuseline.Connection],
    cancels: int,
    timeouts: int,
    draw: random.Random,
) -> Delays:
    """Stop work of one kind so many times."""
    numbers: Iterator[int] = iter(range(1, 1 << 30))
    with connect(**kind.options) as connection:
        kind.run(connection, 0)  # which compiles what all share
        start = time.perf_counter()
        kind.run(connection, next(numbers))
        delays = Delays(kind.name, time.perf_counter() - start)
        latest = max(delays.seconds, LEAST_SECONDS)
        for stop in [_cancelled] * cancels + [_timed_out] * timeouts:
            delay = stop(
                lambda: kind.run(connection, next(numbers)), connection, draw.uniform(0, latest)
            )
            if delay is None:
                delays.finished += 1
            else:
                delays.stopped.append(1e3 * delay)
            delays.wrong += connection.sql(
                "select sum(n_nationkey)::int from nation"
            ).fetchall() != [(300,)]
    delays.device_bytes = _on_device()
    return delays


def _on_device() -> int:
    """Bytes of the GPU that RMM counts as taken, under a limit as each connection here has one."""
    rmm = sys.modules.get("rmm")
    if rmm is None:
        return 0
    gc.collect()
    return int(rmm.mr.get_current_device_resource().get_allocated_bytes())


def _cancelled(
    run: Callable[[], object], connection: fuseline.Connection, moment: float
) -> float | None:
    """Interrupt from another thread; the seconds from then on, None where the work was done before."""
    asked: list[float] = []
    done = threading.Event()

    def ask() -> None:
        if not done.wait(moment):
            asked.append(time.perf_counter())
            connection.interrupt()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        run()
    except Interrupted:
        return time.perf_counter() - asked[0]
    finally:
        done.set()
        thread.join()
    return None


def _timed_out(
    run: Callable[[], object], connection: fuseline.Connection, moment: float
) -> float | None:
    """Have the work stopped by its time limit."""
    connection.set_option("statement_timeout", f"{max(moment, LEAST_SECONDS):.6f}")
    start = time.perf_counter()
    try:
        run()
    except Interrupted:
        return max(0.0, time.perf_counter() - start - moment)
    finally:
        connection.set_option("statement_timeout", None)
    return None


def left() -> dict[str, int]:
    """What this process holds: threads, open files and child processes."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        "threads": threading.active_count(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(children),
    }


def main(arguments: list[str] | None = None) -> list[Delays]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--tables", type=Path, help="a folder with TPC-H's tables of that scale")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--cancels", type=int, default=300, help="by interrupt(), of all kinds together"
    )
    parser.add_argument("--timeouts", type=int, default=100, help="by statement_timeout")
    parser.add_argument("--kinds", nargs="*", default=[kind.name for kind in KINDS])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    kinds = [kind for kind in KINDS if kind.name in given.kinds]
    tables, draw = tpch_tables(given.sf, given.tables), random.Random(given.seed)
    print(f"seed {given.seed}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)

    def connect(**options: Any) -> fuseline.Connection:
        if given.device == "gpu":
            options = {"memory_limit": GPU_LIMIT} | options
        connection = fuseline.connect(given.device, cache_dir=folder, **options)
        for name, path in tables.items():
            connection.read_parquet(path, name)
        return connection

    found: list[Delays] = []
    with tempfile.TemporaryDirectory() as folder:
        before: dict[str, int] = {}
        for number, kind in enumerate(kinds):
            cancels, timeouts = (
                _share(n, number, len(kinds)) for n in (given.cancels, given.timeouts)
            )
            found.append(measured(kind, connect, cancels, timeouts, draw))
            print(found[-1], flush=True)
            before = before or left()
    together = [delay for delays in found for delay in delays.stopped]
    if len(together) > 1:
        print(f"all: p95 {statistics.quantiles(together, n=20)[-1]:.1f} ms of {len(together)}")
    gc.collect()
    print(f"after the first kind {before}, at the end {left()}")
    names = Counter(thread.name.rstrip("0123456789_-") for thread in threading.enumerate())
    print(f"threads: {dict(names)}")
    if given.json:
        given.json.write_text(json.dumps([asdict(delays) for delays in found]))
    return found


def _share(total: int, number: int, count: int) -> int:
    return total * (number + 1) // count - total * number // count


if __name__ == "__main__":
    main()
