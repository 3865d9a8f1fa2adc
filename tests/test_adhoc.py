"""The suite of shapes outside of TPC-H: frozen, complete, and right."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import adhoc, tpch
from tests.compare import assert_same_as_duckdb, connected


def test_the_suite_is_what_it_was_when_it_was_complete() -> None:
    assert adhoc.digest() == adhoc.FROZEN


def test_each_shape_has_at_least_four_queries() -> None:
    shapes = Counter(re.sub(r"\d+$", "", name) for name in adhoc.queries(1))
    assert len(shapes) == 20
    assert min(shapes.values()) >= 4
    assert len(adhoc.weak()) == 11


def test_no_query_is_one_of_tpch() -> None:
    texts = {" ".join(text.split()).lower() for text in tpch.queries(1).values()}
    assert texts.isdisjoint(" ".join(text.split()).lower() for text in adhoc.queries(1).values())


@pytest.fixture(scope="module")
def connection(backend: str, tpch_tables: dict[str, Path]) -> Any:
    with connected(tpch_tables, backend) as made:
        yield made


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", adhoc.queries(0.01))
def test_each_answer_is_duckdbs(name: str, connection: Any, tpch_tables: dict[str, Path]) -> None:
    assert_same_as_duckdb(adhoc.queries(0.01)[name], tpch_tables, connection=connection)


@pytest.mark.nightly
@pytest.mark.parametrize("name", adhoc.queries(0.01))
def test_each_answer_of_kernels_is_duckdbs(name: str, tpch_tables: dict[str, Path]) -> None:
    assert_same_as_duckdb(
        adhoc.queries(0.01)[name], tpch_tables, backend="cpu", fuse=("always", "never")
    )
