"""Peak memory under memory_limit on the CPU: each case in a process of its own, measured by the kernel (VmHWM).

    python -m benchmarks.micro.limits tpch --scale 1 --limit 256MB
    python -m benchmarks.micro.limits cases --limit 1GB

`tpch` runs each TPC-H query in a new process with kernels on disk, after a small query, and compares the answer with DuckDB's.  `cases` runs
queries that need more than they are given: what they peak at, and the CPU seconds of their second run beside DuckDB's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import tpch
from benchmarks.data import tpch_tables
from tests.compare import difference, ordering

SMALL = "select count(*), sum(x) from range(1000) t(x)"
ROWS = 50_000_000
FILE_ROWS = 5_000_000
CASES = {
    "limited pairs": "select x, y from range(12000) a(x), range(12000) b(y) limit 5",
    "50 M row group-by": f"select count(*), sum(n), max(k) from (select x * 7919 % {ROWS} as k, count(*) as n from range({ROWS}) t(x) group by k)",
    "50 M x 50 M join": f"select count(*), sum(a.x), max(b.y) from range({ROWS}) a(x) join (select x * 7919 % {ROWS} as y from range({ROWS}) t(x)) b on a.x = b.y",
    "count of a range": "select count(*) from range(200000000)",
    "limited table": "create or replace table made as select * from '{file}' limit 1000",
}
MORE = {
    "50 M row sort": f"select sum(k * r) from (select k, 1 as r from (select x * 7919 % {ROWS} as k from range({ROWS}) t(x)) order by k offset 7)",
    "50 M distinct": f"select count(*) from (select distinct x * 7919 % {ROWS} as k from range({ROWS}) t(x))",
    "sum of pairs": "select sum(x * y) from range(12000) a(x), range(12000) b(y)",
    "union": f"select count(*), sum(x) from (select x from range({ROWS}) a(x) union all select x + 1 from range({ROWS}) b(x)) where x % 3 = 0",
    "rows of a file": "select * from '{file}'",
}


def peak() -> int:
    """The most memory that this process had, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status has no VmHWM")


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _fuseline(settings: dict[str, str], tables: dict[str, str], query: str, runs: int) -> Any:
    import fuseline

    connection = fuseline.connect("cpu", **settings)
    for name, path in tables.items():
        connection.read_parquet(path, name)
    connection.sql(SMALL).fetchall()
    small = peak()
    times = []
    for _ in range(runs):
        start = time.perf_counter(), _cpu()
        answer = connection.sql(query).to_arrow()
        times.append((time.perf_counter() - start[0], _cpu() - start[1]))
    return answer, times, small, peak()


def _duckdb(settings: dict[str, str], tables: dict[str, str], query: str, runs: int) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    if "memory_limit" in settings:
        connection.execute(f"set memory_limit = '{settings['memory_limit']}'")
        connection.execute(f"set temp_directory = '{tempfile.gettempdir()}'")
    for name, path in tables.items():
        connection.execute(f"create view {name} as from read_parquet('{path}')")
    warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
    connection.execute(SMALL).fetchall()
    small = peak()
    times = []
    for _ in range(runs):
        start = time.perf_counter(), _cpu()
        answer = connection.execute(query).to_arrow_table()
        times.append((time.perf_counter() - start[0], _cpu() - start[1]))
    return answer, times, small, peak()


def _child(pipe: Any, run: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        pipe.send(run(*arguments))
    except BaseException as error:
        if not isinstance(error, MemoryError) and "Memory" not in type(error).__name__:
            traceback.print_exc()
        pipe.send((f"{type(error).__name__}: {str(error)[:300]}", [], 0, peak()))


def in_a_process(run: Callable[..., Any], *arguments: Any) -> Any:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, run, arguments))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = ("killed", [], 0, 0)
    process.join()
    return found


def _mb(count: int) -> str:
    return f"{count / 1e6:6.0f}"


def run_tpch(args: argparse.Namespace) -> None:
    settings = {"memory_limit": args.limit, "column_cache_limit": args.cache or args.limit}
    tables = tpch_tables(args.scale, args.data)
    queries = tpch.queries(args.scale)
    peaks, right = [], 0
    print("query  small MB  peak MB  seconds  answer")
    for name in args.queries.split(",") if args.queries else queries:
        query = queries[name]
        expected, *_ = in_a_process(_duckdb, {}, tables, query, 1)
        if not args.once:  # kernels on disk
            in_a_process(_fuseline, settings | {"fuse": "always"}, tables, query, 1)
        answer, times, small, most = in_a_process(_fuseline, settings, tables, query, 1)
        problem: str | None = str(answer)
        if not isinstance(answer, str):
            order = ordering(query, expected.column_names)
            problem = difference(expected, answer, order, exact_types=False)
        right += problem is None
        peaks.append(most)
        spent = f"{times[0][0]:7.2f}" if times else "      -"
        print(f"{name}    {_mb(small)}   {_mb(most)}  {spent}  {problem or 'right'}", flush=True)
    median = statistics.median(peaks)
    print(f"{right} of {len(peaks)} right; peak {_mb(max(peaks))} MB, median {_mb(int(median))} MB")


def run_cases(args: argparse.Namespace) -> None:
    cases = CASES | (MORE if args.more else {})
    settings = {"memory_limit": args.limit, "column_cache_limit": args.cache or args.limit}
    with tempfile.TemporaryDirectory() as folder:
        file = _file(Path(folder))
        print("case                  peak MB  DuckDB  CPU s 1st  2nd  DuckDB 2nd  wall 2nd  answer")
        for name, text in cases.items():
            if args.queries and name not in args.queries.split(","):
                continue
            query = text.replace("{file}", str(file))
            expected, theirs, _, peak_theirs = in_a_process(_duckdb, settings, {}, query, 2)
            answer, ours, _, peak_ours = in_a_process(_fuseline, settings, {}, query, 2)
            right = "right"
            if isinstance(answer, str):
                right = answer
            elif not query.startswith("create") and "limit" not in query:
                order = ordering(query, expected.column_names)
                right = difference(expected, answer, order, exact_types=False) or right
            first, again = (ours[0][1], ours[1][1]) if ours else (0.0, 0.0)
            other = theirs[1][1] if theirs else 0.0
            wall = ours[1][0] if ours else 0.0
            print(
                f"{name:20} {_mb(peak_ours)}   {_mb(peak_theirs)}  {first:8.2f} {again:6.2f}  {other:8.2f}  {wall:8.2f}  {right}",
                flush=True,
            )


def _file(folder: Path) -> Path:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(1)
    path = folder / "trips.parquet"
    texts = pa.array([f"place {n}" for n in range(1000)])
    columns = {f"f{i}": random.random(FILE_ROWS) for i in range(8)}
    columns |= {f"i{i}": random.integers(0, 10**6, FILE_ROWS) for i in range(8)}
    columns |= {
        f"s{i}": texts.take(pa.array(random.integers(0, 1000, FILE_ROWS))) for i in range(4)
    }
    pq.write_table(pa.table(columns), path)
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["tpch", "cases"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--data", type=Path, help="a folder with the tables; made if not given")
    parser.add_argument("--limit", help="memory_limit: 256MB for tpch, 1GB for cases")
    parser.add_argument("--cache", help="column_cache_limit; as memory_limit if not given")
    parser.add_argument("--queries", help="such as q03,q07, or names of cases; all if not given")
    parser.add_argument("--once", action="store_true", help="the kernels are on disk already")
    parser.add_argument("--more", action="store_true", help="other large queries too")
    args = parser.parse_args(arguments)
    args.limit = args.limit or ("256MB" if args.what == "tpch" else "1GB")
    (run_tpch if args.what == "tpch" else run_cases)(args)


if __name__ == "__main__":
    main()
