"""Writes the figures in README.md and benchmarks/README.md from `results/*.json` and `peers.json`: `python -m benchmarks.page`.

A block of a page, between `<!-- name -->` and `<!-- end of name -->`, is what one function here makes of the results; no figure
is typed by hand, and a test compares.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import streams
from benchmarks.report import described
from benchmarks.suites import SUITES
from benchmarks.summary import FUSED, UNFUSED, baseline_of, speedups, summary

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PEERS = Path(__file__).parent / "peers.json"

Result = dict[str, Any]
Results = Mapping[str, Result]  # by file name without its end, in their order


def stored() -> Results:
    """All results worth keeping."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def rendered(page: Path, results: Results) -> str:
    """The page with its blocks as the results make them."""
    text = page.read_text()
    for name, make in BLOCKS[str(page.relative_to(ROOT))].items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"(?<={re.escape(begin)}\n).*?(?={re.escape(end)})", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{page.name} has no {begin} ... {end}")
        block = make(results)
        text = pattern.sub(lambda _, block=block: block, text)
    return text


# benchmarks/README.md


def all_results(results: Results) -> str:
    """A section for each result, by what kind of run it was."""
    last = [name for name, result in results.items() if _kind(result) == "pipelines"]
    names = [name for name in results if name not in last] + last
    return "\n".join(_section(name, results[name]) for name in names)


def peers(results: Results) -> str:
    """Published totals of the same suites and scales, with ours among them, the fastest first."""
    rows = json.loads(PEERS.read_text())
    published = {(row["suite"], row["scale"]) for row in rows}
    for name, result in results.items():
        if _is_of_suite(result) and not _is_shuffled(result):
            scale = (result["suite"], result["scale"])
            rows += _ours(name, result) if scale in published else []
    rows.sort(key=lambda row: (row["suite"], row["scale"], row["seconds"]))
    cells = [_peer(row) for row in rows]
    return _table(["suite", "system", "seconds", "on", "what", "source"], cells, "llrlll")


def _ours(name: str, result: Result) -> list[dict[str, Any]]:
    found = []
    for engine, row in summary(result)["engines"].items():
        if row["answered"] == len(result["queries"]):
            found.append(
                {
                    "system": f"**{engine}**" if engine.startswith(FUSED) else engine,
                    "suite": result["suite"],
                    "scale": result["scale"],
                    "hardware": _hardware(result),
                    "seconds": row["hot"],
                    "what": "hot, measured here",
                    "source": f"results/{name}.json",
                }
            )
    return found


def _peer(row: dict[str, Any]) -> list[str]:
    suite = SUITES[row["suite"]].named(row["scale"])
    seconds = f"{row.get('relation', '')} {row['seconds']:.3g}".strip()
    link = row["source"]
    shown = link.removeprefix("https://").split("/")[0] if "://" in link else link
    return [suite, row["system"], seconds, row["hardware"], row["what"], f"[{shown}]({link})"]


def _section(name: str, result: Result) -> str:
    parts = [f"### {_title(result)}\n", _measured_on(name, result)]
    if _kind(result) == "streams":
        parts.append(_streams(result))
    elif _kind(result) == "pipelines":
        parts.append(_pipelines(result))
    elif _kind(result) == "limits":
        parts.append(_limits(result))
    else:
        parts += [_totals(result), _queries(result)]
    if (RESULTS / f"{name}.png").exists():
        parts.append(f"![hot times](results/{name}.png)\n")
    return "\n".join(parts)


def _totals(result: Result) -> str:
    whole = summary(result)
    baseline = whole["baseline"]
    alone = len(whole["engines"]) == 1
    ratios = [] if alone else [f"{baseline} / engine: total", "geometric mean"]
    headings = ["engine", "answered", "cold total", "hot total", *ratios]
    rows = [
        [
            engine,
            f"{row['answered']} of {whole['queries']}",
            _ms(row["cold"]),
            _ms(row["hot"]),
            *([] if alone else [_times(row["total_faster"]), _times(row["hot_faster"])]),
        ]
        for engine, row in whole["engines"].items()
    ]
    text = _table(headings, rows, "l" + "r" * (len(headings) - 1))
    fused = whole.get("fused")
    if fused:
        query, least = fused["least"]
        slower = ", ".join(fused["slower"]) or "none"
        text += (
            f"\nUnfused / fused: median {_times(fused['median'])}, least {_times(least)} ({query}); "
            f"slower by more than 10 %: {slower}.\n"
        )
    return text


def _queries(result: Result) -> str:
    """One line a query: each engine's hot time, the first one's cold time, ratios, and the floor of the first."""
    names, baseline = list(result["engines"]), baseline_of(result)
    lead = FUSED if FUSED in names else names[0]
    over = {f"{baseline} / {lead}": speedups(result, lead, baseline)} if lead != baseline else {}
    if FUSED in names and UNFUSED in names:
        over["unfused / fused"] = speedups(result, FUSED, UNFUSED)
    with_floor = any(row["engines"][lead].get("floor") for row in result["queries"].values())
    loading = _kind(result) == "sequence"
    counted = all("compiled" in row["engines"][lead] for row in result["queries"].values())
    first = [f"{lead} first ms", "new kernels"] if counted else []
    cold = [*first, f"{lead} cold ms", *(["MB loaded in it"] if loading else [])]
    floors = ["MB read", "floor ms", "most of it"] if with_floor else []
    headings = ["query", *cold, *(f"{name} hot ms" for name in names), *over, *floors]
    rows = []
    for query, row in result["queries"].items():
        found = row["engines"]
        loaded = [f"{found[lead]['loaded'] / 1e6:,.0f}"] if loading else []
        new = [_plain_ms(found[lead]["first"]), str(found[lead]["compiled"])] if counted else []
        times = [
            *new,
            _plain_ms(found[lead]["cold"]),
            *loaded,
            *(_hot(found[name]) for name in names),
        ]
        ratios = [_times(ratio.get(query)) for ratio in over.values()]
        rows.append([query, *times, *ratios, *(_floor(found[lead]) if with_floor else [])])
    return _table(headings, rows, "l" + "r" * (len(headings) - 2) + ("l" if with_floor else "r"))


def _floor(found: dict[str, Any]) -> list[str]:
    floor = found.get("floor")
    if not floor:
        return ["", "", ""]
    share = min(100, 100 * floor["spent"][floor["bound"]] / found["hot"])
    size, seconds = f"{floor['bytes'] / 1e6:,.1f}", f"{floor['seconds'] * 1e3:.3f}"
    return [size, seconds, f"{floor['bound']} {share:.0f} %"]


def _streams(result: Result) -> str:
    parts = []
    for engine in result["engines"]:
        rows = [
            [
                str(row["stream"]) if row["stream"] else "0, the validation parameters",
                f"{row['equal']} of {row['queries']}",
                str(row["compiled"]),
                _ms(row["first"]),
                _ms(row["hot"]),
            ]
            for row in streams.summary(result["streams"], engine)
        ]
        headings = [f"stream, {engine}", "equal", "kernels compiled", "first runs", "hot"]
        parts.append(_table(headings, rows, "lrrrr"))
    return "\n".join(parts)


def _pipelines(result: Result) -> str:
    kernel = ["MB encoded", "kernel ms", "of the copy bandwidth"]
    headings = ["query", "rows", *kernel, "query ms", "unfused ms"]
    rows = [
        [
            query["name"],
            f"{query['rows']:,}",
            f"{query['encoded_bytes'] / 1e6:,.0f}",
            f"{query['kernel']:.2f}",
            f"{query['share_of_copy'] * 100:.0f} %",
            f"{query['fused']:.2f}",
            f"{query['unfused']:.1f}",
        ]
        for query in result["queries"]
        if query["status"] == "ok"
    ]
    return _table(headings, rows, "lrrrrrr")


def _limits(result: Result) -> str:
    """One line a query: seconds of its first run and of the slowest later one in the same connection, under each pair of limits."""
    limits = result["limits"]
    headings = ["query", *(f"{pair} {run} s" for pair in limits for run in ("first", "later"))]
    queries = dict.fromkeys(query for found in limits.values() for query in found)
    rows = [
        [query] + [s for found in limits.values() for s in _runs(found.get(query))]
        for query in queries
    ]
    return (
        "Each pair is memory_limit and column_cache_limit; kernels are on disk, and each answer is compared.\n\n"
        + _table(headings, rows, "l" + "r" * (len(headings) - 1))
    )


def _runs(found: dict[str, Any] | None) -> list[str]:
    if found is None or not found["right"]:
        return ["" if found is None else "not right", ""]
    first, *later = found["seconds"]
    return [f"{first:.2f}", f"{max(later):.2f}" if later else ""]


# README.md


def headline(results: Results) -> str:
    """Totals over DuckDB, and the pipelines of the two scan queries, with the files they are from."""
    tables = [_headline_totals(results), _headline_pipelines(results)]
    links = ", ".join(f"[{name}.json](benchmarks/results/{name}.json)" for name in results)
    return "\n".join(filter(None, tables)) + f"\nFrom {links}.\n"


def _headline_totals(results: Results) -> str:
    """A line for each suite, scale and machine: the same queries repeated, with new constants, and over rows in no order."""
    rows = []
    for result in results.values():
        if not _is_of_suite(result) or _is_shuffled(result) or FUSED not in result["engines"]:
            continue
        found = summary(result)["engines"]
        ours, theirs = found[FUSED], found.get("duckdb")
        rows.append(
            [
                f"{_title(result)}: {ours['answered']} of {len(result['queries'])} queries",
                _ms(ours["hot"]),
                _new_constants(result, results),
                *_shuffled(result, results),
                _ms(theirs["hot"]) if theirs else "",
                _times(ours["hot_faster"]) if theirs else "",
                _ms(ours["cold"]) if _kind(result) == "sequence" else "",
            ]
        )
    ours_headings = ["", "hot", "new constants", "rows shuffled", "DuckDB, rows shuffled"]
    theirs_headings = ["DuckDB, own tables", "faster, geometric mean", "first touch"]
    return _table([*ours_headings, *theirs_headings], rows, "lrrrrrrr") if rows else ""


def _new_constants(result: Result, results: Results) -> str:
    """The median of the first runs of all queries with random parameters, each text new, kernels and columns there."""
    for other in results.values():
        if _kind(other) == "streams" and _is_alike(other, result):
            rows = streams.summary(other["streams"], FUSED)[1:]
            return _ms(statistics.median(row["first"] for row in rows))
    return ""


def _shuffled(result: Result, results: Results) -> tuple[str, str]:
    """Hot over rows in no order: ours and DuckDB's."""
    for other in results.values():
        if _is_of_suite(other) and _is_shuffled(other) and _is_alike(other, result):
            found = summary(other)["engines"]
            theirs = found.get("duckdb")
            return _ms(found[FUSED]["hot"]), _ms(theirs["hot"]) if theirs else ""
    return "", ""


def _is_alike(one: Result, other: Result) -> bool:
    """Whether two results are of the same suite, scale and kind of machine."""
    return all(one[key] == other[key] for key in ("suite", "scale")) and (
        _hardware(one) == _hardware(other)
    )


def _is_of_suite(result: Result) -> bool:
    return _kind(result) in ("queries", "sequence")


def _is_shuffled(result: Result) -> bool:
    return result.get("rows") == "shuffled"


def _headline_pipelines(results: Results) -> str:
    found = [result for result in results.values() if _kind(result) == "pipelines"]
    if not found:
        return ""
    rows = [
        [
            f"{query['name']} over {query['rows'] / 1e6:,.0f} M rows, {_hardware(result)}",
            f"{query['kernel']:.2f} ms",
            f"{query['share_of_copy'] * 100:.0f} %",
            f"{query['fused']:.2f} ms",
            f"{query['unfused']:.1f} ms",
        ]
        for result in found
        for query in result["queries"]
        if query["name"] in ("Q6", "Q1")
    ]
    headings = ["", "one kernel", "of the copy bandwidth", "whole query", "one operator at a time"]
    return _table(headings, rows, "lrrrr")


# Words and cells


def _kind(result: Result) -> str:
    return str(result.get("kind") or ("queries" if "suite" in result else "pipelines"))


def _title(result: Result) -> str:
    if _kind(result) == "pipelines":
        return f"Single pipelines, {_hardware(result)}"
    how = {
        "streams": ", random parameters",
        "sequence": ", one query after another",
        "limits": ", with little memory",
    }
    title = SUITES[result["suite"]].named(result["scale"])
    rows = ", rows shuffled" if _is_shuffled(result) else ""
    return f"{title}{rows}{how.get(_kind(result), '')}, {_hardware(result)}"


def _hardware(result: Result) -> str:
    box = result["machine"]
    gpus = [gpu["name"].removeprefix("NVIDIA ") for gpu in box["gpus"]]
    cores = f"{box['cores']} CPU cores"
    return f"{len(gpus)} {gpus[0]} and {cores}" if gpus else cores


def _measured_on(name: str, result: Result) -> str:
    box, versions = result["machine"], result["versions"]
    gpus = ", ".join(f"{gpu['name']} (driver {gpu['driver_version']})" for gpu in box["gpus"])
    chosen = ("fuseline", "commit", "duckdb", "polars", "pylibcudf-cu13", "numba", "python")
    shown = ", ".join(f"{key} {versions[key]}" for key in chosen if key in versions)
    where = ", ".join(filter(None, [f"{box['cpu']}, {box['cores']} cores", gpus]))
    data = f" The data: {described(result['data'])}." if "data" in result else ""
    return f"{result['when'][:10]}: {where}; {shown}.{data} [All of it](results/{name}.json).\n"


def _hot(found: dict[str, Any]) -> str:
    return _plain_ms(found["hot"]) if found["status"] == "ok" else str(found["status"])


def _plain_ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.1f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:,.1f} ms"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    rule = ["---" if side == "l" else "--:" for side in sides]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [headings, rule, *rows])


BLOCKS: dict[str, dict[str, Callable[[Results], str]]] = {
    "README.md": {"measured": headline},
    "benchmarks/README.md": {"results": all_results, "peers": peers},
}


def main() -> None:
    """Write both pages anew."""
    results = stored()
    for name in BLOCKS:
        (ROOT / name).write_text(rendered(ROOT / name, results))


if __name__ == "__main__":
    main()
