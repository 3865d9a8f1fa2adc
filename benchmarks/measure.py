"""Measures queries on engines, and times nothing whose answer was not compared with DuckDB's.

Three times a query and engine: `first`, in a new process that finds no kernels but those of earlier queries; `cold`, in
another new process, with the files in the page cache and the kernels on disk; and `hot`, the median of the runs after that.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from benchmarks import engines
from benchmarks.data import Tables
from tests.compare import Ordering, difference, ordering

PEER_TOLERANCE = 1e-6  # relative, for engines whose decimals are not DuckDB's


@dataclass
class Measurement:
    """One query on one engine; seconds and bytes. `status` is ok, differs, unsupported or error.

    `compiled` counts the kernels that the first run did not find, `cold_compiled` those of the cold run, which should be none.
    `loaded` are the bytes that the cold run added to the columns in memory; `columns` the encoded bytes of those that the
    query reads, `needed` what of them it must read; `operator_seconds` what it spent outside of kernels, in a run that waits after each node.
    """

    status: str = "ok"
    message: str = ""
    first: float | None = None
    cold: float | None = None
    hot: float | None = None
    runs: list[float] = field(default_factory=list)
    compiled: int = 0
    cold_compiled: int = 0
    loaded: int = 0
    placement: list[dict[str, Any]] = field(default_factory=list)
    pipelines: list[dict[str, Any]] = field(default_factory=list)
    columns: dict[str, int | None] = field(default_factory=dict)
    needed: dict[str, int | None] = field(default_factory=dict)
    operator_seconds: float | None = None


@dataclass
class Contestant:
    """An engine that has loaded its tables."""

    name: str
    engine: engines.Engine
    load_seconds: float


@dataclass
class Question:
    """A query with DuckDB's answer."""

    name: str
    text: str
    expected: pa.Table
    order: Ordering


class Differs(Exception):
    """An answer that is not DuckDB's."""


def contestant(name: str, tables: Tables) -> Contestant:
    """Load the tables, then measure what kernels are measured against; an engine that cannot load ends the program."""
    engine = engines.make(name)
    try:
        start = time.perf_counter()
        engine.load(tables)
        seconds = time.perf_counter() - start
    except Exception as error:
        raise SystemExit(f"{name} could not load the tables: {first_line(error)}") from error
    print(f"{name} loaded in {seconds:.2f} s", file=sys.stderr)
    for device, copied in engine.measure_bandwidth().items():
        print(f"{name}: a copy on the {device} moves {copied / 1e9:,.1f} GB/s", file=sys.stderr)
    return Contestant(name, engine, seconds)


class Reference:
    """DuckDB over the same Parquet files."""

    def __init__(self, tables: Tables) -> None:
        self._engine = engines.DuckDB(own_tables=False)
        self._engine.load(tables)

    def ask(self, name: str, text: str) -> Question:
        answer = self._engine.run(text)
        return Question(name, text, answer, ordering(text, answer.column_names))

    def figures(self, text: str) -> dict[str, int | float]:
        """The one row of a query, by the names of its columns."""
        (row,) = self._engine.run(text).to_pylist()
        return row

    def close(self) -> None:
        self._engine.close()


def checked_run(engine: engines.Engine, question: Question) -> float:
    """Seconds of one run; raises `Differs` unless the answer is DuckDB's."""
    answer, seconds = engine.timed_run(question.text)
    if engine.exact_types:
        problem = difference(question.expected, answer, question.order)
    else:
        problem = difference(
            question.expected,
            answer,
            question.order,
            exact_types=False,
            tolerance=PEER_TOLERANCE,
        )
    if problem:
        raise Differs(problem)
    return seconds


@dataclass(frozen=True)
class Plan:
    """How often a query runs, not timed and timed, and the clock's time from which on no measurement begins."""

    warmup: int = 1
    repeat: int = 5
    deadline: float = math.inf

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise TimeoutError("the run's time was over")


def one_by_one(
    questions: Sequence[Question], contestants: Sequence[Contestant], plan: Plan
) -> dict[str, dict[str, Measurement]]:
    """Each query alone: engines take turns, so that all of them meet the same machine, and each begins anew."""
    found: dict[str, dict[str, Measurement]] = {}
    for question in questions:
        found[question.name] = {}
        for contestant in contestants:
            made = found[question.name][contestant.name] = Measurement()
            engine = contestant.engine
            with outcome(made):
                plan.check()
                with _begun_anew(engine) as fresh:
                    _first_run(fresh, question, made)
                with _begun_anew(engine) as fresh:
                    _first_touch(fresh, question, made)
                _hot(engine, question, made, plan)
            tell(question, contestant, made)
    return found


def in_sequence(
    questions: Sequence[Question], contestants: Sequence[Contestant], plan: Plan
) -> dict[str, dict[str, Measurement]]:
    """All queries one after another in one connection: what one has read is there for the next.

    A round before it, in another process, checks each answer and compiles the kernels.
    """
    found = {q.name: {c.name: Measurement() for c in contestants} for q in questions}
    for contestant in contestants:
        engine = contestant.engine
        pairs = [(question, found[question.name][contestant.name]) for question in questions]
        for step in (_first_run, _first_touch):
            with _begun_anew(engine) as fresh:
                for question, made in pairs:
                    if made.status == "ok":
                        with outcome(made):
                            plan.check()
                            step(fresh, question, made)
        for question, made in pairs:
            if made.status == "ok":
                with outcome(made):
                    plan.check()
                    _hot(engine, question, made, plan)
            tell(question, contestant, made)
        engine.forget()  # its memory is the next engine's
    return found


@contextmanager
def _begun_anew(engine: engines.Engine) -> Iterator[engines.Engine]:
    """The engine without what earlier runs left: in a new process, or, where nothing but columns is kept, in a new connection."""
    engine.forget()
    fresh = engine.in_new_process()
    try:
        yield fresh or engine
    finally:
        if fresh is not None:
            fresh.close()


def _first_run(engine: engines.Engine, question: Question, made: Measurement) -> None:
    made.first = checked_run(engine, question)
    made.compiled = _compiled(engine)
    engine.settle(question.text)


def _first_touch(engine: engines.Engine, question: Question, made: Measurement) -> None:
    before = sum(engine.columns().values())
    made.cold = checked_run(engine, question)
    made.cold_compiled = _compiled(engine)
    made.loaded = sum(engine.columns().values()) - before


def _compiled(engine: engines.Engine) -> int:
    """How many kernels the last run did not find in memory or on disk."""
    kernels = engine.kernels()
    return kernels.compiler if kernels else 0


def _hot(engine: engines.Engine, question: Question, made: Measurement, plan: Plan) -> None:
    """Time runs whose answers are compared each; what is in memory already is not timed."""
    for _ in range(plan.warmup):
        engine.run(question.text)
    if not engine.settle(question.text):
        made.message = "kernels were still being compiled"
    made.runs = [checked_run(engine, question) for _ in range(plan.repeat)]
    made.placement = engine.placement()
    for key, value in engine.receipts().items():
        setattr(made, key, value)
    made.hot = statistics.median(made.runs)


@contextmanager
def outcome(made: Measurement) -> Iterator[None]:
    """Whatever an engine raises is its result, and takes away its times."""
    try:
        yield
    except engines.NotSupported as error:
        made.status, made.message = "unsupported", first_line(error)
    except Differs as error:
        made.status, made.message = "differs", str(error)
    except Exception as error:
        made.status, made.message = "error", f"{type(error).__name__}: {first_line(error)}"
    if made.status != "ok":
        made.first = made.cold = made.hot = None


def tell(question: Question, contestant: Contestant, made: Measurement) -> None:
    shown = made.message
    if made.cold is not None and made.hot is not None:
        shown = f"cold {made.cold * 1e3:,.1f} ms, hot {made.hot * 1e3:,.1f} ms {made.message}"
    print(f"{question.name} {contestant.name}: {made.status} {shown}", file=sys.stderr, flush=True)


def first_line(error: Exception) -> str:
    return (str(error).strip() or "no message").splitlines()[0][:300]
