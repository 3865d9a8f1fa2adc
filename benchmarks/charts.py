"""Charts of a result: hot times as bars, and what each kernel reached below its device's roof."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.report import caption, title


def bars(result: dict[str, Any], path: Path) -> None:
    """Hot times as grouped bars, on a logarithmic axis since they span two orders of magnitude; a tick is the query's floor."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    names, queries = list(result["engines"]), list(result["queries"])
    width = 0.8 / len(names)
    figure, axes = plt.subplots(
        figsize=(max(6, 0.35 * len(queries) * (1 + 0.3 * len(names))), 4.5), layout="constrained"
    )
    for place, name in enumerate(names):
        found = [result["queries"][query]["engines"][name] for query in queries]
        heights = [math.nan if row["hot"] is None else row["hot"] * 1e3 for row in found]
        total = sum(row["hot"] for row in found if row["hot"] is not None)
        done = sum(row["hot"] is not None for row in found)
        label = f"{name}: {total:.3g} s for {done} of {len(queries)}"
        axes.bar([i + place * width for i in range(len(queries))], heights, width, label=label)
        floors = [
            (i + place * width, row["floor"]["seconds"] * 1e3)
            for i, row in enumerate(found)
            if row.get("floor")
        ]
        if floors and place == 0:
            places, values = zip(*floors, strict=True)
            label = f"{name}: floor at the measured bandwidth"
            axes.scatter(places, values, color="black", marker="_", s=60, zorder=3, label=label)
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(queries))], queries)
    axes.set_yscale("log")
    axes.set_ylabel("hot, milliseconds (lower is better)")
    axes.set_title(f"{title(result)}\n{caption(result)}", fontsize=9)
    low, high = axes.get_ylim()
    axes.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.margins(x=0.01)
    figure.legend(loc="outside lower center", ncols=min(3, len(names) + 1), frameon=False)
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
    axes.set_title(f"{title(result)}\n{caption(result)}", fontsize=9)
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
