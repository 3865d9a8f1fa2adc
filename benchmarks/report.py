"""A result as tables in the terminal: `python -m benchmarks.report out.json out.png --roofline kernels.png`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.summary import FUSED, UNFUSED, baseline_of, speedups, summary

MINIMUM_WIDTH, ENGINE_WIDTH = 60, 26  # of tables that go to a file or a pipe


def print_table(result: dict[str, Any]) -> None:
    """Cold and hot milliseconds of each engine, how many times faster than the baseline, and what fusing gains."""
    names = list(result["engines"])
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(120, MINIMUM_WIDTH + ENGINE_WIDTH * len(names)))
    console.print(_times_table(result))
    if "data" in result:
        console.print(f"The data: {described(result['data'])}")
    if any(found.get("floor") for _, _, found in _found(result)):
        console.print(_floors_table(result))
    for name, devices in placement(result).items():
        counted = ", ".join(f"{n} on {device}" for device, n in sorted(devices.items()))
        console.print(f"Plan nodes of {name}: {counted}")
    for query, name, found in _found(result):
        if found["message"]:
            problem = found["message"].splitlines()[0][:150]
            console.print(escape(f"{query} {name} {found['status']}: {problem}"))


def described(figures: dict[str, int | float]) -> str:
    """Counts of generated data, each by its name."""
    return ", ".join(f"{value:,} {name}" for name, value in figures.items())


def _times_table(result: dict[str, Any]) -> Table:
    names, baseline, whole = list(result["engines"]), baseline_of(result), summary(result)
    others = [name for name in names if name != baseline]
    faster = {name: speedups(result, name, baseline) for name in others}
    if "fused" in whole:
        faster["fusing"] = speedups(result, FUSED, UNFUSED)
    table = Table(title=title(result), caption=caption(result), row_styles=["", "dim"])
    table.add_column("query")
    table.add_column("rows", justify="right")
    for name in names:
        table.add_column(f"{name}\ncold ms", justify="right")
        table.add_column("\nhot ms", justify="right")
    for name in others:
        table.add_column(f"{baseline} /\n{name}", justify="right")
    if "fused" in whole:
        table.add_column("unfused /\nfused", justify="right")
    for query, row in result["queries"].items():
        cells = [cell for name in names for cell in _times(row["engines"][name])]
        ratios = [_ratio(of.get(query)) for of in faster.values()]
        table.add_row(query, str(row["rows"]), *cells, *ratios)
    table.add_section()
    cells = [cell for name in names for cell in _totals(whole, name)]
    ratios = [_ratio(whole["engines"][name]["total_faster"]) for name in others]
    table.add_row("total", "", *cells, *ratios, style="bold")
    ratios = [_ratio(whole["engines"][name]["hot_faster"]) for name in others]
    blank = [""] * (2 * len(names))
    table.add_row("geometric mean", "", *blank, *ratios, style="bold")
    if whole.get("fused"):
        medians = [*[""] * len(others), _ratio(whole["fused"]["median"])]
        table.add_row("median", "", *blank, *medians, style="bold")
    return table


def _floors_table(result: dict[str, Any]) -> Table:
    """For each engine that knows its columns: what it has to read, how long that takes at least, and what took the time."""
    table = Table(
        title="bytes of the columns read, at the measured bandwidth", row_styles=["", "dim"]
    )
    table.add_column("query")
    table.add_column("engine")
    for heading in ("MB", "floor ms", "hot ms", "hot / floor", "cold loaded MB"):
        table.add_column(heading, justify="right")
    table.add_column("most of it")
    for query, name, found in _found(result):
        floor = found.get("floor")
        if floor:
            cells = (f"{floor['bytes'] / 1e6:,.1f}", f"{floor['seconds'] * 1e3:.3f}")
            hot = f"{found['hot'] * 1e3:,.2f}", _ratio(found["hot"] / floor["seconds"])
            loaded = f"{found['loaded'] / 1e6:,.1f}"
            spent = floor["spent"][floor["bound"]] / found["hot"]
            most = f"{floor['bound']} {min(spent, 1):.0%}"
            table.add_row(query, name, *cells, *hot, loaded, most)
    return table


def placement(result: dict[str, Any]) -> dict[str, Counter[str]]:
    """For each engine that tells, how many plan nodes ran on which device, over all queries."""
    counts: dict[str, Counter[str]] = {}
    for _, name, found in _found(result):
        devices = Counter(node["device"] for node in found["placement"])
        if devices:
            counts[name] = counts.get(name, Counter()) + devices
    return counts


def _found(result: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Query, engine and what was measured."""
    return [
        (query, name, found)
        for query, row in result["queries"].items()
        for name, found in row["engines"].items()
    ]


def _totals(whole: dict[str, Any], name: str) -> tuple[str, str]:
    """Cold and hot over the queries that this engine answered, and how many, if not all."""
    found = whole["engines"][name]
    partly = "" if found["answered"] == whole["queries"] else f" ({found['answered']})"
    return _milliseconds(found["cold"]) + partly, _milliseconds(found["hot"]) + partly


def _times(found: dict[str, Any]) -> tuple[str, str]:
    if found["status"] != "ok":
        return "", f"[red]{found['status']}[/red]"
    return _milliseconds(found["cold"]), _milliseconds(found["hot"])


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def title(result: dict[str, Any]) -> str:
    """Suite, scale and how it was measured."""
    return f"{result['suite']} SF{result['scale']:g}, median of {result['repeat']}"


def caption(result: dict[str, Any]) -> str:
    """The machine, and the versions of the engines that ran."""
    box, versions = result["machine"], result["versions"]
    gpus = ", ".join(gpu["name"] for gpu in box["gpus"]) or "no GPU"
    used = [name for name in versions if any(e.startswith(name) for e in result["engines"])]
    shown = [f"{name} {versions[name]}" for name in used]
    return f"{box['cpu']}, {box['cores']} cores, {gpus}; {', '.join(shown)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a stored result, and draw it where paths are given."""
    from benchmarks.charts import bars, roofline

    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("chart", type=Path, nargs="?", help="draw hot times here")
    parser.add_argument("--roofline", type=Path, help="draw what each kernel reached here")
    options = parser.parse_args(arguments)
    result = json.loads(options.result.read_text())
    print_table(result)
    if options.chart:
        bars(result, options.chart)
    if options.roofline:
        roofline(result, options.roofline)


if __name__ == "__main__":
    main()
