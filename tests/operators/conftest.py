"""The connection to DuckDB that operator tests share ends with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.operators.relations import close_duckdb


@pytest.fixture(scope="session", autouse=True)
def duckdb_connection() -> Iterator[None]:
    yield
    close_duckdb()
