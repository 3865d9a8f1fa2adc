"""Workers that have agreed on their columns run the same kernels, whatever each has of a column, and send texts as codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks import tpch
from benchmarks.data import tpch_tables
from fuseline.operators.context import PipelineReceipt
from fuseline.plan.exchange import Exchange
from fuseline.plan.expr import new_column
from fuseline.plan.physical import ConcatRows, RangeScan
from fuseline.plan.types import BIGINT
from fuseline.runtime.schedule import inputs_first
from tests.compare import assert_same_as_duckdb, difference, duckdb_answer, ordering
from tests.distributed.conftest import WORKERS, Opened

ROWS = 600  # of which each worker has 200
LONG = "a text that is much longer than its code, "


def _uneven() -> pa.Table:
    """Each worker's rows are others: texts, NULLs and wide numbers that one alone has, and dictionaries in other orders."""
    at = np.arange(ROWS)
    share = at // (ROWS // WORKERS)
    texts = [f"{LONG}{'abc'[s]}{(i * 7) % (3 + 2 * s)}" for i, s in zip(at, share, strict=True)]
    texts[-1] = "of the last worker alone"
    return pa.table(
        {
            "k": at % 97,
            "text": texts,
            "sparse": pa.array([None if s == 0 and i % 3 else "x" for i, s in zip(at, share, strict=True)]),
            "wide": np.where(share == 2, at * 1_000, at % 5),
            "n": pa.array([None if s == 1 and i % 4 == 0 else int(i % 11) for i, s in zip(at, share, strict=True)]),
        }
    )  # fmt: skip


def _kernels(connection: Any, text: str) -> list[list[tuple[str, ...]]]:
    """The files of kernels that each worker has run."""
    profile = connection._runner.run(connection.sql(text)._plan, None, True).profile
    found = []
    for worker in profile.workers:
        receipts = [n.receipt for n in worker.nodes if isinstance(n.receipt, PipelineReceipt)]
        assert all(r.reason is None and r.kernel is not None for r in receipts), receipts
        found.append(
            [(r.kernel.name, *(b.kernel.name for b in r.builds)) for r in receipts if r.kernel]
        )
    assert len(found) == WORKERS
    return found


GROUPED = "select text, count(*), sum(wide), min(n) from t group by text"
QUERIES = (
    GROUPED,
    "select sparse, sum(n), count(n) from t where wide > 3 group by sparse",
)


def test_workers_run_the_same_kernels_on_uneven_rows(opened: Opened) -> None:
    table = _uneven()
    connection = opened({"t": table}, fuse="always")
    for query in QUERIES:
        assert_same_as_duckdb(query, {"t": table}, connection=connection)
        first, *others = _kernels(connection, query)
        assert first
        assert others == [first] * (WORKERS - 1)


def test_texts_that_all_know_are_sent_as_codes(opened: Opened) -> None:
    table = _uneven()
    connection = opened({"t": table, "u": table}, fuse="always")
    query = "select a.text, count(*) from t a join u b on a.k = b.wide group by a.text"
    assert_same_as_duckdb(query, {"t": table, "u": table}, connection=connection)
    again = connection.sql(query)
    again.to_arrow()
    sent = sum(met.sent for worker in again.profile.workers for met in worker.meetings)
    assert 0 < sent < ROWS * len(LONG)


def test_an_empty_share_and_fewer_rows_than_workers(opened: Opened) -> None:
    table = _uneven().slice(0, 2)
    connection = opened({"t": table}, fuse="always")
    for query in QUERIES:
        assert_same_as_duckdb(query, {"t": table}, connection=connection)


def _differs_in_few(kernels: list[list[tuple[str, ...]]]) -> bool:
    return any(found != kernels[0] for found in kernels[1:])


@pytest.mark.nightly
@pytest.mark.parametrize("shuffled", [False, True])
def test_tpch(shuffled: bool, client: Any, tmp_path: Path) -> None:
    """At this scale Q02 and Q18 leave some workers none or one of the rows that a kernel looks up, and Q07's joins are in the order of each worker's own shares."""
    import duckdb

    duck, scale = duckdb.connect(), 0.01
    settings = {"replicate_below": 0, "one_worker_below": 0, "fuse": "always"}
    different = []
    with fuseline.connect("cpu", cluster=client, **settings) as connection:
        for name, source in tpch_tables(scale).items():
            rows = pq.read_table(source)
            if shuffled:
                order = np.random.default_rng(1).permutation(rows.num_rows)
                texts = [
                    f.with_type(pa.string()) if "view" in str(f.type) else f for f in rows.schema
                ]
                rows = rows.cast(pa.schema(texts)).take(pa.array(order))
            path = tmp_path / f"{name}.parquet"
            pq.write_table(rows, path, row_group_size=5000)
            connection.read_parquet(path, name)
            duck.execute(f"create view {name} as from '{path}'")
        for name, text in tpch.queries(scale).items():
            expected = duckdb_answer(duck, text)
            actual = connection.sql(text).to_arrow()
            assert difference(expected, actual, ordering(text, expected.column_names)) is None, name
            if _differs_in_few(_kernels(connection, text)):
                different.append(name)
    assert set(different) <= {"q02", "q07", "q18"}


def test_workers_meet_in_one_order_whatever_comes_first_in_their_plans() -> None:
    leaf = RangeScan(new_column("n", BIGINT), 0, 3, 1)
    first, second = (Exchange(leaf, "broadcast", number) for number in (0, 1))
    for inputs in ((first, second), (second, first)):
        order = inputs_first(ConcatRows(inputs, (new_column("n", BIGINT),)))
        assert [node.number for node in order if isinstance(node, Exchange)] == [0, 1]
