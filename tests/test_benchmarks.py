"""The benchmark runner: what it writes, and that it never times a wrong answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import compare, engines, report, run, tpch
from tests.conftest import SCALE


class Liar(engines.DuckDB):
    """Right in the cold run, wrong afterwards, except for Q6, which fails."""

    def run(self, query: str) -> pa.Table:
        answer = super().run(query)
        if "q6," in query.lower():
            raise RuntimeError("no Q6\nwith details")
        self._runs = getattr(self, "_runs", 0) + 1
        return answer if self._runs == 1 else answer.slice(1)


def measured(folder: Path, tpch_dir: Path, *options: str) -> tuple[int, dict[str, Any]]:
    path = folder / "out.json"
    where = ["--sf", str(SCALE), "--data", str(tpch_dir), "--repeat", "2", "--json", str(path)]
    status = run.main(["tpch", *where, *options])
    return status, json.loads(path.read_text())


def test_result_has_times_machine_and_versions(tmp_path: Path, tpch_dir: Path) -> None:
    chosen = ["--engines", "duckdb,duckdb-parquet", "--queries", "q01,q06"]
    status, result = measured(tmp_path, tpch_dir, *chosen, "--chart", str(tmp_path / "out.png"))
    assert status == 0
    found = result["queries"]["q01"]["engines"]["duckdb"]
    assert found["status"] == "ok"
    assert len(found["runs"]) == 2
    assert min(found["runs"]) <= found["hot"] <= max(found["runs"])
    assert {"cpu", "cores", "gpus"} <= result["machine"].keys()
    assert "duckdb" in result["versions"]
    assert (tmp_path / "out.png").stat().st_size > 10_000


def test_each_kernel_is_a_point_below_the_roof(
    tmp_path: Path, tpch_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    fused = lambda: engines.Fuseline(device="cpu", fuse="always")  # noqa: E731
    monkeypatch.setitem(engines.ENGINES, "fused", fused)
    chosen = ["--engines", "fused,duckdb", "--queries", "q01,q06"]
    status, result = measured(tmp_path, tpch_dir, *chosen, "--roofline", str(tmp_path / "r.png"))
    assert status == 0
    first, second = report.kernels(result, "fused")
    assert (first[0], second[0]) == ("q01", "q06")
    assert min(*first[1:], *second[1:]) > 0
    assert result["engines"]["fused"]["bandwidth"].keys() == {"cpu"}
    assert report.kernels(result, "duckdb") == []
    assert (tmp_path / "r.png").stat().st_size > 10_000
    report.main([str(tmp_path / "out.json"), "--roofline", str(tmp_path / "again.png")])
    assert (tmp_path / "again.png").exists()


def test_what_fails_or_differs_is_not_timed(
    tmp_path: Path, tpch_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engines.ENGINES, "liar", lambda: Liar(own_tables=False))
    status, result = measured(tmp_path, tpch_dir, "--engines", "liar", "--queries", "q01,q06")
    assert status == 1
    first, second = (result["queries"][q]["engines"]["liar"] for q in ("q01", "q06"))
    assert (first["status"], first["hot"]) == ("differs", None)
    assert (second["status"], second["message"]) == ("error", "RuntimeError: no Q6")


def test_compare_finds_a_slower_query(tmp_path: Path, tpch_dir: Path) -> None:
    _, result = measured(tmp_path, tpch_dir, "--engines", "duckdb", "--queries", "q06")
    result["queries"]["q06"]["engines"]["duckdb"]["hot"] *= 2
    (tmp_path / "slow.json").write_text(json.dumps(result))
    paths = [str(tmp_path / "out.json"), str(tmp_path / "slow.json")]
    assert compare.main([*paths, "--limit", "1.5"]) == 1
    assert compare.main([*reversed(paths), "--limit", "1.5"]) == 0


def test_q11_asks_for_a_fraction_that_shrinks_with_the_scale() -> None:
    assert "* 0.0001\n" in tpch.queries(1)["q11"]
    assert "* 0.01\n" in tpch.queries(0.01)["q11"]
    assert "* 0.000001\n" in tpch.queries(100)["q11"]


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(SystemExit, match="There is no engine nobody; there are fuseline"):
        engines.make("nobody")
