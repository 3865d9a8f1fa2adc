"""What control and exchanges of a cluster take: `python -m benchmarks.micro.exchange [--cluster ADDRESS] [--workers N] [--most 256MB]`.

Control: a call to one worker and to all, the turn that clients take, a query without data from `sql()` to Arrow, a meeting.  Exchanges of each kind
by size, from 8 bytes a worker: the slowest worker's time, the bytes that leave the worker that sends most, and what share of the bandwidth of a copy
in the workers' memory, measured in the same run, that is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fuseline
from fuseline.settings import parse_bytes

STEP = 16  # from one size to the next


def median_ms(work: Callable[[], object], times: int) -> dict[str, float]:
    """The least, the median and nearly the most milliseconds of a few runs."""
    work()
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append((time.perf_counter() - begun) * 1e3)
    found.sort()
    return {
        "min": found[0],
        "median": statistics.median(found),
        "p95": found[int(0.95 * (times - 1))],
    }


def control(connection: Any, times: int) -> dict[str, dict[str, float]]:
    """What is paid before any row moves."""
    crew = connection._runner.crew

    def turn() -> None:
        with connection._runner._cluster.turn.held(lambda: None):
            pass

    return {
        "a call to all workers": median_ms(lambda: crew.ask_all("here"), times),
        "the turn of a client": median_ms(turn, times),
        "a query without data": median_ms(lambda: connection.sql("select 1").to_arrow(), times),
        "a meeting": median_ms(lambda: crew.trial("hash", 8), times),
    }


def exchanges(connection: Any, most: int, times: int) -> list[dict[str, Any]]:
    """Each kind of exchange by the bytes that each worker has."""
    crew = connection._runner.crew
    copied = max(crew.each("copy_bandwidth", [()] * crew.size, lambda: None))
    found = []
    for kind in ("gather", "broadcast", "hash"):
        size = 8
        while size <= most:
            seconds = min(crew.trial(kind, size) for _ in range(times))
            out = _sent(kind, size, crew.size)
            found.append(
                {
                    "kind": kind,
                    "bytes": size,
                    "seconds": seconds,
                    "rate": out / seconds,
                    "share": out / seconds / copied,
                }
            )
            size *= STEP
    return found


def _sent(kind: str, size: int, workers: int) -> float:
    """The bytes that leave the worker that sends most, or reach the one that gets most."""
    return size * (workers - 1) / (workers if kind == "hash" else 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.micro.exchange", description=__doc__
    )
    parser.add_argument("--cluster", default="local", help="the address of a scheduler, or local")
    parser.add_argument("--workers", type=int, help="of a local cluster")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--most", default="256MB", help="the largest size a worker")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the result here")
    options = parser.parse_args(arguments)
    most = parse_bytes("most", options.most) or 0
    given = {"cluster": options.cluster, "workers": options.workers}
    with fuseline.connect(options.device, **given) as connection:
        result = {
            "workers": connection._runner.crew.size,
            "device": connection.device,
            "control": control(connection, options.times),
            "exchanges": exchanges(connection, most, max(3, options.times // 4)),
        }
    print(f"{result['workers']} workers on the {result['device']}")
    for what, found in result["control"].items():
        print(
            f"{what:22s} {found['min']:8.2f} ms at best, {found['median']:8.2f} median, {found['p95']:8.2f} p95"
        )
    for row in result["exchanges"]:
        print(
            f"{row['kind']:10s} {row['bytes']:14,d} B  {row['seconds'] * 1e3:10.3f} ms  {row['rate'] / 1e9:8.3f} GB/s  {row['share']:6.1%} of a copy"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
