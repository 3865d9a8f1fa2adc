"""What kernels of queries do on the CPU, done again in the simulator of CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from fuseline.codegen.cpu import host_kernels
from fuseline.codegen.indexes.layers import Buckets
from fuseline.codegen.program import Program
from tests.codegen import simulator
from tests.codegen.simulator import assert_accumulators
from tests.compare import connected

Run = tuple[Program, list[Any], int, Any]  # columns, rows, outcome
Simulate = Callable[[str, Mapping[str, Any]], list[Program]]


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
        same = 2 if index.form is Buckets else 3  # a hashed index counts repeated keys later
        assert state[:same].tolist() == expected[:same].tolist()
        self.programs.append(program)

    def main(self, program: Program, columns: list[Any], rows: int, outcome: Any) -> None:
        assert_accumulators(program, columns, rows, outcome, self.memory)
        self.programs.append(program)

    def rows(self, program: Program, columns: list[Any], rows: int, expected: Any) -> None:
        room = len(expected[0])
        found, count = simulator.list_rows(program, columns, rows, room, self.memory)
        assert count == room
        assert sorted(zip(*map(list, found), strict=True)) == sorted(
            zip(*map(list, expected), strict=True)
        )
        self.programs.append(program)


@contextmanager
def recorded_runs() -> Iterator[list[Run]]:
    """Note each run of a CPU kernel meanwhile."""
    kept: list[Run] = []
    original = host_kernels.run

    def run(kernel: Any, program: Program, columns: Any, rows: int, *rest: Any, **more: Any) -> Any:
        outcome = original(kernel, program, columns, rows, *rest, **more)
        kept.append((program, list(columns), rows, outcome))
        return outcome

    with mock.patch.object(host_kernels, "run", run):
        yield kept


def ran(query: str, tables: Mapping[str, Any]) -> list[Run]:
    """Run a query on the CPU; return the runs of its kernels."""
    with recorded_runs() as kept, connected(tables, fuse="always") as connection:
        connection.sql(query).to_arrow()
    assert kept, "no kernel ran"
    return kept
