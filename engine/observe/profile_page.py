"""A profile as one HTML page: the plan with bars of time, what each kernel moved and how fast, and the kernels' sources.

The page takes nothing from elsewhere, has no script, and says so to browsers; all text of queries, plans and sources is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from .profile_exports import profile_data, source_of

if TYPE_CHECKING:
    from .profile import Profile
    from .profile_exports import KernelData, ProfileData

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LOOK = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --faint: #667085; --line: #d9dee7; --bar: #2f6fde; --fast: #1f9d6b; --card: #f5f7fa; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161d; --ink: #e4e9f1; --faint: #95a1b3; --line: #2c3542; --bar: #6ea0ff; --fast: #45c793; --card: #1a2029; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 84rem; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 .8rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
pre, code, .node { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .8rem; overflow-x: auto; margin: .4rem 0; }
.query { white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: .4rem 2rem; margin: 0; } dl div { min-width: 7rem; } dt { color: var(--faint); font-size: .85rem; } dd { margin: 0; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: var(--faint); font-weight: normal; font-size: .85rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; } .time { min-width: 8rem; } .node { min-width: 16rem; overflow-wrap: anywhere; }
.steps, .note { color: var(--faint); } .steps { text-indent: -1rem; }
.track { background: var(--line); border-radius: 3px; height: .55rem; margin-top: .25rem; } .fill { background: var(--bar); border-radius: 3px; height: 100%; } .fast { background: var(--fast); }
.card { border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; margin: .8rem 0; } .card h3 { margin: 0 0 .5rem; font-size: 1rem; }
details { margin-top: .5rem; } summary { cursor: pointer; color: var(--faint); overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: .8rem; } .wide { display: none; } .node { min-width: 9rem; } .time { min-width: 5rem; } th, td { padding: .3rem .35rem; } }
"""


def profile_html(profile: Profile, query: str | None = None) -> str:
    """Return the page; `query` is shown above the plan."""
    data = profile_data(profile)
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Profile of a query</title><style>{LOOK}</style></head>\n<body>\n",
            "<h1>What a query spent its time on</h1>\n",
            *_summary(data),
            *([] if query is None else [f'<pre class="query">{escape(query.strip())}</pre>\n']),
            *_plan(data),
            *_kernels(data),
            *_workers(data),
            "</body></html>\n",
        ]
    )


def _summary(data: ProfileData) -> Iterator[str]:
    pairs = {
        "execution": _time(data["execution_seconds"]),
        "planning": _time(data["planning_seconds"]) + (", known" if data["cached_plan"] else ""),
        "read": _size(data["bytes_read"]),
    }
    pairs |= {f"spilled to {k}": _size(v) for k, v in data["spilled_bytes"].items()}
    pairs |= {f"copy on the {k}": _rate(v) for k, v in data["copy_bytes_a_second"].items()}
    yield _pairs(pairs)
    if not data["timed"] and any(node["device"] == "gpu" for node in data["nodes"]):
        yield '<p class="note">The run was not timed: on a GPU a node\'s time is that of its launch.</p>\n'


def _pairs(pairs: dict[str, str]) -> str:
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in pairs.items()
    )
    return f"<dl>{items}</dl>\n"


def _plan(data: ProfileData) -> Iterator[str]:
    total = max(data["execution_seconds"], sum(n["seconds"] for n in data["nodes"]), 1e-9)
    yield '<h2>Plan</h2>\n<div class="scroll"><table><thead><tr><th>node</th><th class="time">time</th>'
    yield '<th class="number">rows</th><th class="number wide">made</th><th class="wide">device</th></tr></thead>\n<tbody>\n'
    kernels = 0
    for node in data["nodes"]:
        kernels += node["kernel"] is not None
        number = f" {kernels}" if node["kernel"] is not None else ""
        steps = "".join(
            f'<div class="steps" style="padding-left: {step["depth"] + 2}rem">{escape(step["text"])}</div>'
            for step in node["steps"]
        )
        notes = "".join(f'<div class="note">{escape(note)}</div>' for note in node["notes"])
        reason = f'<div class="note">{escape(node["reason"])}</div>' if node["reason"] else ""
        yield (
            f'<tr><td class="node" style="padding-left: {node["depth"] * 1.2 + 0.6:.1f}rem">{escape(node["text"])}{number}{steps}{notes}</td>'
            f'<td class="time">{_time(node["seconds"])}{_bar(node["seconds"] / total)}</td><td class="number">{node["rows"]:,}</td>'
            f'<td class="number wide">{_size(node["bytes"])}</td><td class="wide">{node["device"]}{reason}</td></tr>\n'
        )
    yield "</tbody></table></div>\n"


def _kernels(data: ProfileData) -> Iterator[str]:
    kernels = [node["kernel"] for node in data["nodes"] if node["kernel"] is not None]
    if kernels:
        yield "<h2>Pipelines</h2>\n"
    for number, kernel in enumerate(kernels, 1):
        yield f'<div class="card"><h3>Pipeline {number}</h3>\n'
        if kernel["file"] is None:
            yield f'<p class="note">One operator at a time: {escape(kernel["not_fused"] or "")}</p></div>\n'
            continue
        yield _pairs(_moved(kernel))
        if kernel["share_of_copy"] is not None:
            share = kernel["share_of_copy"]
            yield f'<p class="note">{share * 100:.1f} % of what a copy reaches</p>{_bar(share, "fast")}\n'
        yield _source("kernel", kernel["file"])
        for index in kernel["indexes"]:
            about = f"index of {index['rows']:,} rows, {index['form']}, {_size(index['bytes'])}"
            yield _source(about, index["file"])
        yield "</div>\n"


def _moved(kernel: KernelData) -> dict[str, str]:
    pairs = {
        "rows": f"{kernel['rows']:,}",
        "moved": _size(kernel["bytes"]),
        "in": _time(kernel["seconds"]),
        "speed": _rate(kernel["bytes_a_second"]),
    }
    if kernel["bound_by"]:
        pairs["bound by"] = kernel["bound_by"]
    if kernel["load_seconds"]:
        pairs["columns loaded in"] = _time(kernel["load_seconds"])
    places = {"memory": "was in memory", "disk": "read from disk in", "compiler": "compiled in"}
    spent = "" if kernel["origin"] == "memory" else f" {_time(kernel['compile_seconds'])}"
    pairs["kernel"] = f"{places[kernel['origin']]}{spent}"
    if kernel["chunks"]:
        pairs["chunks"] = f"{kernel['chunks']:,}"
    return pairs


def _source(about: str, file: str) -> str:
    text = escape(source_of(file))
    return (
        f"<details><summary>{escape(about)}: {escape(file)}</summary><pre>{text}</pre></details>\n"
    )


def _workers(data: ProfileData) -> Iterator[str]:
    if not data["workers"]:
        return
    longest = max(worker["seconds"] for worker in data["workers"]) or 1e-9
    yield "<h2>Workers</h2>\n<table><tbody>\n"
    for worker in data["workers"]:
        met = sum(meeting["seconds"] for meeting in worker["meetings"])
        yield (
            f'<tr><td>worker {worker["worker"]}</td><td class="time">{_time(worker["seconds"])}{_bar(worker["seconds"] / longest)}</td>'
            f'<td class="number">{_size(worker["bytes_read"])} read</td><td class="number">{_time(met)} in meetings</td></tr>\n'
        )
    yield "</tbody></table>\n"


def _bar(share: float, kind: str = "") -> str:
    width = 100 * min(1.0, max(0.0, share))
    return f'<div class="track"><div class="fill {kind}" style="width: {width:.1f}%"></div></div>'


def _time(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1e3:,.2f} ms"


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:,.1f} {unit}" if unit != "B" else f"{nbytes:,.0f} B"
        nbytes /= 1000
    return f"{nbytes:,.1f} GB"


def _rate(bandwidth: float) -> str:
    return f"{_size(bandwidth)}/s"
