"""The benchmark runner: what it writes, and that it never times a wrong answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from benchmarks import (
    charts,
    compare,
    engines,
    floors,
    report,
    run,
    shuffle,
    streams,
    summary,
    tpch,
)
from benchmarks.isolated import Isolated
from tests.conftest import SCALE


class Liar(engines.DuckDB):
    """Right in the first run, wrong afterwards, except for Q6, which fails."""

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


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of kernels and bandwidths, for those that measure the same queries."""
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.nightly
def test_each_kernel_is_a_point_below_the_roof(
    tmp_path: Path,
    tpch_dir: Path,
    kernels: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(kernels))
    fused = lambda: engines.Fuseline(device="cpu", fuse="always")  # noqa: E731
    monkeypatch.setitem(engines.ENGINES, "fused", fused)
    chosen = ["--engines", "fused,duckdb", "--queries", "q01,q06"]
    status, result = measured(tmp_path, tpch_dir, *chosen, "--roofline", str(tmp_path / "r.png"))
    assert status == 0
    first, second = charts.kernels(result, "fused")
    assert (first[0], second[0]) == ("q01", "q06")
    assert min(*first[1:], *second[1:]) > 0
    (roof,) = json.loads((kernels / "bandwidth.json").read_text()).values()
    assert result["engines"]["fused"]["bandwidth"] == {"cpu": roof}
    assert f"fused: a copy on the cpu moves {roof / 1e9:,.1f} GB/s" in capsys.readouterr().err
    assert charts.kernels(result, "duckdb") == []
    assert (tmp_path / "r.png").stat().st_size > 10_000
    report.main([str(tmp_path / "out.json"), "--roofline", str(tmp_path / "again.png")])
    assert (tmp_path / "again.png").exists()


def test_all_in_one_connection_touch_each_column_once(
    tmp_path: Path, tpch_dir: Path, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(kernels))
    fused = lambda: engines.Fuseline(device="cpu", fuse="always")  # noqa: E731
    monkeypatch.setitem(engines.ENGINES, "fused", fused)
    chosen = ["--engines", "fused,duckdb", "--queries", "q01,q06", "--cold"]
    status, result = measured(tmp_path, tpch_dir, *chosen)
    assert (status, result["kind"]) == (0, "sequence")
    first, second = (result["queries"][q]["engines"]["fused"] for q in ("q01", "q06"))
    assert first["loaded"] == sum(first["columns"].values()) > 0
    assert second["loaded"] == 0  # Q6 reads columns that Q1 has read
    assert first["floor"]["bytes"] == first["loaded"]
    assert (
        first["floor"]["seconds"]
        == first["loaded"] / result["engines"]["fused"]["bandwidth"]["cpu"]
    )


def test_no_measurement_begins_after_the_limit(tmp_path: Path, tpch_dir: Path) -> None:
    chosen = ["--engines", "duckdb", "--queries", "q06", "--limit", "0"]
    status, result = measured(tmp_path, tpch_dir, *chosen)
    found = result["queries"]["q06"]["engines"]["duckdb"]
    assert (status, found["hot"]) == (1, None)
    assert found["message"] == "TimeoutError: the run's time was over"


def test_floor_says_where_the_time_went() -> None:
    found = {
        "hot": 0.010, "columns": {"t.a": 4_000, "t.b": 6_000}, "placement": [{"device": "gpu"}],
        "operator_seconds": 0.002,
        "pipelines": [{"bound": "memory", "seconds": 0.005}, {"bound": None, "seconds": 0.0}],
    }  # fmt: skip
    floor = floors.floor(found, {"gpu": 1e9})
    assert floor is not None
    assert (floor["bytes"], floor["seconds"], floor["bound"]) == (10_000, 1e-5, "memory")
    assert floor["spent"] == pytest.approx({"memory": 0.005, "operators": 0.002, "host": 0.003})
    assert floors.floor(found | {"columns": {"t.a": None}}, {"gpu": 1e9}) is None
    assert floors.floor(found, {}) is None


def test_summary_counts_only_what_both_answered() -> None:
    def row(fused: float | None, unfused: float) -> dict[str, Any]:
        times = {"fuseline": fused, "fuseline-unfused": unfused, "duckdb": 1.0}
        status = {name: "ok" if hot else "error" for name, hot in times.items()}
        return {
            "engines": {n: {"status": status[n], "cold": t, "hot": t} for n, t in times.items()}
        }

    names = ("fuseline", "fuseline-unfused", "duckdb")
    queries = {"q01": row(0.1, 0.4), "q02": row(0.4, 0.2), "q03": row(None, 1.0)}
    whole = summary.summary({"engines": {name: {} for name in names}, "queries": queries})
    ours = whole["engines"]["fuseline"]
    assert (ours["answered"], ours["hot"], ours["total_faster"]) == (2, 0.5, 4.0)
    assert ours["hot_faster"] == pytest.approx(5.0)
    assert whole["fused"] == {"median": 2.25, "least": ["q02", 0.5], "slower": ["q02"]}


def test_streams_count_kernels_compiled_for_new_parameters(
    tmp_path: Path, tpch_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    fused = lambda: engines.Fuseline(device="cpu", fuse="always")  # noqa: E731
    monkeypatch.setitem(engines.ENGINES, "fused", fused)
    chosen = ["--engines", "fused", "--queries", "q01,q06", "--streams", "2"]
    status, result = measured(tmp_path, tpch_dir, *chosen)
    rows = streams.summary(result["streams"], "fused")
    assert [row["equal"] for row in rows] == [2, 2, 2]
    assert [row["compiled"] > 0 for row in rows] == [True, False, False]
    assert status == 0


def test_a_kernel_compiled_for_new_parameters_fails_the_run() -> None:
    ok = {"status": "ok", "message": ""}
    rows = [
        {"stream": stream, "engines": {"fuseline": {"q01": ok | {"compiled": 1}}}}
        for stream in (0, 1)
    ]
    assert streams.problems(rows, ["fuseline"]) == ["stream 1 q01 fuseline: 1 kernels compiled"]


def test_streams_are_for_tpch() -> None:
    with pytest.raises(SystemExit, match="other suites have no rules"):
        run.main(["ssb", "--streams", "1"])


class Fragile(engines.DuckDB):
    """Ends its process at one query, and refuses another."""

    def __init__(self) -> None:
        super().__init__(own_tables=False)

    def run(self, query: str) -> pa.Table:
        if query == "die":
            os._exit(1)
        if query == "refuse":
            raise engines.NotSupported("not that")
        return super().run(query)


def test_an_engine_that_dies_begins_again(tpch_tables: dict[str, Path]) -> None:
    engine = Isolated(Fragile, exact_types=True, limited=False)
    engine.load({"nation": str(tpch_tables["nation"])})
    with pytest.raises(MemoryError, match="its process ended"):
        engine.run("die")
    with pytest.raises(engines.NotSupported, match="not that"):
        engine.run("refuse")
    answer, seconds = engine.timed_run("select count(*) from nation")
    assert (answer.column(0).to_pylist(), seconds > 0) == ([25], True)
    engine.close()


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


def test_all_engines_are_those_that_are_here() -> None:
    found = engines.chosen("all")
    assert found[:4] == ["fuseline", "fuseline-unfused", "duckdb", "duckdb-parquet"]
    assert engines.chosen("duckdb,polars") == ["duckdb", "polars"]


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(SystemExit, match="There is no engine nobody; there are fuseline"):
        engines.make("nobody")


def test_shuffled_tables_have_the_same_rows_in_another_order(
    tmp_path: Path, tpch_tables: dict[str, Path]
) -> None:
    made = shuffle.shuffled({"orders": str(tpch_tables["orders"])}, tmp_path / "shuffled")
    rows, others = (
        duckdb.sql(f"select o_orderkey from read_parquet('{path}')").fetchall()
        for path in (tpch_tables["orders"], made["orders"])
    )
    assert rows != others
    assert sorted(rows) == sorted(others)
    assert rows == sorted(rows)


def test_a_column_behind_a_filter_counts_the_sectors_that_are_hit(
    tmp_path: Path, tpch_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    fused = lambda: engines.Fuseline(device="cpu", fuse="always")  # noqa: E731
    monkeypatch.setitem(engines.ENGINES, "fused", fused)
    status, result = measured(tmp_path, tpch_dir, "--engines", "fused", "--queries", "q14")
    found = result["queries"]["q14"]["engines"]["fused"]
    needed, whole = found["needed"], found["columns"]
    assert status == 0
    assert needed["lineitem.l_shipdate"] == whole["lineitem.l_shipdate"]
    assert 0 < needed["lineitem.l_discount"] < whole["lineitem.l_discount"]
    assert found["floor"]["bytes"] == sum(needed.values())
    assert (found["compiled"] > 0, found["cold_compiled"]) == (True, 0)
