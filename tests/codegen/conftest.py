"""What tests of kernels share: kernels of queries in the simulator of CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fuseline.codegen.cpu import host_kernels
from fuseline.codegen.program import Program
from fuseline.operators.cpu.pipeline import pipeline
from tests.codegen.simulated import Runs, Simulate
from tests.compare import connected
from tests.limits import SetLimits


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> Runs:
    kept = Runs()
    run, list_rows, build = host_kernels.run, host_kernels.list_rows, pipeline.build

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

    def listed(kernel: Any, program: Program, columns: Any, ranges: Any, *rest: Any) -> Any:
        found = list_rows(kernel, program, columns, ranges, *rest)
        rows = max((end for _, end in ranges), default=0)
        if rows and program.bound is None:
            kept.rows(program, columns, rows, found)
        return found

    monkeypatch.setattr(host_kernels, "run", ran)
    monkeypatch.setattr(host_kernels, "list_rows", listed)
    monkeypatch.setattr(pipeline, "build", built)
    # Blocks of two warps, so that a test has hundreds of Python threads and not thousands
    limits(cuda__BLOCK_THREADS=64, PRIVATE_THREADS=64)
    return kept


@pytest.fixture
def simulate(runs: Runs) -> Simulate:
    """Run a query on the CPU and its kernels in the simulator; return the kernels."""

    def run(query: str, tables: Mapping[str, Any]) -> list[Program]:
        with connected(tables, fuse="always") as connection:
            connection.sql(query).to_arrow()
        assert any(p.index is not None for p in runs.programs), "no index was built"
        return runs.programs

    return run
