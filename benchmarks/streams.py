"""The 22 TPC-H queries again with random parameters: `python -m benchmarks.run tpch --streams 3`.

Stream 0 has the validation parameters and compiles what there is to compile; the streams after it, drawn by
the specification's substitution rules, should find all of their kernels: that they do is counted and, with
the answers, decides the exit status.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import (
    Contestant,
    Measurement,
    Question,
    Reference,
    checked_run,
    outcome,
    tell,
)
from benchmarks.tpch import parameters


@dataclass
class Streamed(Measurement):
    """A query with the parameters of one stream: `first` is its first run, `compiled` counts the kernels compiled for it."""

    text: str = ""
    unfused: int = 0


def measure(
    scale: float,
    count: int,
    contestants: Sequence[Contestant],
    reference: Reference,
    names: Sequence[str],
    repeat: int,
) -> list[dict[str, Any]]:
    """For each stream and engine, for each query, its times, and how many kernels it compiled."""
    found = []
    for stream in range(count + 1):
        texts = parameters.queries(scale, stream)
        questions = [reference.ask(name, texts[name]) for name in names]
        row = {c.name: _stream(questions, c, repeat) for c in contestants}
        found.append({"stream": stream, "engines": row})
    return found


def _stream(
    questions: Sequence[Question], contestant: Contestant, repeat: int
) -> dict[str, dict[str, Any]]:
    rows = {}
    for question in questions:
        made = Streamed(text=question.text)
        with outcome(made):
            _query(question, contestant, made, repeat)
        tell(question, contestant, made)
        rows[question.name] = asdict(made)
    return rows


def _query(question: Question, contestant: Contestant, made: Streamed, repeat: int) -> None:
    engine = contestant.engine
    made.first = made.cold = checked_run(engine, question)
    kernels = engine.kernels()
    made.compiled = kernels.compiler if kernels else 0
    engine.settle(question.text)
    made.runs = [checked_run(engine, question) for _ in range(repeat)]
    kernels = engine.kernels()
    made.unfused = kernels.none if kernels else 0
    made.hot = statistics.median(made.runs)


def summary(streams: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """For each stream of an engine: how many answers are equal, and the sums of kernels and seconds."""
    rows = []
    for stream in streams:
        queries = stream["engines"][name].values()
        good = [q for q in queries if q["status"] == "ok"]
        rows.append(
            {
                "stream": stream["stream"],
                "queries": len(queries),
                "equal": len(good),
                "compiled": sum(q["compiled"] for q in queries),
                "unfused": sum(q["unfused"] for q in good),
                "first": sum(q["first"] for q in good),
                "hot": sum(q["hot"] for q in good),
            }
        )
    return rows


def problems(streams: Sequence[dict[str, Any]], promised: Sequence[str]) -> list[str]:
    """Answers that differ, and kernels compiled after stream 0, of the engines that promise neither."""
    found = []
    for stream in streams:
        for name in promised:
            for query, row in stream["engines"][name].items():
                where = f"stream {stream['stream']} {query} {name}"
                if row["status"] != "ok":
                    found.append(f"{where} {row['status']}: {row['message'].splitlines()[0][:150]}")
                elif row["compiled"] and stream["stream"]:
                    found.append(f"{where}: {row['compiled']} kernels compiled")
    return found


def print_streams(streams: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """One table an engine."""
    for name in names:
        table = Table(title=f"{name}, random parameters")
        headings = ("stream", "equal", "compiled kernels", "without kernel", "first ms", "hot ms")
        for heading in headings:
            table.add_column(heading, justify="right")
        for row in summary(streams, name):
            first, hot = (f"{row[key] * 1e3:,.1f}" for key in ("first", "hot"))
            equal = f"{row['equal']} of {row['queries']}"
            counts = str(row["compiled"]), str(row["unfused"])
            table.add_row(str(row["stream"]), equal, *counts, first, hot)
        Console().print(table)
