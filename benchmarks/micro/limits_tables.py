"""What `gpu_limits` prints of the runs of queries under limits: totals, and a line for each query."""

from __future__ import annotations

from typing import Any

LIFTS = ("lift chunk", "lift", "lift plain")


def table(everything: dict[str, list[dict[str, Any]]]) -> str:
    """A line for each process: seconds of all queries' first and best later runs, what these took from which tier, how much a second."""
    lines = [
        f"{'limits':32} {'queries':>7} {'first s':>8} {'hot s':>8} {'host MB':>9} {'store MB':>9} {'files MB':>9} {'GB/s':>6} {'link':>6}  right"
    ]
    for name, rows in everything.items():
        hot = [
            min(
                (r for r in rows if r["query"] == query and r["run"] > 1),
                key=lambda r: r["seconds"],
            )
            for query in dict.fromkeys(r["query"] for r in rows if r["run"] > 1)
        ]
        first = sum(r["seconds"] for r in rows if r["run"] == 1)
        seconds = sum(r["seconds"] for r in hot)
        sizes = [
            sum(r.get("lifted", {}).get(t, 0) for r in hot) for t in ("host", "store", "Parquet")
        ]
        lifting = sum(r["counts"].get(name, [0, 0.0])[1] for r in hot for name in LIFTS)
        rate = (sizes[0] + sizes[1]) / seconds / 1e9 if hot else 0.0
        link = (sizes[0] + sizes[1]) / lifting / 1e9 if lifting else 0.0
        shown = " ".join(f"{size / 1e6:9,.0f}" for size in sizes)
        right = sum(r["status"] == "right" for r in rows)
        lines.append(
            f"{name:32} {len(hot):7} {first:8.2f} {seconds:8.2f} {shown} {rate:6.1f} {link:6.1f}  {right} of {len(rows)}"
        )
    return "\n".join(lines)


def by_query(rows: list[dict[str, Any]]) -> str:
    """A line for each query: its first and best later run, what that lifted of what it needs, and how often it had no memory."""
    lines = [
        f"{'query':5} {'first s':>8} {'hot s':>7} {'lifted MB':>10} {'needed':>8} {'times':>5} {'GB/s':>5} chunks tries short"
    ]
    for query in dict.fromkeys(row["query"] for row in rows if row["run"] > 1):
        of_query = [row for row in rows if row["query"] == query]
        row = min(of_query[1:], key=lambda row: row["seconds"])
        lifted, needed = sum(row.get("lifted", {}).values()), row.get("needed", 0)
        short = sum(count for what, count in row["counts"]["errors"].items() if "emory" in what)
        lines.append(
            f"{query:5} {of_query[0]['seconds']:8.3f} {row['seconds']:7.3f} {lifted / 1e6:10,.0f} {needed / 1e6:8,.0f}"
            f" {lifted / max(needed, 1):5.2f} {lifted / row['seconds'] / 1e9:5.1f} {row.get('chunks', 0):6} {row.get('tries', 0):5} {short:5}"
        )
    return "\n".join(lines)


def verdict(rows: list[dict[str, Any]]) -> str:
    """The slowest first and later runs, and how far the runs of a query are apart."""
    if not rows:
        return "nothing ran"
    wrong = [f"{r['query']} run {r['run']}" for r in rows if r["status"] != "right"]
    first = max((r["seconds"], r["query"]) for r in rows if r["run"] == 1)
    later = [r for r in rows if r["run"] > 1]
    text = f"{len(rows) - len(wrong)} of {len(rows)} right; slowest first run {first[0]:.2f} s ({first[1]})"
    if later:
        slow = max((r["seconds"], r["query"]) for r in later)
        times: dict[str, list[float]] = {}
        for row in later:
            times.setdefault(row["query"], []).append(row["seconds"])
        apart = max((max(t) / max(min(t), 1e-3), q) for q, t in times.items())
        text += f"; slowest later run {slow[0]:.2f} s ({slow[1]}); farthest apart {apart[0]:.1f} times ({apart[1]})"
    return text + (f"; NOT RIGHT: {', '.join(wrong)}" if wrong else "")
