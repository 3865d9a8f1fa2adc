"""Kernels of fused joins, simulated as CUDA: their indexes, accumulators and rows are those of the CPU's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.codegen.indexes import Form
from fuseline.codegen.steps import Program
from fuseline.codegen.targets import host, places
from fuseline.operators.cpu import launch
from tests.codegen import simulator
from tests.codegen.simulator import assert_same
from tests.codegen.test_joins import KINDS, SHAPES, STAR, keyed

REFUSED = ("scalar", "left residual", "build keys")  # by some shapes of keys


SEVERAL = [
    "select region, sum(v), count(*) from t join u on i = u.k join x on u.x = x.k "
    "join y on x.y = y.k group by region",
    "select u.k, place, sum(v) from t join u on i = u.k join x on u.x = x.k group by u.k, place",
    "select q, count(*), sum(v) from t join u on i = u.k left join z on j = z.k group by q",
    "select i, j, v, count(*) from t join u on i = u.k group by i, j, v",
    "select v, name, w from t join u on i = u.k where v > 500",
    "select v, i, q from t left join z on j = z.k where v % 50 = 1",
]


@dataclass
class Runs:
    """What the kernels of queries did on the CPU; each is simulated at once, with the index memory of its own pipeline."""

    memory: dict[str, Any] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)

    def build(self, program: Program, columns: list[Any], rows: int, expected: Any) -> None:
        index = program.index
        assert index is not None
        self.memory |= simulator.memory(index.buffers)
        found, _ = simulator.run(program, columns, rows, memory=self.memory)
        state = np.concatenate(found)
        self.memory[f"{index.name}_state"] = state
        same = 2 if index.form is Form.HASHED else 3  # a hashed index counts repeated keys later
        assert state[:same].tolist() == expected[:same].tolist()
        self.programs.append(program)

    def main(self, program: Program, columns: list[Any], rows: int, outcome: Any) -> None:
        assert_same(program, columns, rows, outcome, self.memory)
        self.programs.append(program)

    def rows(self, program: Program, columns: list[Any], rows: int, expected: Any) -> None:
        room = len(expected[0])
        found, count = simulator.list_rows(program, columns, rows, room, self.memory)
        assert count == room
        assert sorted(zip(*map(list, found), strict=True)) == sorted(
            zip(*map(list, expected), strict=True)
        )
        self.programs.append(program)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    kept = Runs()
    run, list_rows, build = host.run, host.list_rows, launch.build

    def built(
        kernel: Any, program: Program, columns: Any, rows: int, memory: Any, *rest: Any
    ) -> Any:
        doubt = build(kernel, program, columns, rows, memory, *rest)
        assert program.index is not None
        kept.build(program, columns, rows, memory[f"{program.index.name}_state"])
        return doubt

    def ran(kernel: Any, program: Program, columns: Any, rows: int, *rest: Any, **more: Any) -> Any:
        outcome = run(kernel, program, columns, rows, *rest, **more)
        if rows:
            kept.main(program, columns, rows, outcome)
        return outcome

    def listed(kernel: Any, program: Program, columns: Any, rows: int, *rest: Any) -> Any:
        found = list_rows(kernel, program, columns, rows, *rest)
        if rows:
            kept.rows(program, columns, rows, found)
        return found

    monkeypatch.setattr(host, "run", ran)
    monkeypatch.setattr(host, "list_rows", listed)
    monkeypatch.setattr(launch, "build", built)
    # Blocks of two warps, so that a test has hundreds of Python threads and not thousands
    monkeypatch.setattr(places, "BLOCK_THREADS", 64)
    monkeypatch.setattr(places, "PRIVATE_THREADS", 64)
    return kept


Simulate = Callable[[str, Mapping[str, Any]], list[Program]]


@pytest.fixture
def simulate(runs: Runs) -> Simulate:
    """Run a query on the CPU and its kernels in the simulator; return the kernels."""

    def run(query: str, tables: Mapping[str, Any]) -> list[Program]:
        with fuseline.connect(device="cpu", fuse="always") as connection:
            for name, table in tables.items():
                connection.register(name, table)
            connection.sql(query).to_arrow()
        assert any(p.index is not None for p in runs.programs), "no index was built"
        return runs.programs

    return run


@pytest.mark.parametrize("shape", ["unique", "duplicate", "far apart", "range of 2**63, duplicate"])
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in REFUSED])
def test_a_kind_of_join(kind: str, shape: str, simulate: Simulate) -> None:
    probe, build = SHAPES[shape]
    simulate(KINDS[kind], {"t": keyed("v", probe), "u": keyed("w", build)})


@pytest.mark.parametrize("query", SEVERAL)
def test_several_joins(query: str, simulate: Simulate) -> None:
    simulate(query, {**STAR, "t": STAR["t"].slice(0, 301)})


def test_groups_in_a_hash_table(simulate: Simulate) -> None:
    """The domain of both keys is too large for anything else."""
    tables = {
        "t": pa.table({"a": np.arange(200) % 40 * 10**9, "v": np.arange(200)}),
        "u": pa.table({"a": np.arange(40) * 10**9, "b": np.arange(40) % 7 * 10**8}),
    }
    query = "select t.v // 7 * 1000000 as f, u.b, count(*), sum(v) from t join u on t.a = u.a group by f, u.b"
    *_, main = simulate(query, tables)
    assert main.grouping is not None
    assert main.grouping.hashed
