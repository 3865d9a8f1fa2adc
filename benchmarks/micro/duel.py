"""Two installations of Fuseline, hot, query by query in turn on one machine: the ratio of their times, and its spread.

    python -m benchmarks.micro.duel BEFORE AFTER --device gpu --sf 10 --data data/tpch-sf10 --json out/duel.json

BEFORE and AFTER are folders to put before all others on Python's path, as `pip install --target` makes them.  Each has one process
for the whole comparison, with a kernel folder of its own, and the two take turns within a few milliseconds: a host's processors
change their speed by a factor of two within seconds, so that whole runs after one another compare its clock.  Only one works at a
time, and where a GPU does the work both use one core, since cores differ as much.  Answers are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import tpch_tables
from benchmarks.suites import SUITES
from benchmarks.summary import geometric_mean

ROOT = Path(__file__).parents[2]
WARM_SECONDS = 30.0  # for the kernels of one query, which older installations compile aside


class Side:
    """The process of one installation."""

    def __init__(
        self,
        folder: Path,
        kernels: Path,
        device: str,
        tables: dict[str, str],
        switches: Sequence[str] = (),
    ) -> None:
        path = os.pathsep.join([str(folder.resolve()), str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "FUSELINE_CACHE_DIR": str(kernels)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.micro.duel", "--serve", device, *switches],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=kernels.parent,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self.installed = self.ask(tables)

    def ask(self, question: Any) -> Any:
        self._to.write(json.dumps(question) + "\n")
        self._to.flush()
        answer = self._from.readline()
        if not answer:
            raise RuntimeError("the process of one side ended")
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate(timeout=60)


def serve(device: str, switches: Sequence[str]) -> None:
    """Answer questions on standard input: the tables, then `[text, 0]` for a digest or `[text, runs]` for seconds.

    A switch such as `codegen.cuda.warp_split:QUEUES=False` gives a name of a module another value.
    """
    import fuseline

    for switch in switches:
        module, _, assigned = switch.partition(":")
        name, _, value = assigned.partition("=")
        owner = importlib.import_module(f"fuseline.{module}")
        getattr(owner, name)  # which there is
        setattr(owner, name, eval(value))
    connection = fuseline.connect(device=device, fuse="always")
    for name, path in json.loads(input()).items():
        connection.read_parquet(path, name)
    print(json.dumps(str(Path(fuseline.__file__).parent)), flush=True)
    for line in sys.stdin:
        text, runs = json.loads(line)
        print(json.dumps(_seconds(connection, text, runs) if runs else _digest(connection, text)))
        sys.stdout.flush()


def _seconds(connection: Any, text: str, runs: int) -> list[float]:
    found = []
    if connection.device == "gpu":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of this thread alone
    for _ in range(runs):
        start = time.perf_counter()
        connection.sql(text).to_arrow()
        found.append(time.perf_counter() - start)
    return found


def _digest(connection: Any, text: str) -> str:
    """Run a query until nothing is compiled aside or read anew, as files written seconds ago are, and return a digest of its rows."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    end = time.monotonic() + WARM_SECONDS
    while True:
        frame = connection.sql(text)
        answer = frame.to_arrow()
        receipts = [found.receipt for found in frame.profile.pipelines]
        if time.monotonic() > end or not any(
            "being compiled" in (r.reason or "") or r.load_seconds for r in receipts
        ):
            break
        time.sleep(0.02)
    columns = [
        [f"{v:.6g}" if isinstance(v, float) else str(v) for v in column.to_pylist()]
        for column in answer.columns
    ]
    rows = sorted(map(repr, zip(*columns, strict=True)))
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def compared(sides: list[Side], text: str, turns: int, runs: int) -> dict[str, Any]:
    """Return the medians of both sides, and the median and quartiles of the ratios of neighbouring turns."""
    digests = [side.ask([text, 0]) for side in sides]
    if digests[0] != digests[1]:
        return {"equal": False}
    for side in sides:
        side.ask([text, 3])
    before, after, ratios = [], [], []
    for turn in range(turns):
        order = sides if turn % 2 == 0 else sides[::-1]
        found = {side: statistics.median(side.ask([text, runs])) for side in order}
        before.append(found[sides[0]])
        after.append(found[sides[1]])
        ratios.append(after[-1] / before[-1])
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "equal": True,
        "before": statistics.median(before),
        "after": statistics.median(after),
        "ratio": middle,
        "quartiles": [low, high],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument(
        "--suite", default="tpch", choices=["tpch", "adhoc", "random"], help="over TPC-H's tables"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument("--data", type=Path, help="the folder of the tables, made where not given")
    parser.add_argument("--queries", default="", help="names with commas between; all by default")
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--runs", type=int, default=5, help="of one query in one turn")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    texts = SUITES[given.suite].queries(given.sf)
    tables = {
        name: str(Path(path).resolve()) for name, path in tpch_tables(given.sf, given.data).items()
    }
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for number, side in enumerate([given.before, given.after]):
            kernels = Path(folder) / f"kernels{number}"
            kernels.mkdir(mode=0o700)
            made.append(Side(side, kernels, given.device, tables))
        print(f"{made[0].installed} -> {made[1].installed}")
        for name in filter(None, given.queries.split(",")) if given.queries else texts:
            report[name] = row = compared(made, texts[name], given.turns, given.runs)
            print(name, _shown(row), flush=True)
        for side in made:
            side.close()
    rows = [row for row in report.values() if row["equal"]]
    before, after = (sum(row[key] for row in rows) for key in ("before", "after"))
    mean = geometric_mean([row["ratio"] for row in rows]) or float("nan")
    print(f"all: {before * 1e3:.2f} -> {after * 1e3:.2f} ms, geometric mean {mean:.3f}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(report, indent=1))
    return 0 if len(rows) == len(report) else 1


def _shown(row: dict[str, Any]) -> str:
    if not row["equal"]:
        return "NOT THE SAME ANSWER"
    low, high = row["quartiles"]
    return f"{row['before'] * 1e3:8.3f} -> {row['after'] * 1e3:8.3f} ms  {row['ratio']:.3f} ({low:.3f}-{high:.3f})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
