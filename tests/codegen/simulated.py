"""What kernels of queries do on the CPU, done again in the simulator of CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuseline.codegen.indexes import Form
from fuseline.codegen.program import Program
from tests.codegen import simulator
from tests.codegen.simulator import assert_accumulators

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
        same = 2 if index.form is Form.HASHED else 3  # a hashed index counts repeated keys later
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
