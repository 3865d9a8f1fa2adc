"""The tests of joins, aggregates, sorts, set operations and windows on one machine, run again on a cluster whose workers share each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import opens_elsewhere

SUITES = [
    *(f"tests/sql/test_{name}.py" for name in ("joins", "group_by", "set_operations", "order_limit", "subqueries", "select", "ctes")),
    "tests/windows/test_windows.py", "tests/planner/test_aggregate_unions_full_joins.py", "tests/planner/test_push_aggregates.py",
    "tests/planner/test_fuse_answers.py", "tests/planner/test_decorrelate_answers.py",
]  # fmt: skip
EVERY = 24  # of the cases of all suites, one is in CI's sample
GROUPS = 4  # row groups of a table, so that the three workers' shares do not line up with them


class Elsewhere:
    """A plugin that has each answer of the tests come from the cluster; `failed` are those that were wrong, `passed` the others."""

    def __init__(self, client: Any, folder: Path, every: int, first: int) -> None:
        self.failed: dict[str, str] = {}
        self.passed = self.asked = 0
        self._client, self._folder, self._every, self._first = client, folder, every, first
        self._connections: dict[tuple[object, ...], Any] = {}
        self._tables: dict[int, tuple[object, Path | None]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        there = [item for item in items if not _is_left_out(item)]
        items[:] = there[self._first :: self._every]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = report.longreprtext
        self.passed += report.when == "call" and report.passed

    @contextmanager
    def open(self, tables: Mapping[str, Any], fuse: str) -> Iterator[Any]:
        """A connection over files that have the tables; it stays open for those that ask for the same."""
        self.asked += 1
        key = (fuse, *((name, id(table)) for name, table in tables.items()))
        if key not in self._connections:
            made = fuseline.connect(
                "cpu", cluster=self._client, replicate_below=0, one_worker_below=0, fuse=fuse
            )
            self._connections[key] = made
            for name, table in tables.items():
                path = table if isinstance(table, Path) else self._file_of(table)
                if path is None:
                    made.register(name, table)
                else:
                    made.read_parquet(path, name)
        yield self._connections[key]

    def _file_of(self, table: pa.Table) -> Path | None:
        """Where a table lies as Parquet, None where that has not all of its types."""
        if id(table) not in self._tables:
            path = self._folder / f"{len(self._tables)}.parquet"
            try:
                pq.write_table(table, path, row_group_size=max(1, len(table) // GROUPS))
                same = pq.read_schema(path).types == table.schema.types
            except pa.ArrowException:
                same = False
            self._tables[id(table)] = table, path if same and table.num_columns else None
        return self._tables[id(table)][1]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def _is_left_out(item: pytest.Item) -> bool:
    return any(item.iter_markers("gpu")) or any(item.iter_markers("nightly"))


def check(client: Any, folder: Path, every: int, first: int) -> None:
    """Run cases of the suites on a cluster, in a pytest of their own, which has no timer or output of its own."""
    plugin = Elsewhere(client, folder, every, first)
    without = [f"-pno:{name}" for name in ("terminal", "timeout", "xdist", "faulthandler", "cacheprovider", "randomly")]  # fmt: skip
    token = opens_elsewhere.set(plugin.open)
    try:
        options = ["-o", "addopts=", "--import-mode=importlib", "--capture=no"]
        code = pytest.main([*without, *options, *SUITES], plugins=[plugin])
    finally:
        opens_elsewhere.reset(token)
        plugin.close()
    print(f"{plugin.passed} passed, {plugin.asked} answers of the cluster")
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    assert not plugin.failed, "\n\n".join(f"{name}\n{text}" for name, text in plugin.failed.items())
    assert plugin.asked >= plugin.passed / 2 > 0


def test_a_sample(client: Any, tmp_path: Path) -> None:
    check(client, tmp_path, EVERY, 0)


@pytest.mark.nightly
def test_all(client: Any, tmp_path: Path) -> None:
    check(client, tmp_path, 1, 0)
