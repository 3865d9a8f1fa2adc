"""Where the host's time of a hot query goes: seconds, Python calls, and the functions that take most by themselves.

    python -m benchmarks.micro.host_time --device gpu --sf 10 --queries q06,q16 --json out/host.json [--against out/before.json]

A query on a GPU at SF10 takes a fraction of a millisecond, of which kernels are a part; what a run costs beside them is looked for
here.  The medians are taken without the profiler, which doubles the time of Python calls.  `--against` shows what changed since a
report of another commit on the same machine; on other machines only the calls can be compared.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import statistics
import time
from pathlib import Path
from typing import Any

import fuseline
from benchmarks import tpch
from benchmarks.data import tpch_tables

SHOWN = 12


def measured(connection: fuseline.Connection, text: str, runs: int) -> dict[str, Any]:
    """Return the median seconds, calls a run, and by function its calls and own microseconds a run."""
    for _ in range(5):
        connection.sql(text).to_arrow()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        connection.sql(text).to_arrow()
        seconds.append(time.perf_counter() - start)
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(runs):
        connection.sql(text).to_arrow()
    profiler.disable()
    entries = profiler.getstats()
    functions: dict[str, list[float]] = {}
    for entry in entries:
        code = entry.code
        path = () if isinstance(code, str) else Path(code.co_filename).parts[-2:]
        name = code if isinstance(code, str) else code.co_name
        known = functions.setdefault(f"{'/'.join(path)} {name}".strip(), [0.0, 0.0])
        known[0] += entry.callcount / runs
        known[1] += entry.inlinetime / runs * 1e6
    calls = sum(entry.callcount for entry in entries) / runs
    return {"seconds": statistics.median(seconds), "calls": calls, "functions": functions}


def show(name: str, found: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Print a query's figures, and the functions that take most, or have grown most."""
    known = before["functions"] if before else {}
    was = f" (before {before['seconds'] * 1e3:.3f} ms, {before['calls']:.0f})" if before else ""
    print(f"{name}: {found['seconds'] * 1e3:.3f} ms, {found['calls']:.0f} calls{was}")
    growth = {f: us - known.get(f, [0.0, 0.0])[1] for f, (_, us) in found["functions"].items()}
    for function in sorted(growth, key=growth.__getitem__, reverse=True)[:SHOWN]:
        calls, own = found["functions"][function]
        print(f"  {own:8.1f} us {growth[function]:+8.1f}  {calls:7.1f} calls  {function}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument(
        "--data", type=Path, help="the folder of the tables, made where it is not given"
    )
    parser.add_argument("--queries", default="q01,q06,q16", help="names with commas between")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--against", type=Path, help="a report to compare with")
    given = parser.parse_args()
    before = json.loads(given.against.read_text()) if given.against else {}
    report, texts = {}, tpch.queries(given.sf)
    with fuseline.connect(device=given.device, fuse="always") as connection:
        for name, path in tpch_tables(given.sf, given.data).items():
            connection.read_parquet(path, name)
        for name in given.queries.split(","):
            report[name] = measured(connection, texts[name], given.runs)
            show(name, report[name], before.get(name))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
