"""Run a suite on several engines: `python -m benchmarks.run tpch --sf 10 --engines fuseline,duckdb`.

Each query alone by default: a run in a new process is its cold time, the median of later ones its hot time. With
`--cold` all queries one after another in one connection, then all of them hot. With `--shuffle` over rows in no order. With `--streams N` TPC-H's queries with N sets
of random parameters. With `--cluster` on workers, as `scaling` says. Every answer is compared with DuckDB's before its time counts; what fails or differs has no time, and the
rest goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import engines, measure, scaling, streams
from benchmarks.charts import bars, roofline
from benchmarks.data import DATA
from benchmarks.floors import add_floors
from benchmarks.machine import machine, versions
from benchmarks.measure import Contestant, Reference
from benchmarks.report import print_table
from benchmarks.shuffle import shuffled
from benchmarks.suites import SUITES, Suite
from benchmarks.summary import summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write; 1 when an engine that promises DuckDB's answers failed, differed, or compiled for new parameters."""
    options = _options(arguments)
    suite = SUITES[options.suite]
    texts = _chosen(suite.queries(options.sf), options.queries)
    names = engines.chosen(options.engines)
    if options.cluster:
        return scaling.run(options, list(texts))
    if options.streams is not None and options.suite != "tpch":
        raise SystemExit("--streams is for tpch: other suites have no rules for other parameters.")
    tables = suite.tables(options.sf, options.data)
    if options.shuffle:
        tables = shuffled(tables, options.shuffled or _beside(options))
    contestants = [measure.contestant(name, tables) for name in names]
    result = _header(options, contestants)
    reference = Reference(tables)
    try:
        if suite.figures is not None:
            result["data"] = reference.figures(suite.figures)
        if options.streams is None:
            _measure_queries(result, texts, contestants, reference, options)
        else:
            result["streams"] = streams.measure(
                options.sf, options.streams, contestants, reference, list(texts), options.repeat
            )
    finally:
        reference.close()
        for contestant in contestants:
            contestant.engine.close()
    return _report(result, contestants, options)


def _header(options: argparse.Namespace, contestants: Sequence[Contestant]) -> dict[str, Any]:
    suite: Suite = SUITES[options.suite]
    kind = "streams" if options.streams is not None else "sequence" if options.cold else "queries"
    return {
        "suite": options.suite,
        "title": suite.named(options.sf),
        "scale": options.sf,
        "kind": kind,
        "rows": "shuffled" if options.shuffle else "as made",
        "repeat": options.repeat,
        "warmup": options.warmup,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "engines": {c.name: {"load_seconds": c.load_seconds} for c in contestants},
    }


def _measure_queries(
    result: dict[str, Any],
    texts: dict[str, str],
    contestants: Sequence[Contestant],
    reference: Reference,
    options: argparse.Namespace,
) -> None:
    questions = [reference.ask(name, text) for name, text in texts.items()]
    protocol = measure.in_sequence if options.cold else measure.one_by_one
    plan = measure.Plan(options.warmup, options.repeat, time.monotonic() + options.limit)
    found = protocol(questions, contestants, plan)
    result["queries"] = {
        q.name: {
            "rows": q.expected.num_rows,
            "engines": {name: asdict(made) for name, made in found[q.name].items()},
        }
        for q in questions
    }
    for contestant in contestants:
        result["engines"][contestant.name]["bandwidth"] = contestant.engine.bandwidth()
    add_floors(result)
    result["summary"] = summary(result)


def _report(
    result: dict[str, Any], contestants: Sequence[Contestant], options: argparse.Namespace
) -> int:
    """Print and write; the exit status."""
    promised = [c.name for c in contestants if c.engine.exact_types]
    if options.streams is not None:
        streams.print_streams(result["streams"], [c.name for c in contestants])
        wrong = streams.problems(result["streams"], promised)
        print("\n".join(wrong))
    else:
        print_table(result)
        rows = [row["engines"] for row in result["queries"].values()]
        wrong = [name for row in rows for name in promised if row[name]["status"] != "ok"]
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
        print(f"The result is in {options.json}.")
    for path, draw in ((options.chart, bars), (options.roofline, roofline)):
        if path and options.streams is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(result, path)
            print(f"The chart is in {path}.")
    return 1 if wrong else 0


def _beside(options: argparse.Namespace) -> Path:
    """The folder of shuffled tables, unless one is given: under `data/`, or beside the folder that was given for the data."""
    folder: Path = options.data or DATA / f"{options.suite}-sf{options.sf:g}"
    return folder.with_name(f"{folder.name}-shuffled")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("suite", choices=list(SUITES))
    parser.add_argument(
        "--sf", type=float, default=1, help="scale factor; millions of rows for clickbench and h2o"
    )
    engine_names = ", ".join(engines.ENGINES)
    parser.add_argument(
        "--engines", default="fuseline,duckdb", help=f"all that are here, or among {engine_names}"
    )
    parser.add_argument("--queries", help="some queries only, such as q01,q06")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs; their median counts")
    parser.add_argument("--warmup", type=int, default=1, help="hot runs that are not timed")
    parser.add_argument(
        "--cold", action="store_true", help="all queries in one connection, the first touch of each"
    )
    parser.add_argument("--streams", type=int, metavar="N", help="N sets of random parameters")
    parser.add_argument("--cluster", help="on a cluster alone: local, or a scheduler's address")
    parser.add_argument("--workers", default="2", help="its workers; several numbers as 1,2,4")
    parser.add_argument("--placement", help="that setting: auto, sharded, replicated")
    parser.add_argument("--weak", action="store_true", help="let the scale grow with the workers")
    parser.add_argument(
        "--clients", type=int, default=0, metavar="K", help="count the queries of K processes, too"
    )
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="seconds after which no measurement begins"
    )
    parser.add_argument("--shuffle", action="store_true", help="with the rows in no order")
    parser.add_argument("--shuffled", type=Path, help="the folder for them, kept")
    parser.add_argument("--data", type=Path, help="a folder with the Parquet files of that scale")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--chart", type=Path, help="write a bar chart here, as PNG")
    parser.add_argument("--roofline", type=Path, help="draw what each kernel reached here, as PNG")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


def _chosen(texts: dict[str, str], names: str | None) -> dict[str, str]:
    if names is None:
        return texts
    try:
        return {name: texts[name] for name in names.split(",")}
    except KeyError as unknown:
        raise SystemExit(f"No such query: {unknown.args[0]}.") from None


if __name__ == "__main__":
    sys.exit(main())
