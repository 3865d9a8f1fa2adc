"""D3: on a GPU with less memory than a query needs, later runs of a text took a hundred times as long, or failed while little was held."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.micro import gpu_limits


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("limits", ["400MB/200MB", "200MB/100MB"])
def test_tpch_three_times_over(tmp_path: Path, limits: str) -> None:
    """All answers are right, and no later run does much more than the other: SF1 with the limits of the report's SF10."""
    found = tmp_path / "found.json"
    gpu_limits.main(["--scale", "1", "--limits", limits, "--passes", "2", "--json", str(found)])
    queries = json.loads(found.read_text())["limits"][limits]
    assert len(queries) == 22
    assert [name for name, query in queries.items() if not query["right"]] == []
    later = {name: query["seconds"][1:] for name, query in queries.items()}
    assert [name for name, (a, b) in later.items() if max(a, b) > 3 * min(a, b) + 1] == []
