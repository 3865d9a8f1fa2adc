"""What one connection has encoded the next one maps, on whatever way it came into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import fuseline

if TYPE_CHECKING:
    from pathlib import Path

from .runs import AGGREGATES, ROWS, answers, run, tiers


@pytest.mark.parametrize("fused", ["never", "always"])
def test_a_restart_reads_no_parquet(
    source: Path, store: Path, fused: str, without_parquet: Any
) -> None:
    expected, lifted, _ = run(source, store, fuse=fused)
    assert expected == answers(source, None, fuse=fused)
    assert tiers(lifted) == {"Parquet"}
    without_parquet()
    found, lifted, reasons = run(source, store, fuse=fused)
    assert (found, tiers(lifted), reasons) == (expected, {"store"}, {})
    assert {column for column, _ in lifted} == set("nkumtfbl")


@pytest.mark.parametrize(("before", "after"), [("never", "always"), ("always", "never")])
def test_kernels_and_operators_share_the_files(
    source: Path, store: Path, before: str, after: str, without_parquet: Any
) -> None:
    expected, _, _ = run(source, store, (AGGREGATES,), fuse=before)
    without_parquet()
    assert run(source, store, (AGGREGATES,), fuse=after)[0] == expected


def test_without_a_store_nothing_is_said_or_written(source: Path, store: Path) -> None:
    with fuseline.connect("cpu") as connection:
        connection.read_parquet(str(source), "t")
        frame = connection.sql(AGGREGATES)
        frame.fetchall()
        assert frame.profile.lifted is None
        assert frame.profile.to_dict()["lifted"] is None
        assert "columns" not in frame.explain("analyze")
    assert not store.exists()


def test_a_run_says_where_its_columns_came_from(source: Path, store: Path) -> None:
    query = "select sum(n) from t"
    for tier in ("from Parquet files", "from the column store"):
        with fuseline.connect("cpu", column_store=store, fuse="always") as connection:
            connection.read_parquet(str(source), "t")
            assert f"columns {tier}, " in connection.sql(query).explain("analyze")
            assert "columns: all in memory" in connection.sql(query).explain("analyze")
            rows = connection.sql("select tier, bytes from fuseline_columns()").fetchall()
            assert rows == [("store" if tier.endswith("store") else "memory", 2 * ROWS)]


def test_the_profile_has_bytes_and_tiers(source: Path, store: Path) -> None:
    answers(source, store)
    with fuseline.connect("cpu", column_store=store, fuse="always") as connection:
        connection.read_parquet(str(source), "t")
        frame = connection.sql("select sum(n) from t")
        frame.fetchall()
        (lifted,) = frame.profile.to_dict()["lifted"] or ()
        assert lifted["bytes"] >= 2 * ROWS
        assert (lifted["table"], lifted["column"], lifted["tier"]) == ("t", "n", "store")


def test_mapped_columns_take_nothing_of_the_cache(source: Path, store: Path) -> None:
    answers(source, store)
    with fuseline.connect(
        "cpu", column_store=store, column_cache_limit=1000, fuse="always"
    ) as connection:
        connection.read_parquet(str(source), "t")
        connection.sql(AGGREGATES).fetchall()
        assert connection.cache.used("cpu") == 0
        assert {entry.tier for entry in connection.cache.stats()} == {"store"}


def test_what_leaves_memory_is_mapped(source: Path, store: Path, without_parquet: Any) -> None:
    with fuseline.connect("cpu", column_store=store, fuse="always") as connection:
        connection.read_parquet(str(source), "t")
        expected = connection.sql(AGGREGATES).fetchall()
        connection.cache.store.close()  # type: ignore[union-attr]
        connection.cache.release("cpu", 1 << 40)
        without_parquet()
        assert connection.sql(AGGREGATES).fetchall() == expected
        assert connection.cache.used("cpu") == 0


def test_some_row_groups_are_kept_apart(source: Path, store: Path, without_parquet: Any) -> None:
    few = ("select sum(n) from t where n < 100", "select sum(n) from t where n > 29900")
    expected, _, _ = run(source, store, few)
    without_parquet()
    assert run(source, store, few)[0] == expected


def test_all_rows_serve_for_some(source: Path, store: Path, without_parquet: Any) -> None:
    run(source, store, ("select sum(n) from t",))
    without_parquet()
    for fused in ("never", "always"):
        few = ("select sum(n) from t where n < 100",)
        assert run(source, store, few, fuse=fused)[0] == [[(4950,)]]
