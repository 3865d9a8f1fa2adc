"""Ten kinds of work stopped at random moments: the next query is right, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.micro import cancels
from fuseline.codegen.compile import compile_pool

SHORT = ["planning", "cold read", "compiling", "operators", "sort", "spill", "fetch"]


def stopped(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> Any:
    monkeypatch.setenv("FUSELINE_SPILL_DIR", str(folder))
    found = cancels.main([*arguments])
    assert [delays.wrong for delays in found] == [0] * len(found)
    assert list(folder.glob("fuseline*/*")) == []
    assert cancels.left()["children"] <= compile_pool.pool()._most
    return found


def test_some_stops(monkeypatch, tmp_path, tpch_dir):
    given = ["--sf", "0.01", "--tables", str(tpch_dir), "--cancels", "21", "--timeouts", "7"]
    found = stopped(monkeypatch, tmp_path, *given, "--kinds", *SHORT)
    assert sum(len(delays.stopped) + delays.finished for delays in found) == 28
    assert sum(len(delays.stopped) for delays in found) > 0


@pytest.mark.nightly
def test_many_stops_end_soon(monkeypatch, tmp_path):
    found = stopped(monkeypatch, tmp_path, "--sf", "1")
    delays = sorted(delay for kind in found for delay in kind.stopped)
    assert delays[int(0.95 * len(delays))] <= 200
