"""Two installations of Fuseline, query by query in turn on one machine: the ratio of their times, and its spread.

    python -m benchmarks.micro.duel BEFORE AFTER --device gpu --sf 10 --data data/tpch-sf10 --json out/duel.json

BEFORE and AFTER are folders to put before all others on Python's path, as `pip install --target` makes them.  Each has one process
for the whole comparison, with a kernel folder of its own, and the two take turns within a few milliseconds: a host's processors
change their speed by a factor of two within seconds, so that whole runs after one another compare its clock.  Only one works at a
time, and where a GPU does the work both use one core, since cores differ as much.  Answers are compared before anything is timed.

`--kind constants` asks TPC-H's queries with other random parameters in each turn, once; `--kind cold` begins two processes in each
turn, which find their kernels on disk and ask all queries once, one after another.  Rows in no order are those of a folder that
`benchmarks.shuffle` made.  What BEFORE refuses is shown and not compared.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import math
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import BytesAreText, Tables
from benchmarks.suites import SUITES
from benchmarks.summary import geometric_mean
from benchmarks.tpch import parameters

ROOT = Path(__file__).parents[2]
WORSE = 1.05  # the lower quartile of a ratio that is said to be worse
ANSWER_SECONDS = 120.0
TURN_SECONDS = 1.0  # after which no more runs belong to a turn
WARM_SECONDS = 30.0  # for the kernels of one query, which older installations compile aside


class Refused(Exception):
    """An error of one side instead of an answer."""


class Side:
    """The process of one installation."""

    def __init__(
        self,
        folder: Path,
        kernels: Path,
        device: str,
        tables: Tables,
        switches: Sequence[str] = (),
    ) -> None:
        path = os.pathsep.join([str(folder.resolve()), str(ROOT), os.environ.get("PYTHONPATH", "")])
        self._begin = partial(
            subprocess.Popen,
            [sys.executable, "-m", "benchmarks.micro.duel", "--serve", device, *switches],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Compiled modules are kept, as pip leaves them
            env=os.environ
            | {"PYTHONPATH": path, "FUSELINE_CACHE_DIR": str(kernels)}
            | {"PYTHONDONTWRITEBYTECODE": ""},
            cwd=kernels.parent,
        )
        self._tables = {
            n: [str(Path(p).resolve()), isinstance(p, BytesAreText)] for n, p in tables.items()
        }
        self._process: subprocess.Popen[str] = self._begin()
        self.installed = self._answer(self._tables)

    def ask(self, question: Any) -> Any:
        """Return the answer; raises `Refused`, also where the process ended or hangs, which is begun anew then."""
        try:
            found = self._answer(question)
        except (EOFError, BrokenPipeError):
            self._end(0)
            self._process = self._begin()
            self._answer(self._tables)
            raise Refused(f"the process ended, or gave no answer in {ANSWER_SECONDS} s") from None
        if isinstance(found, str):
            raise Refused(found)
        return found

    def _answer(self, question: Any) -> Any:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps(question) + "\n")
        to.flush()
        ready, _, _ = select.select([back], [], [], ANSWER_SECONDS)
        if not ready or not (line := back.readline()):
            raise EOFError
        return json.loads(line)

    def close(self) -> None:
        self._end(ANSWER_SECONDS)  # older ones wait for what they compile

    def _end(self, patience: float) -> None:
        with self._process as process:
            try:
                process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()


def serve(device: str, switches: Sequence[str]) -> None:
    """Answer questions on standard input: the tables, then `[text, 0]` for a digest or `[text, runs]` for seconds; text is an error.

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
    for name, (path, as_text) in json.loads(input()).items():
        connection.read_parquet(path, name, **({"binary_as_string": True} if as_text else {}))
    print(json.dumps(str(Path(fuseline.__file__).parent)), flush=True)
    cores = os.sched_getaffinity(0)
    for line in sys.stdin:
        text, runs = json.loads(line)
        try:
            found = _seconds(connection, text, runs) if runs else [_digest(connection, text, cores)]
        except Exception as error:
            found = f"{type(error).__name__}: {error}".partition("\n")[0]
        if not runs and device == "gpu":  # this thread alone: threads begun later would inherit it
            os.sched_setaffinity(0, {min(cores)})
        print(json.dumps(found), flush=True)


def _seconds(connection: Any, text: str, runs: int) -> list[float]:
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        connection.sql(text).to_arrow()
        found.append(time.perf_counter() - start)
        if sum(found) > TURN_SECONDS:
            break
    return found


def _digest(connection: Any, text: str, cores: set[int]) -> str:
    """Run a query until nothing is compiled aside or read anew, as files written seconds ago are, and return a digest of its rows."""
    os.sched_setaffinity(0, cores)
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


def compared(sides: list[Side], text: str, turns: Sequence[str], runs: int) -> dict[str, Any]:
    """Warm both sides with a text, then ask them the text of each turn so many times."""
    if unequal := _unequal(sides, text):
        return unequal
    _in_turn(sides, text, 3, 0)
    times: list[tuple[float, float]] = []
    for turn, asked in enumerate(turns):
        times.append(_in_turn(sides, asked, runs, turn))
        if asked != text and (unequal := _unequal(sides, asked)):
            return unequal
    return _row(times)


def cold(start: Callable[[], list[Side]], texts: dict[str, str], turns: int) -> dict[str, Any]:
    """Ask each text once in new processes, in each turn."""
    sides = start()
    report: dict[str, Any] = {name: _unequal(sides, text) for name, text in texts.items()}
    times: dict[str, list[tuple[float, float]]] = {
        n: [] for n, found in report.items() if not found
    }
    for turn in range(turns):
        for side in sides:
            side.close()
        sides = start()
        for name, found in times.items():
            found.append(_in_turn(sides, texts[name], 1, turn))
    for side in sides:
        side.close()
    return report | {name: _row(found) for name, found in times.items()}


def _unequal(sides: list[Side], text: str) -> dict[str, Any] | None:
    """The row of a text whose answers differ, or which a side refuses."""
    digests: list[Any] = []
    errors: list[str | None] = [None, None]
    for number, side in enumerate(sides):
        try:
            digests.append(side.ask([text, 0]))
        except Refused as error:
            errors[number] = str(error)
    if any(errors) or digests[0] != digests[1]:
        return {"equal": False, "errors": errors}
    return None


def _in_turn(sides: list[Side], text: str, runs: int, turn: int) -> tuple[float, float]:
    order = sides if turn % 2 == 0 else sides[::-1]
    found = {side: statistics.median(side.ask([text, runs])) for side in order}
    return found[sides[0]], found[sides[1]]


def _row(times: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The medians of both sides, and the median and quartiles of the ratios of neighbouring turns."""
    ratios = [after / before for before, after in times]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    before, after = (statistics.median(side) for side in zip(*times, strict=True))
    row = {"equal": True, "before": before, "after": after, "ratio": middle}
    return row | {"quartiles": [low, high], "turns": times}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--suite", default="tpch", choices=list(SUITES))
    parser.add_argument("--kind", default="hot", choices=["hot", "constants", "cold"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument("--data", type=Path, help="the folder of the tables, made where not given")
    parser.add_argument("--queries", default="", help="names with commas between; all by default")
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--runs", type=int, default=5, help="of one query in one turn, hot")
    parser.add_argument("--kernels", type=Path, help="a folder for the kernels of both, kept")
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="seconds after which no query begins"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    suite = SUITES[given.suite]
    texts, tables = suite.queries(given.sf), suite.tables(given.sf, given.data)
    if given.queries:
        texts = {name: texts[name] for name in given.queries.split(",")}
    if given.kind == "constants" and given.suite != "tpch":
        parser.error("other parameters are drawn for tpch alone")
    with tempfile.TemporaryDirectory() as folder:
        start = partial(_started, given, given.kernels or Path(folder), tables)
        report = (
            cold(start, texts, given.turns)
            if given.kind == "cold"
            else _warm(given, start(), texts)
        )
    print("\n".join(f"{name:12} {_shown(row)}" for name, row in report.items()))
    if rows := [row for row in report.values() if row["equal"]]:
        turns = zip(*(row["turns"] for row in rows), strict=True)
        total = _row([(sum(b for b, _ in turn), sum(a for _, a in turn)) for turn in turns])
        mean = geometric_mean([row["ratio"] for row in rows])
        print(f"all {len(rows)}: {_shown(total)}, geometric mean {mean:.3f}")
        worse = [n for n, row in report.items() if row["equal"] and row["quartiles"][0] > WORSE]
        print(f"slower by over {WORSE - 1:.0%} beyond the spread: {', '.join(worse) or 'none'}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(report, indent=1))
    return int(any(not row["equal"] and not row["errors"][0] for row in report.values()))


def _started(given: argparse.Namespace, kernels: Path, tables: Tables) -> list[Side]:
    sides = []
    for number, folder in enumerate([given.before, given.after]):
        own = kernels.resolve() / f"kernels{number}"
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        sides.append(Side(folder, own, given.device, tables))
    return sides


def _warm(given: argparse.Namespace, sides: list[Side], texts: dict[str, str]) -> dict[str, Any]:
    print(" -> ".join(side.installed for side in sides))
    report: dict[str, Any] = {}
    end = time.monotonic() + given.limit
    for name, text in texts.items():
        if time.monotonic() > end:
            print(f"no time for {len(texts) - len(report)} queries, from {name} on")
            break
        turns, runs = [text] * given.turns, given.runs
        if given.kind == "constants":
            turns = [parameters.queries(given.sf, turn + 1)[name] for turn in range(given.turns)]
            runs = 1
        report[name] = compared(sides, text, turns, runs)
        print(name, _shown(report[name]), file=sys.stderr, flush=True)
    for side in sides:
        side.close()
    return report


def _shown(row: dict[str, Any]) -> str:
    if not row["equal"]:
        errors = (
            f"{who}: {e}" for who, e in zip(("before", "after"), row["errors"], strict=True) if e
        )
        return "; ".join(errors) or "NOT THE SAME ANSWER"
    low, high = row["quartiles"]
    return f"{row['before'] * 1e3:8.3f} -> {row['after'] * 1e3:8.3f} ms  {row['ratio']:.3f} ({low:.3f}-{high:.3f})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
