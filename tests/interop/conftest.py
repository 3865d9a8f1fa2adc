"""Marks of Ibis's own tests, whose queries are run here."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for mark in ("tpch", "tpcds", "notyet", "notimpl", "never", "broken", "xfail_version"):
        config.addinivalue_line("markers", f"{mark}: of a query in Ibis's tests")
