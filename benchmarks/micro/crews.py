"""TPC-H on a cluster of this machine whose workers are killed, or have little memory.

    python -m benchmarks.micro.crews kills --sf 100 --data /tmp/sf100 --workers 4 --until 95
    python -m benchmarks.micro.crews limits --sf 100 --data /tmp/sf100 --workers 4 --memory-limit 8GB

`kills`: a thread asks one query after the other while workers are killed (`kill -9`), each a random moment after a query has begun.  Of each kill the
seconds until the survivors had ended what they did, until there was another team of as many workers, and until an answer that this
team gave; at the end the memory of each device beside what it was before the first kill.  `limits`: all queries three times over in one connection,
`memory_limit` and half of that for columns on each worker; the slowest run, and the most that one took of its query's best.
Every answer is compared with that of one device without limits.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

import fuseline
from benchmarks import tpch
from benchmarks.data import tpch_tables
from fuseline.settings import parse_bytes
from tests.compare import difference, ordering

LATEST = 0.03  # seconds after a query has begun, in which it is at work or has just ended
LONGEST = 120.0  # for a crew to be whole again
RESTORED, SLOWEST, UNEVEN = 30.0, 6.0, 3.0  # what is wanted: seconds, seconds, times the best


class Suite:
    """The queries that are asked, and the answers of one device."""

    def __init__(self, args: argparse.Namespace) -> None:
        texts = tpch.queries(args.sf)
        self.texts = {n: texts[n] for n in (args.queries.split(",") if args.queries else texts)}
        self._tables = tpch_tables(args.sf, args.data)
        self._answers: dict[str, pa.Table] = {}
        with self.opened(args.device) as alone:
            self._answers = {n: alone.sql(text).to_arrow() for n, text in self.texts.items()}

    def opened(self, device: str, **settings: Any) -> Any:
        connection = fuseline.connect(device, **settings)
        for name, path in self._tables.items():
            connection.read_parquet(path, name)
        return connection

    def problem(self, connection: Any, name: str) -> str | None:
        """What is wrong with a query's answer there."""
        text = self.texts[name]
        try:
            found = connection.sql(text).to_arrow()
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        return difference(self._answers[name], found, ordering(text, found.column_names))


class Stream(threading.Thread):
    """Asks one query after the other until it is to end; `answered` counts them, `wrong` has those that were not right."""

    def __init__(self, suite: Suite, connection: Any) -> None:
        super().__init__(daemon=True)
        self._suite, self._connection = suite, connection
        self.answered, self.wrong = 0, list[str]()
        self.begins, self._ends = threading.Event(), threading.Event()

    def run(self) -> None:
        while not self._ends.is_set():
            for name in self._suite.texts:
                self.begins.set()
                problem = self._suite.problem(self._connection, name)
                self.answered += 1
                if problem is not None:
                    self.wrong.append(f"{name}: {problem}")
                if self._ends.is_set():
                    return

    def end(self) -> None:
        self._ends.set()
        self.join(LONGEST)


def kills(suite: Suite, args: argparse.Namespace, end: float) -> tuple[list[Any], list[str]]:
    draw, found = random.Random(args.seed), []
    settings = {"cluster": "local", "workers": args.workers, "placement": "sharded"}
    with suite.opened(args.device, **settings) as connection:
        wrong = [f"{n}: {p}" for n in suite.texts if (p := suite.problem(connection, n))]
        crew, stream = connection._runner.crew, Stream(suite, connection)
        before, back = _used(connection), list[float]()
        stop = crew._stop

        def noted(*given: Any) -> None:
            stop(*given)
            back.append(time.monotonic())

        crew._stop = noted
        stream.start()
        while len(found) < args.kills and time.monotonic() < end:
            _until(lambda seen=stream.answered: stream.answered > seen + 1)
            processes = sorted(crew.client.run(os.getpid).values())
            team = crew._members.team.number
            stream.begins.clear()
            stream.begins.wait(LONGEST)
            time.sleep(draw.random() * LATEST)
            back.clear()
            begun = time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(draw.choice(processes), signal.SIGKILL)
            _until(lambda team=team: crew._members.team.number > team and crew.size == args.workers)
            there = time.monotonic() - begun
            _until(lambda seen=stream.answered: stream.answered > seen)
            found.append((max([begun, *back]) - begun, there, time.monotonic() - begun))
            print("kill {}: survivors back after {:.2f} s, a team after {:.2f}, answered after {:.2f}".format(len(found), *found[-1]), flush=True)  # fmt: skip
            wrong += [f"{found[-1][2]:.1f} s until an answer"] * (found[-1][2] > RESTORED)
        stream.end()
        wrong += stream.wrong + [f"not run: {args.kills - len(found)} kills"] * (len(found) < args.kills)  # fmt: skip
        for name in suite.texts:  # what was lost is loaded again
            suite.problem(connection, name)
        print(f"{stream.answered} answers; used by worker before, MB: {before}, after: {_used(connection)}; linked: {not crew.not_linked}")  # fmt: skip
    return found, wrong


def _used(connection: Any) -> list[int]:
    rows = connection.sql("select memory - free_memory from fuseline_workers()").fetchall()
    return [round(used / 1e6) for (used,) in rows]


def _until(happens: Any) -> None:
    end = time.monotonic() + LONGEST
    while not happens():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {LONGEST:g} s")
        time.sleep(0.01)


def limits(suite: Suite, args: argparse.Namespace, end: float) -> tuple[dict[str, Any], list[str]]:
    column_limit = parse_bytes("memory_limit", args.memory_limit) // 2
    given = {"memory_limit": args.memory_limit, "column_cache_limit": column_limit}
    settings = {"cluster": "local", "workers": args.workers, "placement": "sharded", **given}
    found: dict[str, list[float]] = {name: [] for name in suite.texts}
    wrong: list[str] = []
    with suite.opened(args.device, **settings) as connection:
        for _ in range(args.rounds):
            for name, times in found.items():
                if time.monotonic() > end:
                    return found, [*wrong, f"not run: {name} and those after it"]
                begun = time.perf_counter()
                problem = suite.problem(connection, name)
                times.append(time.perf_counter() - begun)
                if problem is not None:
                    wrong.append(f"{name}: {problem}")
    for name, times in found.items():
        print(name, " ".join(f"{seconds:.3f}" for seconds in times))
        later = max(times[1:], default=0.0)
        if max(times) > SLOWEST or later > UNEVEN * min(times):
            wrong.append(f"{name}: {max(times):.2f} s, later {later / min(times):.1f} times the best")  # fmt: skip
    return found, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["kills", "limits"])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--data", type=Path, help="a folder with the tables; made if not given")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--queries", help="such as q03,q07; all if not given")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--memory-limit", default="8GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which none begins")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    end = time.monotonic() + args.until
    found, wrong = {"kills": kills, "limits": limits}[args.what](Suite(args), args, end)
    print("not as wanted:", "; ".join(wrong) or "nothing")
    if args.json is not None:
        args.json.write_text(json.dumps({"found": found, "wrong": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
