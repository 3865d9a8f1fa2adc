"""A connection to the small tables, validating each plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fuseline
from tests.planner.subquery_tables import TABLES


@pytest.fixture(scope="module")
def connection(backend: str) -> Iterator[Any]:
    with fuseline.connect(device=backend, check=True) as opened:
        for name, table in TABLES.items():
            opened.register(name, table)
        yield opened
