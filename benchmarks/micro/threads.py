"""How many TPC-H queries a second threads of one connection answer, and what a short query waits beside long ones.

    python -m benchmarks.micro.threads --device gpu --sf 10 --threads 1,4,16 --seconds 5 --json out/threads.json

Each thread asks all 22 queries in an order of its own, over and over.  Answers are compared with those of one thread: rows as sets, numbers
to nine digits.  The waiting of Q6 is measured alone, and beside seven threads that ask Q9, Q18 and Q21.

With `--lock` each query is asked beside a thread that only counts, in Python.  That thread runs whenever nobody else holds the
interpreter's lock, so the time in which it does not is that in which the query holds the lock: threads together answer no more queries
than there are such times in a second.  That holds on a quiet machine alone: where the counting thread lacks a core, the lock seems held.
The CPU time of the query's own thread holds on any, but counts what it does without the lock too.  How often the thread sleeps says how
often the query gives the lock away and has to wait for it, or waits for the device.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import fuseline
from benchmarks import tpch
from benchmarks.data import tpch_tables

ROUNDS = 4  # before anything is timed
SWITCH_SECONDS = (
    2e-5  # for which the counting thread keeps the lock from a query that wants it back
)
LONG = ("q09", "q18", "q21")
SHORT = "q06"


def rows_of(table: pa.Table) -> list[str]:
    """Return rows as texts in some order, floats to nine digits."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(
        "|".join(f"{v:.9g}" if isinstance(v, float) else str(v) for v in row)
        for row in zip(*columns, strict=True)
    )


class Asked:
    """Threads that ask texts until they are told to stop; what went wrong, and how long each query took."""

    def __init__(self, connection: fuseline.Connection, texts: dict[str, str], answers: Any):
        self._connection, self._texts, self._answers = connection, texts, answers
        self.wrong: list[str] = []
        self.seconds: dict[str, list[float]] = {name: [] for name in texts}
        self._found: dict[tuple[int, str], pa.Table] = {}
        self._stop = threading.Event()

    def _ask(self, seed: int, names: list[str]) -> None:
        order = random.Random(seed)
        while not self._stop.is_set():
            for name in order.sample(names, len(names)):
                start = time.perf_counter()
                try:
                    found = self._connection.sql(self._texts[name]).to_arrow()
                except fuseline.FuselineError as error:
                    self.wrong.append(f"{name}: {error}")
                    continue
                self.seconds[name].append(time.perf_counter() - start)
                self._found[seed, name] = found
                if self._stop.is_set():
                    return

    def run(self, threads: list[list[str]], seconds: float) -> float:
        """Run a thread for each list of names; return the seconds until all have ended."""
        workers = [
            threading.Thread(target=self._ask, args=(i, names)) for i, names in enumerate(threads)
        ]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        time.sleep(seconds)
        self._stop.set()
        for worker in workers:
            worker.join()
        taken = time.perf_counter() - start
        # The last answers of each thread, once no thread is timed any more
        for (_, name), found in self._found.items():
            if rows_of(found) != self._answers[name]:
                self.wrong.append(f"{name}: another answer")
        return taken


def settled(connection: fuseline.Connection, texts: dict[str, str]) -> dict[str, list[str]]:
    """Run all queries until their kernels and sizes are known; return their answers."""
    answers = {}
    for _ in range(ROUNDS):
        for name, text in texts.items():
            answers[name] = rows_of(connection.sql(text).to_arrow())
    return answers


def lock_use(
    connection: fuseline.Connection, texts: dict[str, str], seconds: float
) -> dict[str, tuple[float, float, float]]:
    """Return for each query the seconds that it holds the interpreter's lock, those of its thread's CPU time, and how often that sleeps."""
    done, counted = threading.Event(), [0.0]

    def count() -> None:
        while not done.is_set():
            counted[0] = time.thread_time()

    def waits() -> int:
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw

    found = {}
    before = sys.getswitchinterval()
    counting = threading.Thread(target=count)
    counting.start()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        for name, text in texts.items():
            queries, waited = 0, waits()
            start, free, cpu = time.perf_counter(), counted[0], time.thread_time()
            while time.perf_counter() - start < seconds / len(texts):
                connection.sql(text).to_arrow()
                queries += 1
            held = time.perf_counter() - start - (counted[0] - free)
            cpu = time.thread_time() - cpu
            found[name] = held / queries, cpu / queries, (waits() - waited) / queries
    finally:
        sys.setswitchinterval(before)
        done.set()
        counting.join()
    return found


def print_lock_use(found: dict[str, tuple[float, float, float]]) -> None:
    held, cpu, waits = (statistics.fmean(values) for values in zip(*found.values(), strict=True))
    for name, (lock, own, slept) in {**found, "mean": (held, cpu, waits)}.items():
        print(
            f"{name:4}: {lock * 1e6:7.0f} us with the lock, {own * 1e6:7.0f} us of CPU time, {slept:5.1f} waits"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument("--data", type=Path, help="the folder of the tables")
    parser.add_argument("--threads", default="1,4,16", help="counts with commas between")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument(
        "--lock", action="store_true", help="measure how long queries hold the lock"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    texts = tpch.queries(given.sf)
    connection = fuseline.connect(device=given.device, fuse="always")
    for name, path in tpch_tables(given.sf, given.data).items():
        connection.read_parquet(path, name)
    answers = settled(connection, texts)
    report: dict[str, Any] = {"threads": {}}
    if given.lock:
        report["lock"] = used = lock_use(connection, texts, given.seconds)
        print_lock_use(used)
    wrong = []
    for count in map(int, given.threads.split(",")):
        asked = Asked(connection, texts, answers)
        seconds = asked.run([list(texts)] * count, given.seconds)
        queries = sum(map(len, asked.seconds.values()))
        report["threads"][count] = queries / seconds
        wrong += asked.wrong
        print(
            f"{count:3} threads: {queries / seconds:8.0f} queries a second, {len(asked.wrong)} wrong"
        )
    for label, beside in (("alone", []), ("beside seven", [list(LONG)] * 7)):
        asked = Asked(connection, texts, answers)
        asked.run([[SHORT], *beside], given.seconds)
        times = sorted(asked.seconds[SHORT])
        p99 = times[int(len(times) * 0.99)]
        report[f"{SHORT} {label}"] = {"median": statistics.median(times), "p99": p99}
        wrong += asked.wrong
        print(
            f"{SHORT} {label}: median {statistics.median(times) * 1e3:.2f} ms, p99 {p99 * 1e3:.2f}"
        )
    print("\n".join(sorted(set(wrong))[:10]))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(report, indent=1))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
