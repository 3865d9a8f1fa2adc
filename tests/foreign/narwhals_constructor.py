"""A pytest plugin for Narwhals' own tests: their `constructor` makes Frames (`--use-external-constructor`)."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline


def fuseline_lazy_constructor(columns: dict[str, list[object]]) -> fuseline.Frame:
    """Return a Frame of lists of values, as Narwhals' tests write them."""
    connection = fuseline.default_connection()
    connection.execute("SET TimeZone = 'UTC'")
    return connection.from_arrow(pa.table(columns))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test that takes any kind of frame ours, and none to those that take eager ones."""
    eager = {"constructor_eager", "constructor_pandas_like"} & {*metafunc.fixturenames}
    for name in eager:
        metafunc.parametrize(name, [], ids=[])
    if not eager and "constructor" in metafunc.fixturenames:
        metafunc.parametrize("constructor", [fuseline_lazy_constructor], ids=["fuseline"])
