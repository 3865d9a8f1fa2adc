"""Two results side by side: `python -m benchmarks.compare before.json after.json --engine fuseline`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.summary import geometric_mean


def main(arguments: Sequence[str] | None = None) -> int:
    """Print hot times before and after; 1 when a query now fails or got slower than `--limit` allows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--engine", help="by default each engine that both results have")
    parser.add_argument("--limit", type=float, help="fail when a hot time grows by this factor")
    options = parser.parse_args(arguments)
    before, after = json.loads(options.before.read_text()), json.loads(options.after.read_text())
    for key in ("suite", "scale", "machine"):
        if before[key] != after[key]:
            print(f"Not like with like: {key} was {before[key]} and is {after[key]}.")
    both = [name for name in before["engines"] if name in after["engines"]]
    names = [options.engine] if options.engine else both
    worst = [_print(before, after, name) for name in names]
    lost = any(ratio is None for ratios in worst for ratio in ratios)
    slow = options.limit and any(r > options.limit for ratios in worst for r in ratios if r)
    return 1 if lost or slow else 0


def _print(before: dict[str, Any], after: dict[str, Any], name: str) -> list[float | None]:
    """One engine's table; the ratios after / before, None where a query was ok and is no more."""
    table = Table(title=name)
    for heading in ("query", "before ms", "after ms", "after / before"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    ratios: list[float | None] = []
    for query, row in before["queries"].items():
        was = row["engines"][name]
        now = after["queries"].get(query, {"engines": {}})["engines"].get(name)
        if now is None:
            continue
        ratio = now["hot"] / was["hot"] if was["hot"] and now["hot"] else None
        if was["hot"]:
            ratios.append(ratio)
        table.add_row(query, _shown(was), _shown(now), f"{ratio:.2f}" if ratio else "")
    known = [ratio for ratio in ratios if ratio]
    table.add_section()
    mean = geometric_mean(known)
    table.add_row("geometric mean", "", "", "" if mean is None else f"{mean:.2f}", style="bold")
    Console().print(table)
    return ratios


def _shown(found: dict[str, Any]) -> str:
    return f"{found['hot'] * 1e3:,.1f}" if found["hot"] else str(found["status"])


if __name__ == "__main__":
    raise SystemExit(main())
