"""A result as a table in the terminal and as a bar chart: `python -m benchmarks.report out.json out.png`."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

BASELINE = "duckdb"

Combine = Callable[[Iterable[float]], float]


def print_table(result: dict[str, Any]) -> None:
    """Cold and hot milliseconds of each engine and its hot time in units of the baseline's."""
    names = list(result["engines"])
    baseline = BASELINE if BASELINE in names else names[-1]
    others = [name for name in names if name != baseline]
    table = Table(title=_title(result), caption=_caption(result), row_styles=["", "dim"])
    table.add_column("query")
    table.add_column("rows", justify="right")
    for name in names:
        table.add_column(f"{name}\ncold ms", justify="right")
        table.add_column("\nhot ms", justify="right")
    for name in others:
        table.add_column(f"{name} /\n{baseline}", justify="right")
    for query, row in result["queries"].items():
        found = row["engines"]
        cells = [cell for name in names for cell in _times(found[name])]
        ratios = [_ratio(found[name]["hot"], found[baseline]["hot"]) for name in others]
        table.add_row(query, str(row["rows"]), *cells, *ratios)
    table.add_section()
    for label, combine in (("total", sum), ("geometric mean", geometric_mean)):
        cells = [cell for name in names for cell in _summary(result, name, combine)]
        ratios = [_summary_ratio(result, name, baseline, combine) for name in others]
        table.add_row(label, "", *cells, *ratios, style="bold")
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    for name, devices in placement(result).items():
        counted = ", ".join(f"{n} on {device}" for device, n in sorted(devices.items()))
        console.print(f"Plan nodes of {name}: {counted}")
    for query, row in result["queries"].items():
        for name, found in row["engines"].items():
            if found["status"] != "ok":
                problem = found["message"].splitlines()[0][:150]
                console.print(escape(f"{query} {name} {found['status']}: {problem}"))


def chart(result: dict[str, Any], path: Path) -> None:
    """Hot times as grouped bars, on a logarithmic axis since they span two orders of magnitude."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    names, queries = list(result["engines"]), list(result["queries"])
    width = 0.8 / len(names)
    figure, axes = plt.subplots(figsize=(max(6, 0.55 * len(queries)), 4.5), layout="constrained")
    for place, name in enumerate(names):
        found = [result["queries"][query]["engines"][name]["hot"] for query in queries]
        heights = [math.nan if hot is None else hot * 1e3 for hot in found]
        total = sum(hot for hot in found if hot is not None)
        done = sum(hot is not None for hot in found)
        label = f"{name}: {total:.3g} s for {done} of {len(queries)}"
        axes.bar([i + place * width for i in range(len(queries))], heights, width, label=label)
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(queries))], queries)
    axes.set_yscale("log")
    axes.set_ylabel("hot, milliseconds (lower is better)")
    axes.set_title(f"{_title(result)}\n{_caption(result)}", fontsize=9)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.margins(x=0.01)
    figure.legend(loc="outside lower center", ncols=len(names), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def roofline(result: dict[str, Any], path: Path) -> None:
    """Operations a byte against achieved bandwidth, one point a kernel, below what a copy reaches on its device."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for number, (name, engine) in enumerate(result["engines"].items()):
        points = kernels(result, name)
        color = f"C{number}"
        if points:
            _, intensities, rates = zip(*points, strict=True)
            axes.scatter(intensities, rates, color=color, label=name, s=18, zorder=3)
        for label, intensity, rate in points:
            axes.annotate(label, (intensity, rate), (3, 3), fontsize=7, textcoords="offset points")
        for device, bandwidth in engine.get("bandwidth", {}).items():
            label = f"{name}: copy on the {device}, {bandwidth / 1e9:,.1f} GB/s"
            axes.axhline(bandwidth / 1e9, color=color, linestyle="--", linewidth=1, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arithmetic intensity: operations a byte of encoded columns")
    axes.set_ylabel("achieved bandwidth, GB/s")
    axes.set_title(f"{_title(result)}\n{_caption(result)}", fontsize=9)
    axes.set_xlim(0.1, 100)
    low, high = axes.get_ylim()
    axes.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, which="both")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def kernels(result: dict[str, Any], engine: str) -> list[tuple[str, float, float]]:
    """Query, operations a byte and GB/s of each kernel of an engine; those that read no column have no place here."""
    found = []
    for query, row in result["queries"].items():
        for pipeline in row["engines"][engine].get("pipelines", ()):
            size, seconds = pipeline["bytes"], pipeline["seconds"]
            if pipeline["reason"] is None and size and seconds:
                intensity = pipeline["operations"] * pipeline["rows"] / size
                found.append((query, intensity, size / seconds / 1e9))
    return found


def placement(result: dict[str, Any]) -> dict[str, Counter[str]]:
    """For each engine that tells, how many plan nodes ran on which device, over all queries."""
    counts: dict[str, Counter[str]] = {}
    for row in result["queries"].values():
        for name, found in row["engines"].items():
            devices = Counter(node["device"] for node in found["placement"])
            if devices:
                counts[name] = counts.get(name, Counter()) + devices
    return counts


def geometric_mean(seconds: Iterable[float]) -> float:
    """The mean that gives a short query the weight of a long one; NaN of nothing."""
    logs = [math.log(value) for value in seconds]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _done(result: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """What was measured in the queries that all of these engines answered."""
    rows = [row["engines"] for row in result["queries"].values()]
    return [row for row in rows if all(row[name]["status"] == "ok" for name in names)]


def _summary(result: dict[str, Any], name: str, combine: Combine) -> tuple[str, str]:
    """Cold and hot over the queries that this engine answered, and how many, if not all."""
    done = _done(result, name)
    partly = "" if len(done) == len(result["queries"]) else f" ({len(done)})"
    cold, hot = (combine([row[name][key] for row in done]) for key in ("cold", "hot"))
    return _milliseconds(cold) + partly, _milliseconds(hot) + partly


def _summary_ratio(result: dict[str, Any], name: str, baseline: str, combine: Combine) -> str:
    """The ratio over the queries that both answered."""
    done = _done(result, name, baseline)
    return _ratio(*(combine([row[n]["hot"] for row in done]) for n in (name, baseline)))


def _times(found: dict[str, Any]) -> tuple[str, str]:
    if found["status"] != "ok":
        return "", f"[red]{found['status']}[/red]"
    return _milliseconds(found["cold"]), _milliseconds(found["hot"])


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def _ratio(seconds: float | None, baseline: float | None) -> str:
    return f"{seconds / baseline:.2f}" if seconds and baseline else ""


def _title(result: dict[str, Any]) -> str:
    return f"{result['suite']} SF{result['scale']:g}, median of {result['repeat']}"


def _caption(result: dict[str, Any]) -> str:
    box, versions = result["machine"], result["versions"]
    gpus = ", ".join(gpu["name"] for gpu in box["gpus"]) or "no GPU"
    used = [name for name in versions if any(e.startswith(name) for e in result["engines"])]
    shown = [f"{name} {versions[name]}" for name in used]
    return f"{box['cpu']}, {box['cores']} cores, {gpus}; {', '.join(shown)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a stored result, and draw it where paths are given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("chart", type=Path, nargs="?")
    parser.add_argument("--roofline", type=Path, help="draw what each kernel reached here")
    options = parser.parse_args(arguments)
    result = json.loads(options.result.read_text())
    print_table(result)
    if options.chart:
        chart(result, options.chart)
    if options.roofline:
        roofline(result, options.roofline)


if __name__ == "__main__":
    main()
