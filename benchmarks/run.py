"""Run a suite on several engines: `python -m benchmarks.run tpch --sf 10 --engines fuseline,duckdb`.

For each query and engine: a cold run, whose answer is compared with DuckDB's; warm-up runs; then the runs
that are timed, with the last answer compared once more. Engines take turns query by query, so that all of
them meet the same machine. A query that fails or differs is not timed; the rest goes on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from benchmarks import engines, tpch
from benchmarks.data import Tables, tpch_tables
from benchmarks.machine import machine, versions
from benchmarks.report import chart, print_table, roofline
from tests.compare import Ordering, difference, ordering

T = TypeVar("T")

PEER_TOLERANCE = 1e-6  # relative, for engines whose decimals are not DuckDB's


@dataclass
class Measurement:
    """One query on one engine; seconds. `status` is ok, differs, unsupported or error."""

    status: str
    message: str = ""
    cold: float | None = None
    hot: float | None = None
    runs: list[float] = field(default_factory=list)
    placement: list[dict[str, Any]] = field(default_factory=list)
    pipelines: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Contestant:
    """An engine that has loaded its tables."""

    name: str
    engine: engines.Engine
    load_seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write; 1 when an engine that promises DuckDB's answers failed or differed."""
    options = _options(arguments)
    names = options.engines.split(",")
    texts = _chosen(tpch.queries(options.sf), options.queries)
    tables = tpch_tables(options.sf, options.data)
    contestants = [_load(name, tables) for name in names]
    result: dict[str, Any] = {
        "suite": options.suite,
        "scale": options.sf,
        "repeat": options.repeat,
        "warmup": options.warmup,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "engines": {c.name: {"load_seconds": c.load_seconds} for c in contestants},
        "queries": _measure_all(texts, contestants, tables, options),
    }
    for contestant in contestants:
        result["engines"][contestant.name]["bandwidth"] = contestant.engine.bandwidth()
    for contestant in contestants:
        contestant.engine.close()
    print_table(result)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
        print(f"The result is in {options.json}.")
    for path, draw in ((options.chart, chart), (options.roofline, roofline)):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(result, path)
            print(f"The chart is in {path}.")
    return _exit_status(result, contestants)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("suite", choices=["tpch"])
    parser.add_argument("--sf", type=float, default=1, help="scale factor")
    parser.add_argument(
        "--engines", default="fuseline,duckdb", help=f"among {', '.join(engines.ENGINES)}"
    )
    parser.add_argument("--queries", help="some queries only, such as q01,q06")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs; their median counts")
    parser.add_argument("--warmup", type=int, default=1, help="hot runs that are not timed")
    parser.add_argument("--data", type=Path, help="a folder with the Parquet files of that scale")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--chart", type=Path, help="write a bar chart here, as PNG")
    parser.add_argument("--roofline", type=Path, help="draw what each kernel reached here, as PNG")
    return parser.parse_args(arguments)


def _chosen(texts: dict[str, str], names: str | None) -> dict[str, str]:
    if names is None:
        return texts
    unknown = set(names.split(",")) - set(texts)
    if unknown:
        raise SystemExit(f"No such query: {', '.join(sorted(unknown))}.")
    return {name: texts[name] for name in names.split(",")}


def _load(name: str, tables: Tables) -> Contestant:
    engine = engines.make(name)
    try:
        _, seconds = _timed(lambda: engine.load(tables))
    except Exception as error:
        raise SystemExit(f"{name} could not load the tables: {_first_line(error)}") from error
    print(f"{name} loaded in {seconds:.2f} s", file=sys.stderr)
    return Contestant(name, engine, seconds)


def _measure_all(
    texts: dict[str, str],
    contestants: Sequence[Contestant],
    tables: Tables,
    options: argparse.Namespace,
) -> dict[str, Any]:
    reference = engines.DuckDB(own_tables=False)
    reference.load(tables)
    measured = {}
    for name, text in texts.items():
        expected = reference.run(text)
        order = ordering(text, expected.column_names)
        rows: dict[str, Any] = {}
        for contestant in contestants:
            found = _measure(contestant.engine, text, expected, order, options)
            rows[contestant.name] = asdict(found)
            shown = f"{found.hot * 1e3:.1f} ms" if found.hot is not None else found.message
            print(f"{name} {contestant.name}: {found.status} {shown}", file=sys.stderr)
        measured[name] = {"rows": expected.num_rows, "engines": rows}
    reference.close()
    return measured


def _measure(
    engine: engines.Engine,
    text: str,
    expected: pa.Table,
    order: Ordering,
    options: argparse.Namespace,
) -> Measurement:
    try:
        engine.forget()
        answer, cold = _timed(lambda: engine.run(text))
        problem = _problem(engine, expected, answer, order)
        if problem:
            return Measurement("differs", problem)
        for _ in range(options.warmup):
            engine.run(text)
        engine.settle(text)
        runs = []
        for _ in range(options.repeat):
            answer, seconds = _timed(lambda: engine.run(text))
            runs.append(seconds)
        problem = _problem(engine, expected, answer, order)
        if problem:
            return Measurement("differs", f"a later run: {problem}")
        placement, pipelines = engine.placement(), engine.pipelines()
    except engines.NotSupported as error:
        return Measurement("unsupported", _first_line(error))
    except Exception as error:  # whatever an engine raises is its result
        return Measurement("error", f"{type(error).__name__}: {_first_line(error)}")
    hot = statistics.median(runs)
    return Measurement("ok", "", cold, hot, runs, placement, pipelines)


def _problem(
    engine: engines.Engine, expected: pa.Table, answer: pa.Table, order: Ordering
) -> str | None:
    if engine.exact_types:
        return difference(expected, answer, order)
    return difference(expected, answer, order, exact_types=False, tolerance=PEER_TOLERANCE)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    value = work()
    return value, time.perf_counter() - start


def _first_line(error: Exception) -> str:
    return (str(error).strip() or "no message").splitlines()[0][:300]


def _exit_status(result: dict[str, Any], contestants: Sequence[Contestant]) -> int:
    """Only engines that promise DuckDB's answers can fail the run; of the others it is a finding."""
    promised = [c.name for c in contestants if c.engine.exact_types]
    found = [q["engines"][name]["status"] for q in result["queries"].values() for name in promised]
    return 0 if all(status == "ok" for status in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
