"""The suite of drawn queries: a name is a query, and each answer is DuckDB's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import random, run
from tests.compare import assert_same_as_duckdb, connected

SCALE = 0.01
DAILY = 30  # of the fixed ones


@pytest.fixture(scope="module")
def connection(backend: str, tpch_tables: dict[str, Path]) -> Any:
    with connected(tpch_tables, backend) as made:
        yield made


def test_a_name_is_one_query_and_each_run_has_new_ones() -> None:
    first, second = random.queries(SCALE), random.queries(SCALE)
    assert len(first) == len(second) == random.FIXED + random.NEW
    assert len(set(first) & set(second)) == random.FIXED
    drawn = random.Drawn()
    assert all(drawn[name] == text for name, text in (first | second).items())


def test_texts_differ() -> None:
    assert len({random.text(seed) for seed in range(1000)}) > 990


def test_any_query_is_asked_for_by_its_name() -> None:
    assert run._chosen(random.queries(SCALE), "s3,s123456") == {
        "s3": random.text(3),
        "s123456": random.text(123456),
    }
    with pytest.raises(SystemExit, match="No such query: q01"):
        run._chosen(random.queries(SCALE), "s3,q01")


@pytest.mark.parametrize("seed", range(DAILY))
def test_each_answer_is_duckdbs(seed: int, connection: Any, tpch_tables: dict[str, Path]) -> None:
    assert_same_as_duckdb(random.text(seed), tpch_tables, connection=connection)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_each_answer_of_kernels_is_duckdbs(part: int, tpch_tables: dict[str, Path]) -> None:
    """The fixed ones and those that this run is the first to meet."""
    for name, text in list(random.queries(SCALE).items())[part::10]:
        print(name)
        assert_same_as_duckdb(text, tpch_tables, backend="cpu", fuse=("always", "never"))
