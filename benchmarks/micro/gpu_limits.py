"""TPC-H on one GPU with less memory than it needs: what each query pays under limits, and where it stands when it stalls.

    python -m benchmarks.micro.gpu_limits --scale 10 --limits 4GB/2GB 2GB/1GB --json out/gpu_limits.json
    python -m benchmarks.micro.gpu_limits --scale 100 --limits 10GB/5GB 10GB/5GB/0 --until 500 --json out/gpu_tiers.json

All 22 queries run three times over in one connection, in a process for each memory_limit, column_cache_limit and, if given,
host_cache_limit, and each answer is compared with that of a connection without limits.  Each line shows what the query did: kernels
compiled, runs of pipelines and their new attempts, chunks, bytes read from files, encoded, evicted, copied to the host and put into locked
memory, seconds of each.  A table at the end has the seconds of the first run of all queries and of the best later one of each, the bytes
that these took from tiers below the device, and how many a second: of the whole time, and of that in which columns were lifted.
While a query runs its threads' stacks are taken every `--sample` seconds; the commonest places are printed for those that took long.
With `--passes 2` each process runs twice, so that the second one finds the kernels on disk.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import multiprocessing
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import tpch
from benchmarks.data import tpch_tables
from benchmarks.machine import machine, versions
from benchmarks.micro.limits_tables import by_query, table, verdict
from tests.compare import difference, ordering

# What is counted: a name, where the function is, and how large what it gives is
WATCHED: tuple[tuple[str, str, str], ...] = (
    ("compile", "codegen.compile.kernel_files", "compiled"),
    ("execute", "runtime.executor", "_take_turn"),
    ("generate", "operators.gpu.pipeline.pipeline", "generated"),
    ("lay out", "operators.gpu.pipeline.pipeline", "laid_out"),
    ("kernels", "operators.gpu.pipeline.pipeline", "Attempt.launch"),
    ("unfused", "operators.run_pipeline", "_Run._run_unfused"),
    ("stream", "operators.chunked_run", "ChunkedRun.table"),
    ("chunk", "operators.chunked_run", "ChunkedRun._run_chunk"),
    ("copy up", "operators.gpu.memory.link", "Uploads.add"),
    ("read", "operators.gpu.scan.scan", "_read_share"),
    ("encode", "operators.gpu.scan.load_columns", "encode_together"),
    ("encode each", "operators.gpu.scan.load_columns", "encode_each"),
    ("decode", "operators.gpu.scan.scan", "_decoded"),
    ("join in parts", "runtime.memory", "join_tables"),
    ("leave memory", "runtime.memory", "Held._write"),
    ("lock pages", "operators.gpu.memory.link", "Pool._locked"),
    ("evict", "storage.columns.cache", "ColumnCache.release"),
    ("whole columns", "operators.gpu.scan.host_tier", "_store_columns"),
    ("to host", "operators.gpu.scan.stored_columns", "downloaded"),
    ("lift chunk", "operators.gpu.scan.stored_columns", "_lift_ahead"),
    ("lift", "operators.gpu.scan.encoded", "lift_columns"),
    ("lift plain", "operators.gpu.scan.scan", "lift_columns"),
)
LIMITS = ("memory_limit", "column_cache_limit", "host_cache_limit")
SLOW = 2.0  # seconds from which the stacks of a query are shown
FRAMES = 7


class Counts:
    """Calls, seconds and bytes of what is watched, of one query."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self._lock = threading.Lock()

    def clear(self) -> None:
        for counter in (self.calls, self.seconds, self.bytes, self.errors):
            counter.clear()

    def note(self, name: str, seconds: float, result: Any) -> None:
        with self._lock:
            self.calls[name] += 1
            self.seconds[name] += seconds
            self.bytes[name] += _size(result)

    def fail(self, name: str, error: BaseException) -> None:
        with self._lock:
            self.errors[f"{name}: {type(error).__name__} {str(error)[:60]}".strip()] += 1

    def summary(self) -> dict[str, Any]:
        return {
            name: [calls, round(self.seconds[name], 3), self.bytes[name]]
            for name, calls in self.calls.items()
        } | {"errors": dict(self.errors)}


def _size(result: Any) -> int:
    if isinstance(result, int):
        return result
    if isinstance(result, list):
        return sum(map(_size, result))
    for name in ("device_buffer_size", "nbytes", "size"):
        found = getattr(result, name, None)
        if found is not None:
            return int(found() if callable(found) else found)
    return 0


COUNTS = Counts()


def watch() -> list[str]:
    """Put a counter around each function that is watched; return those that are not there."""
    missing = []
    for name, module, path in WATCHED:
        try:
            owner: Any = importlib.import_module(f"fuseline.{module}")
            *outer, last = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            setattr(owner, last, _counted(name, getattr(owner, last)))
        except (ImportError, AttributeError) as error:
            missing.append(f"{name} ({error})")
    gc.callbacks.append(_collected())
    return missing


def _collected() -> Callable[[str, dict[str, int]], None]:
    """Return what counts Python's looks at all objects, which stop a query for a tenth of a second where many modules are loaded."""
    begun = 0.0

    def note(phase: str, found: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.perf_counter()
        elif found["generation"] == 2:
            COUNTS.note("collect", time.perf_counter() - begun, None)

    return note


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        result = None
        try:
            result = function(*arguments, **named)
            return result
        except BaseException as error:
            COUNTS.fail(name, error)
            raise
        finally:
            COUNTS.note(name, time.perf_counter() - start, result)

    return run


class Sampler(threading.Thread):
    """Takes the stack of one thread every so often, and asks a connection to stop after `limit` seconds."""

    def __init__(self, connection: Any, every: float, limit: float) -> None:
        super().__init__(daemon=True)
        self.stacks: Counter[str] = Counter()
        self._thread = threading.get_ident()
        self._connection, self._every, self._limit = connection, every, limit
        self._ended = threading.Event()

    def run(self) -> None:
        start = time.monotonic()
        asked = False
        while not self._ended.wait(self._every):
            frame = sys._current_frames().get(self._thread)
            if frame is not None:
                places = traceback.extract_stack(frame)[-FRAMES:]
                names = (f"{Path(p.filename).stem}.{p.name}:{p.lineno}" for p in places)
                self.stacks[" > ".join(names)] += 1
            if time.monotonic() - start > self._limit and not asked:
                asked = True
                self._connection.interrupt()

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def sampled(connection: Any, every: float, limit: float) -> Iterator[Sampler]:
    sampler = Sampler(connection, every, limit)
    sampler.start()
    try:
        yield sampler
    finally:
        sampler.end()


def run_all(
    settings: dict[str, str], args: argparse.Namespace, rounds: int, answers: dict[str, Any]
) -> list[dict[str, Any]]:
    """Run the queries over and over in one connection; `answers` are compared with, or filled where there are none."""
    import fuseline

    connection = fuseline.connect(args.device, **settings)
    for name, path in tpch_tables(args.scale, args.data).items():
        connection.read_parquet(path, name)
    queries = tpch.queries(args.scale)
    wanted = args.queries.split(",") if args.queries else list(queries)
    found: list[dict[str, Any]] = []
    for number in range(rounds):
        for name in wanted:
            if time.time() > args.ends:
                print(f"the time is over before {name} of run {number + 1}", flush=True)
                return found
            found.append(_one(connection, name, queries[name], args, answers) | {"run": number + 1})
            if settings:
                print(_line(found[-1]), flush=True)
    return found


def _one(
    connection: Any, name: str, query: str, args: argparse.Namespace, answers: dict[str, Any]
) -> dict[str, Any]:
    COUNTS.clear()
    row: dict[str, Any] = {"query": name, "status": "right"}
    start = time.perf_counter()
    frame = None
    with sampled(connection, args.sample, args.most) as sampler:
        try:
            frame = connection.sql(query)
            answer = frame.to_arrow()
        except (Exception, KeyboardInterrupt) as error:
            row["status"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
            answer = None
    row["seconds"] = round(time.perf_counter() - start, 3)
    if answer is not None:
        problem = difference(
            answers.setdefault(name, answer), answer, ordering(query, answer.column_names)
        )
        row["status"] = "right" if problem is None else f"WRONG {problem}"
        profile = frame.profile
        for what in ("chunks", "tries"):
            row[what] = sum(getattr(n.receipt, what) for n in profile.pipelines)
        row["reasons"] = [n.receipt.reason for n in profile.pipelines if n.receipt.reason]
        row["spilled"] = dict(profile.spilled)
        row["needed"] = _needed(profile)
        lifted: Counter[str] = Counter()
        for each in profile.lifted or ():
            lifted[each.tier] += each.bytes
        row["lifted"] = dict(lifted)
        files = (e for e in profile.lifted or () if e.tier == "Parquet")
        row["files"] = [f"{e.table}.{e.column} {e.reason}".strip() for e in files]
    row["counts"] = COUNTS.summary()
    row["cached"] = connection.cache.used(connection.device)
    row["on host"] = connection.cache.used("cpu")
    if row["seconds"] >= SLOW:
        row["stacks"] = sampler.stacks.most_common(4)
    return row


def _needed(profile: Any) -> int:
    """Return the bytes of the columns that a query reads as kernels read them, each counted once."""
    from fuseline.plan import physical as p
    from fuseline.plan.node import walk

    nodes = [n.node.body if isinstance(n.node, p.Pipeline) else n.node for n in profile.nodes]
    scans = [s for node in nodes for s in walk(node) if isinstance(s, p.ParquetScan)]
    columns = {(scan.table, source) for scan in scans for source in scan.sources}
    return sum(table.sizes.narrow([source], table.num_rows) for table, source in columns)


def _line(row: dict[str, Any]) -> str:
    counts = dict(row["counts"])
    errors = counts.pop("errors")
    parts = [
        f"{name} {calls}x {seconds:.2f}s" + (f" {size / 1e6:,.0f}MB" if size > 1e5 else "")
        for name, (calls, seconds, size) in counts.items()
        if calls > 1 or seconds > 0.005
    ]
    text = f"{row['run']} {row['query']} {row['seconds']:7.3f}s {row['status']}  {'; '.join(parts)}"
    text += f"; {row.get('chunks', 0)} chunks, {row.get('tries', 0)} tries without memory"
    for tier, size in row.get("lifted", {}).items():
        text += f"; {size / 1e6:,.0f} MB of {tier}"
    text += f" ({', '.join(row['files'])})" if row.get("files") else ""
    text += f"; spilled {row['spilled']}" if row.get("spilled") else ""
    for reason in row.get("reasons", ()):
        text += f"\n      not fused: {reason}"
    for error, count in errors.items():
        text += f"\n      {count}x {error}"
    for stack, count in row.get("stacks", ()):
        text += f"\n      {count:4} samples  {stack}"
    return text


def _child(pipe: Any, settings: dict[str, str], args: argparse.Namespace, answers: Any) -> None:
    """Run in a process of its own; without limits when there are no answers yet."""
    rounds = args.rounds if answers else 1
    if missing := watch():
        print("not watched:", ", ".join(missing), flush=True)
    try:
        answers = dict(answers)
        rows = run_all(settings, args, rounds, answers)
        pipe.send((rows, answers))
    except BaseException:
        traceback.print_exc()
        pipe.send(([], answers))


def in_a_process(settings: dict[str, str], args: argparse.Namespace, answers: Any) -> Any:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, settings, args, answers))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = ([], answers)
    process.join()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--data", type=Path, help="a folder with the tables; made if not given")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--limits", nargs="+", default=["4GB/2GB", "2GB/1GB"])
    parser.add_argument("--queries", help="such as q03,q07; all if not given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--sample", type=float, default=0.25)
    parser.add_argument(
        "--most", type=float, default=60.0, help="seconds before a query is stopped"
    )
    parser.add_argument(
        "--until", type=float, default=1e9, help="seconds after which no query begins"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    args.ends = time.time() + args.until
    _, answers = in_a_process({}, args, {})
    print(f"answers without limits: {len(answers)}", flush=True)
    everything = {}
    for pair in args.limits:
        settings = dict(zip(LIMITS, pair.split("/"), strict=False))
        for number in range(args.passes):
            print(f"== {settings}, process {number + 1}")
            rows, _ = in_a_process(settings, args, answers)
            everything[f"{pair} process {number + 1}"] = rows
            print(by_query(rows), verdict(rows), sep="\n", flush=True)
            if args.json is not None:
                args.json.parent.mkdir(parents=True, exist_ok=True)
                args.json.write_text(json.dumps(_result(args, everything), indent=1))
    print(table(everything), flush=True)


def _result(args: argparse.Namespace, everything: dict[str, list[dict[str, Any]]]) -> Any:
    """What the page shows: by limits and query the seconds of its runs in the last process, and whether all were right."""
    limits = {}
    for pair in args.limits:
        rows = everything.get(f"{pair} process {args.passes}", [])
        limits[pair] = {
            query: {
                "seconds": [r["seconds"] for r in rows if r["query"] == query],
                "right": all(r["status"] == "right" for r in rows if r["query"] == query),
                "lifted": [r.get("lifted", {}) for r in rows if r["query"] == query],
            }
            for query in dict.fromkeys(row["query"] for row in rows)
        }
    return {
        "suite": "tpch",
        "scale": args.scale,
        "kind": "limits",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "limits": limits,
    }


if __name__ == "__main__":
    main()
