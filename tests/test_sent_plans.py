"""Plans are data: every golden one is pickled, run by another process, and by two connections at once."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.backends import load_backends
from fuseline.errors import FuselineError
from fuseline.operators.context import Context
from fuseline.plan.expr import Column, new_column
from fuseline.plan.physical import Physical
from fuseline.plan.text.plan_text import tree
from fuseline.plan.types import BIGINT
from fuseline.runtime.executor import execute
from fuseline.settings import Settings
from fuseline.storage.columns.cache import ColumnCache
from tests.compare import connected
from tests.planner.build import physical, rows
from tests.planner.test_goldens import RULE_NAMES, cases

# Kernels of so few rows cost a compiler each: of all rules' cases only these have any
FUSED = ("fuse", "whole_way")
GOLDENS = [(name, case.query) for name in (*RULE_NAMES, *FUSED) for case in cases(name)]


def answer(plan: Physical, context: Context) -> list[str]:
    """Return a plan's rows in some order, or what its error says; of any rows that a limit may keep, how many."""
    try:
        found = execute(plan, load_backends("cpu", Settings()), context).to_arrow()
    except FuselineError as error:
        return [f"{type(error).__name__}: {error.message}"]
    limited = tree(plan).startswith("LimitRows")
    return [str(found.num_rows)] if limited else sorted(map(str, found.to_pylist()))


def fresh(kernels: Path) -> Context:
    return Context(ColumnCache({"cpu": 1 << 30}), lambda: None, 2, kernels)


def answers(pickled: bytes, kernels: Path) -> list[list[str]]:
    """What the other process does."""
    return [answer(plan, fresh(kernels)) for plan in pickle.loads(pickled)]


def columns_of(pickled: bytes) -> tuple[int, int, bool]:
    """The id of a column that was sent, that of the next one here, and whether they are two."""
    sent: Column = pickle.loads(pickled)
    made = new_column(sent.name, sent.type)
    return sent.id, made.id, made != sent


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Physical], Path]]:
    """The golden queries planned over rows of their tables, every other one of which is a file."""
    folder = tmp_path_factory.mktemp("sent")
    tables: dict[str, Any] = rows()
    for name in list(tables)[::2]:
        pq.write_table(tables[name], folder / f"{name}.parquet", row_group_size=16)
        tables[name] = folder / f"{name}.parquet"
    made = []
    with connected(tables, fuse="never") as plain, connected(tables, fuse="always") as fused:
        for golden, query in GOLDENS:
            connection = fused if golden in FUSED else plain
            made.append(connection.physical(connection.sql(query)._plan))
        yield made, fused.settings.cache_dir


def test_another_process_gives_the_same_answers(
    plans: tuple[list[Physical], Path], process: ProcessPoolExecutor
) -> None:
    made, kernels = plans
    expected = [answer(plan, fresh(kernels)) for plan in made]
    assert sum(not rows for rows in expected) < len(expected) / 2
    sent = pickle.dumps(made)
    assert process.submit(answers, sent, kernels).result() == expected
    assert [tree(plan) for plan in pickle.loads(sent)] == [tree(plan) for plan in made]


def test_two_connections_run_a_plan_at_once(plans: tuple[list[Physical], Path]) -> None:
    made, kernels = plans
    contexts = fresh(kernels), fresh(kernels)
    with ThreadPoolExecutor(2) as pool:
        for plan in made:
            one, other = pool.map(answer, (plan, plan), contexts)
            assert one == other
            assert pickle.dumps(plan) == pickle.dumps(plan)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_plans_over_statistics_come_back_the_same(device: Any) -> None:
    for _, query in GOLDENS:
        plan = physical(query, device=device, fuse="auto")
        same = pickle.loads(pickle.dumps(plan))
        assert tree(same) == tree(plan)


def test_columns_that_are_made_where_a_plan_was_sent_are_others(
    process: ProcessPoolExecutor,
) -> None:
    far = Column(new_column("x", BIGINT).id + 10_000_000, "x", BIGINT)
    for column in (far, new_column("x", BIGINT)):
        sent, made, differ = process.submit(columns_of, pickle.dumps(column)).result()
        assert sent == column.id
        assert differ
        assert made > far.id


def test_a_file_that_has_changed_is_not_read_as_it_was(
    tmp_path: Path, process: ProcessPoolExecutor
) -> None:
    table = rows()["t"]
    pq.write_table(table, tmp_path / "t.parquet")
    with fuseline.connect("cpu", fuse="never") as connection:
        connection.read_parquet(str(tmp_path / "t.parquet"), "t")
        plan = connection.physical(connection.sql("select count(a), max(b) from t")._plan)
    pq.write_table(table.slice(3), tmp_path / "t.parquet")
    ((found,),) = process.submit(answers, pickle.dumps([plan]), tmp_path).result()
    assert found.startswith("FileError")
    assert "has changed" in found
