"""TPC-H on the CPU under a memory limit, with and without a column store, beside DuckDB under the same limit.

    python -m benchmarks.micro.store_limits --scale 1 --limit 256MB

Each phase is a process that runs all 22 queries in one connection, several times over: without a store, with one that is empty at first
(`cold`), with the one that is there then (`warm`), and DuckDB over the Parquet files and over a database of its own.  Each answer is
compared with that of DuckDB without a limit.  What counts are CPU seconds of all threads and processes; kernels are on disk.  Peaks are
those of memory that is no mapped file, which the system cannot take back, looked at every 10 ms.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import tpch
from benchmarks.data import relation, tpch_tables
from benchmarks.micro.limits import in_a_process
from tests.compare import difference, ordering

LOOK_SECONDS = 0.01
Answers = dict[str, Any]
Phase = list[dict[str, tuple[float, int, dict[str, int], str]]]  # of each pass, by query


def cpu_seconds() -> float:
    """What this process and the ended ones that it started have used."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who))


@contextmanager
def peak_watched() -> Iterator[list[int]]:
    """A list whose last value is the most memory without mapped files so far."""
    peaks, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            pages = Path("/proc/self/statm").read_text().split()
            peaks[0] = max(peaks[0], (int(pages[1]) - int(pages[2])) * resource.getpagesize())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def run_fuseline(
    settings: dict[str, Any], tables: dict[str, str], queries: dict[str, str], answers: Answers, passes: int
) -> Phase:  # fmt: skip
    import fuseline

    with fuseline.connect("cpu", **settings) as connection:
        for name, path in tables.items():
            connection.read_parquet(path, name)

        def run(text: str) -> tuple[Any, Counter[str]]:
            frame = connection.sql(text)
            answer = frame.to_arrow()
            lifted: Counter[str] = Counter()
            for each in frame.profile.lifted or ():
                lifted[each.tier] += each.bytes
            return answer, lifted

        return _passes(run, queries, answers, passes)


def run_duckdb(
    settings: dict[str, Any], tables: dict[str, str], queries: dict[str, str], answers: Answers, passes: int
) -> Phase:  # fmt: skip
    import duckdb

    database = settings.pop("database", ":memory:")
    with duckdb.connect(database, config=settings) as connection:
        connection.execute("set enable_progress_bar = false")
        for name, path in tables.items():
            what = "view" if database == ":memory:" else "table"
            connection.execute(f"create {what} if not exists {name} as from {relation(path)}")
        return _passes(
            lambda text: (connection.execute(text).to_arrow_table(), Counter()),
            queries,
            answers,
            passes,
        )


def _passes(run: Any, queries: dict[str, str], answers: Answers, passes: int) -> Phase:
    """Run all queries several times over; without `answers` they become those."""
    found: Phase = []
    with peak_watched() as peaks:
        for _ in range(passes):
            found.append({})
            for name, text in queries.items():
                peaks[0], start = 0, cpu_seconds()
                lifted: Counter[str] = Counter()
                try:
                    answer, lifted = run(text)
                    spent = cpu_seconds() - start
                    problem = _problem(text, answers, name, answer)
                except Exception as error:  # which is the query's result
                    spent = cpu_seconds() - start
                    problem = f"{type(error).__name__}: {str(error)[:200]}"
                found[-1][name] = spent, peaks[0], dict(lifted), problem
    return found


def _problem(text: str, answers: Answers, name: str, answer: Any) -> str:
    if name not in answers:
        return ""
    order = ordering(text, answers[name].column_names)
    return difference(answers[name], answer, order, exact_types=False) or ""


def run_answers(tables: dict[str, str], queries: dict[str, str]) -> Answers:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set enable_progress_bar = false")
        for name, path in tables.items():
            connection.execute(f"create view {name} as from {relation(path)}")
        return {n: connection.execute(text).to_arrow_table() for n, text in queries.items()}


def measure(args: argparse.Namespace, folder: Path) -> dict[str, Phase]:
    tables, queries = tpch_tables(args.scale, args.data), tpch.queries(args.scale)
    if args.queries:
        queries = {name: queries[name] for name in args.queries.split(",")}
    answers = in_a_process(run_answers, tables, queries)
    limits = {"memory_limit": args.limit, "column_cache_limit": args.cache or args.limit}
    if args.threads:
        limits["threads"] = args.threads
    stored = limits | {"column_store": str(folder / "columns")}
    database = str(folder / "tables.duckdb")
    theirs = {"memory_limit": args.limit, "temp_directory": str(folder / "spilled")}
    if args.threads:
        theirs["threads"] = args.threads
    phases = {
        "no store": (run_fuseline, limits),
        "cold": (run_fuseline, stored),
        "warm": (run_fuseline, stored),
        "DuckDB, Parquet": (run_duckdb, theirs),
        "DuckDB, tables": (run_duckdb, theirs | {"database": database}),
    }
    wanted = args.phases.split(";") if args.phases else list(phases)
    found: dict[str, Phase] = {}
    for name, (run, settings) in phases.items():
        if name not in wanted:
            continue
        if run is run_fuseline and not args.once:  # kernels on disk
            ahead = {k: v for k, v in settings.items() if k != "column_store"}
            in_a_process(run, ahead | {"fuse": "always"}, tables, queries, answers, 1)
            args.once = True
        if "database" in settings:
            in_a_process(run, dict(settings), tables, {}, answers, 1)
        found[name] = in_a_process(run, dict(settings), tables, queries, answers, args.passes)
        report(name, found[name])
        used = sum(path.stat().st_size for path in (folder / "columns").glob("*"))
        print(f"   files of the store: {used / 1e6:,.0f} MB", flush=True)
    return found


def report(name: str, phase: Phase) -> None:
    """Print the figures of each query and pass of one phase."""
    if not isinstance(phase, list):
        print(f"{name}: {phase}", flush=True)
        return
    print(f"\n{name}: CPU s of each pass; MB from the store and from Parquet in the last; peak MB")
    for query in phase[0]:
        runs = [run[query] for run in phase]
        spent = "  ".join(f"{seconds:7.2f}" for seconds, *_ in runs)
        lifted = "  ".join(f"{runs[-1][2].get(t, 0) / 1e6:8,.1f}" for t in ("store", "Parquet"))
        peak = max(run[1] for run in runs) / 1e6
        problems = "; ".join(dict.fromkeys(run[3] for run in runs if run[3]))
        print(f"{query}  {spent}  {lifted}  {peak:7,.0f}  {problems or 'right'}")
    totals = "  ".join(f"{sum(run[0] for run in each.values()):7.2f}" for each in phase)
    right = sum(all(not run[query][3] for run in phase) for query in phase[0])
    print(f"all  {totals}   {right} of {len(phase[0])} right", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--data", type=Path, help="a folder with the tables; made if not given")
    parser.add_argument("--limit", default="256MB", help="memory_limit of both engines")
    parser.add_argument("--cache", help="column_cache_limit; as the limit if not given")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--passes", type=int, default=2, help="runs of all queries in a process")
    parser.add_argument("--queries", help="such as q03,q07; all if not given")
    parser.add_argument("--phases", help="such as 'no store;warm'; all if not given")
    parser.add_argument("--once", action="store_true", help="the kernels are on disk already")
    parser.add_argument("--folder", type=Path, help="where the store is and stays")
    args = parser.parse_args(arguments)
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fuseline-store-"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        measure(args, folder)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
