"""The tool that shows where the host's time of a hot query goes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.micro import host_time


def test_it_counts_calls_and_compares(
    tpch_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    report = tmp_path / "host.json"
    asked = ["host_time", "--data", str(tpch_dir), "--queries", "q06", "--runs", "3"]
    for more in (["--json", str(report)], ["--against", str(report)]):
        monkeypatch.setattr(sys, "argv", [*asked, *more])
        host_time.main()
    found = json.loads(report.read_text())["q06"]
    assert found["functions"]["runtime/executor.py execute"][0] == 1
    assert found["calls"] > 100
    assert found["seconds"] > 0
    before, after = (text for text in capsys.readouterr().out.split("q06: ") if text)
    assert "before" not in before
    assert "before" in after
