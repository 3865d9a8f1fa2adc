"""What a result comes to: totals, geometric means over the baseline, and what fusing gains."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

BASELINE = "duckdb"
FUSED, UNFUSED = "fuseline", "fuseline-unfused"
SLOWER = 1.1  # a fused run that takes longer than this many unfused ones is one to look at


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Totals of each engine, how many times faster than the baseline it is, and fused against unfused runs."""
    names = list(result["engines"])
    baseline = baseline_of(result)
    found: dict[str, Any] = {"queries": len(result["queries"]), "baseline": baseline}
    found["engines"] = {name: _engine(result, name, baseline) for name in names}
    if FUSED in names and UNFUSED in names:
        found["fused"] = _fused(speedups(result, FUSED, UNFUSED))
    return found


def baseline_of(result: dict[str, Any]) -> str:
    """DuckDB from its own tables, or the last engine."""
    names = list(result["engines"])
    return BASELINE if BASELINE in names else names[-1]


def _engine(result: dict[str, Any], name: str, baseline: str) -> dict[str, Any]:
    done = answered(result, name)
    times = {key: sum(row[name][key] for row in done) for key in ("cold", "hot")}
    both = answered(result, name, baseline)
    ratios = {}
    for key in ("cold", "hot"):
        pairs = [(row[baseline][key], row[name][key]) for row in both]
        ratios[f"{key}_faster"] = geometric_mean(theirs / ours for theirs, ours in pairs)
    theirs, ours = (sum(row[n]["hot"] for row in both) for n in (baseline, name))
    return {
        "answered": len(done),
        **times,
        **ratios,
        "total_faster": theirs / ours if both else None,
    }


def _fused(ratios: dict[str, float]) -> dict[str, Any]:
    if not ratios:
        return {}
    least = min(ratios, key=lambda query: ratios[query])
    slower = [query for query, ratio in ratios.items() if ratio < 1 / SLOWER]
    median = statistics.median(ratios.values())
    return {"median": median, "least": [least, ratios[least]], "slower": slower}


def speedups(result: dict[str, Any], name: str, other: str, key: str = "hot") -> dict[str, float]:
    """How many times faster than another engine each query is, of those that both answered."""
    return {
        query: row["engines"][other][key] / row["engines"][name][key]
        for query, row in result["queries"].items()
        if all(row["engines"][n]["status"] == "ok" for n in (name, other))
    }


def answered(result: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """What was measured in the queries that all of these engines answered."""
    rows = [row["engines"] for row in result["queries"].values()]
    return [row for row in rows if all(row[name]["status"] == "ok" for name in names)]


def geometric_mean(values: Iterable[float]) -> float | None:
    """The mean that gives a short query the weight of a long one; None of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None
