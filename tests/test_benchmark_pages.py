"""The pages with figures agree with the stored results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import page


@pytest.mark.parametrize("name", page.BLOCKS)
def test_a_page_says_what_the_results_say(name: str) -> None:
    path = page.ROOT / name
    assert path.read_text() == page.rendered(path, page.stored()), "python -m benchmarks.page"


def test_another_figure_changes_the_pages() -> None:
    results = json.loads(json.dumps(page.stored()))
    suite = next(result for result in results.values() if "suite" in result)
    for row in suite["queries"].values():
        row["engines"]["fuseline"]["hot"] *= 2
    for name in page.BLOCKS:
        path = page.ROOT / name
        assert path.read_text() != page.rendered(path, results)


def test_each_chart_and_result_that_a_page_links_is_there() -> None:
    for name in page.BLOCKS:
        path = page.ROOT / name
        text = page.rendered(path, page.stored())
        links = [part.split(")")[0] for part in text.split("](")[1:]]
        local = [link for link in links if "://" not in link and not link.startswith("#")]
        assert [link for link in local if not (path.parent / link).exists()] == []


def result(**engines: float | None) -> dict[str, Any]:
    """One query, q01, with the hot seconds of each engine, or None for an error."""
    found = {
        name: {"status": "ok" if hot else "error", "cold": hot, "hot": hot, "floor": None}
        for name, hot in engines.items()
    }
    box = {"cpu": "x", "cores": 2, "gpus": []}
    made = {"suite": "tpch", "scale": 100.0, "repeat": 1, "when": "2026-01-01", "machine": box}
    engines_found = {name: {} for name in engines}
    queries = {"q01": {"rows": 1, "engines": found}}
    return made | {"versions": {}, "engines": engines_found, "queries": queries}


def test_ours_stand_among_the_published_by_time() -> None:
    lines = page.peers({"x": result(fuseline=0.5, duckdb=20.0)}).splitlines()
    assert "**fuseline** | 0.5 | 2 CPU cores" in lines[2]
    assert any("| duckdb | 20 |" in line for line in lines[3:])


def test_who_did_not_answer_all_has_no_total_among_them() -> None:
    assert "fuseline" not in page.peers({"x": result(fuseline=None, duckdb=20.0)})


def test_runs_under_limits_show_the_first_and_the_slowest_later_one() -> None:
    found = {"q01": {"seconds": [3.0, 1.0, 2.0], "right": True}, "q02": {"seconds": [1.0], "right": False}}  # fmt: skip
    limits = {"kind": "limits", "limits": {"4GB/2GB": found, "2GB/1GB": {"q01": found["q01"]}}}
    made = result() | limits
    lines = page.all_results({"x": made}).splitlines()
    assert lines[0] == "### TPC-H SF100, with little memory, 2 CPU cores"
    assert "| q01 | 3.00 | 2.00 | 3.00 | 2.00 |" in lines
    assert "| q02 | not right |  |  |  |" in lines


def test_the_page_of_clusters_says_what_exchanges_measured() -> None:
    text = (page.ROOT / "docs/cluster.md").read_text()
    found = json.loads((page.RESULTS / "exchanges/4x-h200.json").read_text())
    assert f"of {found['peer_copy'] / 1e9:.0f} GB/s" in text
    largest = {(each["kind"], each["linked"]): each for each in found["exchanges"]}
    for kind in ("gather", "broadcast", "hash", "rows"):
        measured = largest[kind, True]
        assert measured["bytes"] == 10_000_000_000
        assert f"| {measured['rate'] / 1e9:.0f} | {measured['share']:.0%} |" in text


def test_generated_data_is_described_beside_a_result() -> None:
    made = result(fuseline=0.5, duckdb=20.0) | {"suite": "clickbench", "scale": 10.0}
    lines = page.all_results({"x": made | {"data": {"rows": 10_000_000, "users": 1_800_000}}}).splitlines()  # fmt: skip
    assert lines[0] == "### ClickBench-shaped 10 M rows, 2 CPU cores"
    assert "The data: 10,000,000 rows, 1,800,000 users." in lines[2]
    assert "The data" not in page.all_results({"x": made})
