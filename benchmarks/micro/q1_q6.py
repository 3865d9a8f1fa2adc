"""Fused pipelines on one GPU: TPC-H Q1 and Q6 and random filter+sum queries over lineitem, against the operators.

    python -m benchmarks.micro.q1_q6 --rows 300000000 --json out/q1_q6.json
    python -m benchmarks.micro.q1_q6 --data '/data/tpch-sf50/lineitem*.parquet'

Each query runs fused and unfused; their answers must be equal before anything is timed.  A part that fails is reported and the
others go on.  `kernel` is the time between two CUDA events around the launch, `%` the encoded bytes read in that time against
what a copy within the device moves, both directions counted.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.machine import machine, versions
from benchmarks.micro.lineitem import random_queries, register_synthetic

TPCH = Path(__file__).parent.parent / "tpch"
COPY_BYTES = 4 << 30
SMALL_ROWS = 60_000  # of SF 0.01


@dataclass
class Measured:
    """One query; times in milliseconds."""

    name: str
    sql: str
    status: str = "ok"
    message: str = ""
    rows: int = 0
    encoded_bytes: int = 0
    cold: float = 0.0
    load: float = 0.0
    compile: float = 0.0
    fused: float = 0.0
    kernel: float = 0.0
    unfused: float = 0.0
    runs: list[float] = field(default_factory=list)
    kernel_file: str = ""

    @property
    def bandwidth(self) -> float:
        """Encoded bytes a second while the kernel ran."""
        return self.encoded_bytes / self.kernel * 1e3 if self.kernel else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    result: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "copy_bandwidth": 0.0,
        "queries": [],
        "rows_a_thread": {},
    }
    result["copy_bandwidth"] = _attempt("copy bandwidth", copy_bandwidth) or 0.0
    found: list[Measured] = []
    _attempt("large", lambda: _measure_large(options, found, result["rows_a_thread"]))
    if not options.data:
        _attempt("small", lambda: _measure_small(options, found))
    for measured in found:
        share = measured.bandwidth / result["copy_bandwidth"] if result["copy_bandwidth"] else 0.0
        result["queries"].append(asdict(measured) | {"share_of_copy": share})
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    _print(found, result["copy_bandwidth"])
    return int(any(m.status != "ok" for m in found) or not found)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=300_000_000, help="of the random lineitem")
    parser.add_argument("--data", help="Parquet files of lineitem, in the place of random rows")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--random", type=int, default=10, help="how many random queries")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unfused-repeat", type=int, default=3)
    parser.add_argument("--skip-unfused", action="store_true", help="compares no answers either")
    parser.add_argument("--tune", action="store_true", help="try other numbers of rows a thread")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def _attempt(what: str, work: Callable[[], Any]) -> Any:
    """Run a part; what it raises is shown and does not stop the others."""
    try:
        return work()
    except Exception:
        print(f"{what} failed:\n{traceback.format_exc()}", file=sys.stderr)
        return None


def _queries(options: argparse.Namespace) -> dict[str, str]:
    named = {name: (TPCH / f"q{name[1:].zfill(2)}.sql").read_text() for name in ("Q6", "Q1")}
    texts = random_queries(options.random, options.seed)
    return named | {f"R{i + 1}": text for i, text in enumerate(texts)}


def _measure_large(
    options: argparse.Namespace, found: list[Measured], tuned: dict[str, dict[int, float]]
) -> None:
    start = time.perf_counter()
    with _connected(options.rows, options) as connection:
        print(f"lineitem is there after {time.perf_counter() - start:.1f} s", flush=True)
        for name, sql in _queries(options).items():
            found.append(_measure(connection, name, sql, options))
            print(_line(found[-1], 0.0), flush=True)
        for name, sql in _queries(options).items() if options.tune else ():
            work = partial(_tuned, connection, sql, options)
            tuned[name] = _attempt(f"tuning {name}", work) or {}
            print(f"{name:10}rows a thread -> kernel ms: {tuned[name]}", flush=True)


def _tuned(connection: Any, sql: str, options: argparse.Namespace) -> dict[int, float]:
    """Kernel milliseconds with other numbers of rows that a thread takes at a time."""
    from fuseline.codegen.cuda import emit_cuda
    from fuseline.operators.gpu.pipeline import launch as kernels

    original = emit_cuda.rows_a_thread
    found = {}
    try:
        for rows in (4, 8, 16):
            # Both modules know it by name; another text has a plan, and so a kernel, of its own
            emit_cuda.rows_a_thread = kernels.rows_a_thread = lambda _, rows=rows: rows
            text = f"{sql} -- {rows} rows a thread"
            _run(connection, text)
            found[rows] = statistics.median(_kernel_times(connection, text, options.repeat))
    finally:
        emit_cuda.rows_a_thread = kernels.rows_a_thread = original
    return found


def _measure_small(options: argparse.Namespace, found: list[Measured]) -> None:
    """The fixed cost of a query, for which the rows of SF 0.01 are few enough."""
    with _connected(SMALL_ROWS, options) as connection:
        for name, sql in list(_queries(options).items())[:2]:
            found.append(_measure(connection, f"{name} small", sql, options))


@contextmanager
def _connected(rows: int, options: argparse.Namespace) -> Iterator[Any]:
    import fuseline

    # An empty kernel cache, so that the first run shows what compiling takes
    with (
        tempfile.TemporaryDirectory() as kernels,
        fuseline.connect(device="gpu", fuse="always", cache_dir=kernels) as connection,
    ):
        if options.data:
            connection.read_parquet(options.data, "lineitem")
        else:
            register_synthetic(connection, rows, options.seed)
        yield connection


def _measure(connection: Any, name: str, sql: str, options: argparse.Namespace) -> Measured:
    """Run a query cold, compare its answer, then time it hot."""
    measured = Measured(name, " ".join(sql.split()))
    try:
        _set(connection, "always")
        seconds, answer, receipt = _run(connection, sql)
        measured.cold = 1e3 * seconds
        if receipt is None or not receipt.fused:
            raise RuntimeError(f"not fused: {receipt.reason if receipt else 'no pipeline'}")
        measured.rows, measured.encoded_bytes = receipt.rows, receipt.bytes
        measured.load, measured.compile = 1e3 * receipt.load_seconds, 1e3 * receipt.compile_seconds
        measured.kernel_file = str(receipt.kernel)
        if not options.skip_unfused:
            _time_unfused(connection, sql, answer, measured, options.unfused_repeat)
        _set(connection, "always")
        _run(connection, sql)
        measured.runs = [1e3 * _run(connection, sql)[0] for _ in range(options.repeat)]
        measured.fused = statistics.median(measured.runs)
        measured.kernel = statistics.median(_kernel_times(connection, sql, options.repeat))
    except Exception as error:
        measured.status, measured.message = "error", f"{type(error).__name__}: {error}"
        traceback.print_exc()
    return measured


def _time_unfused(
    connection: Any, sql: str, answer: pa.Table, measured: Measured, repeat: int
) -> None:
    _set(connection, "never")
    _, expected, _ = _run(connection, sql)
    if not _same(expected, answer):
        raise RuntimeError(f"unfused {expected.to_pylist()[:3]}, fused {answer.to_pylist()[:3]}")
    measured.unfused = statistics.median(1e3 * _run(connection, sql)[0] for _ in range(repeat))


def _set(connection: Any, fuse: str) -> None:
    connection.set_option("fuse", fuse)


def _run(connection: Any, sql: str) -> tuple[float, pa.Table, Any]:
    """Return seconds from text to Arrow, the answer, and the pipeline's receipt."""
    start = time.perf_counter()
    frame = connection.sql(sql)
    answer = frame.to_arrow()
    seconds = time.perf_counter() - start
    receipts = [n.receipt for n in frame.profile.nodes if n.receipt is not None]
    return seconds, answer, receipts[0] if receipts else None


def _same(expected: pa.Table, found: pa.Table) -> bool:
    if expected.schema != found.schema or expected.num_rows != found.num_rows:
        return False
    pairs = zip(expected.columns, found.columns, strict=True)
    values = ((a, b) for x, y in pairs for a, b in zip(x.to_pylist(), y.to_pylist(), strict=True))
    return all(
        math.isclose(a, b, rel_tol=1e-9)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in values
    )


# Time on the device


def copy_bandwidth() -> float:
    """Return bytes a second, read and written, of a large copy within the device; the median of ten."""
    import rmm
    from cuda.bindings import runtime

    source, target = (rmm.DeviceBuffer(size=COPY_BYTES) for _ in range(2))
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
    seconds = []
    for _ in range(13):
        with _events() as elapsed:
            _checked(runtime.cudaMemcpyAsync(target.ptr, source.ptr, COPY_BYTES, kind, 0))
        seconds.append(elapsed[0] / 1e3)
    return float(2 * COPY_BYTES / statistics.median(seconds[3:]))


def _kernel_times(connection: Any, sql: str, repeat: int) -> list[float]:
    """Milliseconds of each launch of the query's kernel."""
    from fuseline.operators.gpu.pipeline import launch as kernels

    original, times = kernels.launch, []

    def timed(*arguments: Any) -> None:
        with _events() as elapsed:
            original(*arguments)
        times.append(elapsed[0])

    kernels.launch = timed
    try:
        for _ in range(repeat):
            _run(connection, sql)
    finally:
        kernels.launch = original
    return times


@contextmanager
def _events() -> Iterator[list[float]]:
    """Milliseconds of what is launched on the default stream inside; waits for it."""
    from cuda.bindings import runtime

    begin, end = _checked(runtime.cudaEventCreate()), _checked(runtime.cudaEventCreate())
    elapsed: list[float] = []
    _checked(runtime.cudaEventRecord(begin, 0))
    yield elapsed
    _checked(runtime.cudaEventRecord(end, 0))
    _checked(runtime.cudaEventSynchronize(end))
    elapsed.append(_checked(runtime.cudaEventElapsedTime(begin, end)))
    _checked(runtime.cudaEventDestroy(begin))
    _checked(runtime.cudaEventDestroy(end))


def _checked(answer: tuple[Any, ...]) -> Any:
    error, *values = answer
    if int(error) != 0:
        raise RuntimeError(f"CUDA answered {error.name}")
    return values[0] if values else None


# The table


def _print(found: list[Measured], copy: float) -> None:
    print(f"\ncopy within the device: {copy / 1e9:,.0f} GB/s")
    print(
        f"{'':10}{'rows':>12}{'MB':>8}{'kernel':>9}{'fused':>9}{'unfused':>10}{'x':>7}{'GB/s':>7}{'%':>5}"
    )
    for measured in found:
        print(_line(measured, copy))
    random = [m for m in found if m.name.startswith("R") and m.status == "ok"]
    if random and copy:
        share = statistics.median(m.bandwidth / copy for m in random)
        print(f"random queries: median {100 * share:.0f} % of the copy's bandwidth")


def _line(m: Measured, copy: float) -> str:
    if m.status != "ok":
        return f"{m.name:10}{m.status}: {m.message[:150]}"
    share = f"{100 * m.bandwidth / copy:5.0f}" if copy else ""
    times = m.unfused / m.fused if m.fused else 0.0
    return (
        f"{m.name:10}{m.rows:12,}{m.encoded_bytes / 1e6:8,.0f}{m.kernel:9.3f}{m.fused:9.3f}"
        f"{m.unfused:10.2f}{times:7.1f}{m.bandwidth / 1e9:7,.0f}{share}"
    )


if __name__ == "__main__":
    sys.exit(main())
