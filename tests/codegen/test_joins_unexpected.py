"""Joins whose keys, rows or tables turn out to be other than expected: right answers, or a clear error."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError, MemoryLimitError
from tests.codegen.fused import BOTH, assert_fused_joins
from tests.codegen.test_joins import KINDS, keyed
from tests.compare import connected
from tests.limits import SetLimits


def test_two_rows_of_a_scalar_subquery_raise() -> None:
    tables = {"t": keyed("v", [1, 2, 3]), "u": keyed("w", [2, 2, 3])}
    query = "select sum((select w from u where u.k = t.k)) from t"
    for mode in BOTH:
        raising = pytest.raises(ExecutionError, match="More than one row")
        with connected(tables, fuse=mode) as connection, raising:
            connection.sql(query).to_arrow()


def test_a_scalar_subquery_of_one_row_a_key() -> None:
    tables = {"t": keyed("v", [1, 2, 3, 2, None]), "u": keyed("w", [2, 5, 3])}
    assert_fused_joins(
        "select sum((select w from u where u.k = t.k)) as x, count(*) from t", tables
    )


def test_keys_that_repeat_although_they_might_be_unique() -> None:
    """The kernels for unique keys find out; those for others give the answer, at once when the query runs again."""
    tables = {"t": keyed("v", [1, 5, 7, 7, None]), "u": keyed("w", [1, 100, 5, 5])}
    with connected(tables, fuse="always") as connection:
        frame = connection.sql(KINDS["inner"])
        first, second = frame.to_arrow(), frame.to_arrow()
        assert first.equals(second)
    assert_fused_joins(KINDS["inner"], tables)


def test_a_table_that_changes_between_runs() -> None:
    with connected({"t": keyed("v", [1, 2, 3, 3])}, fuse="always") as connection:
        for keys in ([1, 2, 3], [3, 3, 3], [], [2**62, 1], [1, 2, 3]):
            connection.register("u", keyed("w", keys))
            found = connection.execute("select count(*) from t join u on t.k = u.k").fetchone()
            expected = sum(keys.count(k) for k in (1, 2, 3, 3))
            assert found == (expected,)


def test_more_rows_than_32_bits_count() -> None:
    rows = 50_000
    tables = {"t": pa.table({"k": np.zeros(rows, np.int64)}), "u": pa.table({"k": [0] * rows})}
    with connected(tables, fuse="always") as connection:
        frame = connection.sql("select count(*), min(u.k) from t join u on t.k = u.k")
        assert frame.fetchall() == [(rows * rows, 0)]
        assert [n.receipt.fused for n in frame.profile.pipelines if n.receipt] == [True]


def test_sums_of_more_rows_than_are_exact_are_left_to_the_operators(
    limits: SetLimits,
) -> None:
    limits(cpu__pipeline__MANY=20)
    tables = {"t": keyed("v", [1] * 10), "u": keyed("w", [1] * 10)}
    assert_fused_joins("select sum(w) from t join u on t.k = u.k", tables, but="2**31 rows")


TABLE = {"k": np.zeros(300, np.int64), "v": np.arange(300)}


def test_more_pairs_than_memory_holds_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.runtime.memory.host_memory", lambda: 1 << 20)
    with connected({"t": pa.table(TABLE)}, fuse="never") as connection:
        frame = connection.sql("select sum(a.v - b.v), count(*) from t a join t b on a.k = b.k")
        assert frame.fetchall() == [(0, 90_000)]
        assert any("in pieces" in (node.remark or "") for node in frame.profile.nodes)


def test_more_pairs_than_the_host_holds_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuseline.runtime.memory.host_memory", lambda: 1 << 20)
    raising = pytest.raises(MemoryLimitError, match="ran out of host memory")
    with connected({"t": pa.table(TABLE)}, fuse="never") as connection, raising:
        connection.sql("select a.v, b.v from t a join t b on a.k = b.k").to_arrow()
