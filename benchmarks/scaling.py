"""A suite on clusters of several sizes: `python -m benchmarks.run tpch --sf 1 --cluster local --workers 1,2,4 [--weak] [--clients 8]`.

Each query a row, with a hot time for each number of workers, the bytes that workers gave each other, and what control took.  Every answer is
compared with DuckDB's before its time counts.  With `--weak` the scale grows with the workers; with `--clients K` so many processes ask
all queries for a while, and the queries a second are counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from typing import Any

from rich.console import Console
from rich.table import Table

import fuseline
from benchmarks.data import Tables
from benchmarks.engines import Fuseline
from benchmarks.machine import machine, versions
from benchmarks.measure import Question, Reference, checked_run
from benchmarks.suites import SUITES

CLIENT_SECONDS = 10.0  # that the clients of a throughput run ask for
WARM_SECONDS = 600.0  # for all of them to have asked each query once


@dataclass
class OnCluster:
    """A query on so many workers: seconds, the slowest worker's part of them, that in meetings, and the bytes that workers gave each other."""

    first: float
    hot: float
    runs: list[float]
    worker: float
    met: float
    meetings: int
    sent: int

    @property
    def control(self) -> float:
        """What the workers did not take."""
        return self.hot - self.worker


@dataclass
class Size:
    """The suite on so many workers: its queries, and how many a second several clients get."""

    workers: int
    scale: float
    queries: dict[str, OnCluster] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    clients: int = 0
    rate: float = 0.0

    @property
    def total(self) -> float:
        return sum(query.hot for query in self.queries.values())


def run(options: argparse.Namespace, names: Sequence[str]) -> int:
    """Measure each number of workers, print and write; 1 where an answer is missing or differs."""
    sizes = []
    for workers in [int(n) for n in options.workers.split(",")]:
        scale = options.sf * workers if options.weak else options.sf
        sizes.append(_size(options, names, workers, scale))
    _print(options, sizes)
    if options.json:
        found = {
            "machine": machine(),
            "versions": versions(),
            "suite": options.suite,
            "weak": options.weak,
        }
        found["placement"] = options.placement
        found["sizes"] = [asdict(size) | {"total": size.total} for size in sizes]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if any(size.failed for size in sizes) else 0


def _size(options: argparse.Namespace, names: Sequence[str], workers: int, scale: float) -> Size:
    suite, size = SUITES[options.suite], Size(workers, scale)
    tables, texts = suite.tables(scale, options.data), suite.queries(scale)
    settings = {"cluster": options.cluster}
    if options.cluster == "local":
        settings["workers"] = workers
    if options.placement:
        settings["placement"] = options.placement
    engine, reference = Fuseline(**settings), Reference(tables)
    engine.load(tables)
    try:
        for name in names:
            question = reference.ask(name, texts[name])
            try:
                size.queries[name] = _query(engine, question, options)
            except Exception as error:
                size.failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
                print(f"{name} on {workers}: {size.failed[name]}")
        if options.clients:
            size.clients = options.clients
            given = settings | {"cluster": engine.address}
            given.pop("workers", None)
            asked = [texts[name] for name in names if name in size.queries]
            size.rate = _rate(given, tables, asked, options.clients)
    finally:
        reference.close()
        engine.close()
    return size


def _query(engine: Fuseline, question: Question, options: argparse.Namespace) -> OnCluster:
    first = checked_run(engine, question)
    for _ in range(options.warmup):
        checked_run(engine, question)
    runs, receipts = [], []
    for _ in range(options.repeat):
        runs.append(checked_run(engine, question))
        receipts.append(engine.workers())
    middle = sorted(range(len(runs)), key=runs.__getitem__)[len(runs) // 2]
    parts = receipts[middle]
    return OnCluster(
        first,
        statistics.median(runs),
        runs,
        max(part.seconds for part in parts),
        max(part.met_seconds for part in parts),
        max(len(part.meetings) for part in parts),
        sum(meeting.sent for part in parts for meeting in part.meetings),
    )


def _rate(settings: dict[str, Any], tables: Tables, texts: list[str], clients: int) -> float:
    """The queries a second that so many processes get together; each asks all queries, beginning with another one."""
    spawn = get_context("spawn")
    given = _wait_for_all, (spawn.Barrier(clients),)
    with ProcessPoolExecutor(clients, spawn, *given) as pool:
        asked = [
            pool.submit(
                _client, settings, tables, [*texts[i % len(texts) :], *texts[: i % len(texts)]]
            )
            for i in range(clients)
        ]
        return sum(call.result() for call in asked)


_all_are_warm: list[Any] = []  # the barrier of a client's process


def _wait_for_all(barrier: Any) -> None:
    _all_are_warm.append(barrier)


def _client(settings: dict[str, Any], tables: Tables, texts: list[str]) -> float:
    with fuseline.connect(**settings) as connection:
        for name, path in tables.items():
            connection.read_parquet(path, name)
        for text in texts:  # columns and kernels
            connection.sql(text).to_arrow()
        # Who asks alone would get more
        _all_are_warm[0].wait(WARM_SECONDS)
        begun, count = time.perf_counter(), 0
        while time.perf_counter() - begun < CLIENT_SECONDS:
            connection.sql(texts[count % len(texts)]).to_arrow()
            count += 1
        return count / (time.perf_counter() - begun)


def _print(options: argparse.Namespace, sizes: Sequence[Size]) -> None:
    kind = "weak" if options.weak else "strong"
    table = Table(title=f"{SUITES[options.suite].title}, {kind} scaling, hot ms")
    table.add_column("query")
    for size in sizes:
        for heading in (f"{size.workers}: SF{size.scale:g}", "control", "met", "MB"):
            table.add_column(heading, justify="right")
    for name in dict.fromkeys(name for size in sizes for name in size.queries):
        cells = []
        for size in sizes:
            found = size.queries.get(name)
            seconds = (found.hot, found.control, found.met) if found else ()
            cells += [f"{s * 1e3:.2f}" for s in seconds] or ["-"] * 3
            cells.append(f"{found.sent / 1e6:.2f}" if found else "-")
        table.add_row(name, *cells)
    table.add_row(
        "all", *(cell for size in sizes for cell in (f"{size.total * 1e3:.1f}", "", "", ""))
    )
    Console(width=max(100, 20 + 40 * len(sizes))).print(table)
    for size in sizes:
        against = sizes[0].total / size.total if size.total else 0.0
        share = f"{against:.2f} times as fast as {sizes[0].workers}"
        rate = (
            f", {size.rate:.1f} queries a second for {size.clients} clients" if size.clients else ""
        )
        print(f"{size.workers} workers: {size.total * 1e3:.1f} ms, {share}{rate}")
