"""Runs the kernels of a pipeline: first those that make indexes, then the one that has the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ....codegen.compile.kernel_files import at_once
from ....codegen.compile_pipeline import Stages
from ....codegen.cpu import host_kernels
from ....codegen.cpu.host_indexes import build
from ....codegen.indexes.layers import REPEATED, Buckets
from ....codegen.loop import Machine, Number
from ....codegen.program import Program
from ....plan.expr import Column
from ....plan.physical import FirstRows, Physical
from ....storage.columns.encodings import Array
from ...context import Context, Origin, latest
from .first_rows import Bound, FirstRowsListing, Ranges
from .pipeline_inputs import Leaves

CLOSE = "a value was close to 64 bits"
MANY = 1 << 31  # rows of a group from which on sums may not be exact


@dataclass(frozen=True)
class Kernels:
    """The kernels of `compile_pipeline.programs`, ready to be compiled, and their files."""

    stages: Stages
    functions: tuple[host_kernels.HostFunction, ...]
    paths: tuple[Path, ...]

    @cached_property
    def checked(self) -> int:
        """The slots of hashed indexes that are looked at again."""
        indexes = (made.index for made in self.stages.programs)
        return sum(i.slots for i in indexes if i is not None and i.unique and i.form is Buckets)

    @property
    def are_stored(self) -> bool:
        """Whether none of them has to be compiled."""
        return all(function.is_stored for function in self.functions)


@dataclass(frozen=True)
class Launched:
    """What the last kernel gives; or why its answer is in doubt, or which build sides' keys repeat against expectation."""

    outcome: Any = None
    doubt: str | None = None
    repeating: tuple[int, ...] = ()


def compiled(stages: Stages, describe: Callable[[], str], context: Context) -> Kernels:
    """Return the kernels; they are compiled when they are loaded."""
    made = [
        host_kernels.compiled(each, describe, context.kernel_directory) for each in stages.programs
    ]
    return Kernels(stages, tuple(f for f, _ in made), tuple(path for _, path in made))


def fetch(kernels: Kernels) -> tuple[None, Origin]:
    """Bring the machine code into memory, compiled where it is not stored, and return where it came from."""
    missing = sum(not function.is_stored for function in kernels.functions)
    return None, latest(at_once(host_kernels.HostFunction.fetch, kernels.functions, missing))


def columns_read(stages: Stages) -> list[tuple[Physical, Column]]:
    """Return the columns that the kernels read of leaves, each once."""
    read = {(id(leaf), c): (leaf, c) for made in stages.programs for leaf, c in made.read}
    return list(read.values())


def arguments(made: Program, leaves: Leaves) -> list[Array]:
    """The arrays of the columns that a kernel reads, in the order of its parameters: codes, and a bitmap where there are NULLs."""
    arrays: list[Array] = []
    for leaf, column in made.read:
        encoded = leaves.columns[id(leaf), column.id]
        codes = encoded.codes
        arrays.append(codes.view(np.uint8) if codes.dtype == np.bool_ else codes)
        if encoded.validity is not None:
            arrays.append(encoded.validity)
    return arrays


def run(
    kernels: Kernels,
    counts: Sequence[int],
    leaves: Leaves,
    context: Context,
    first: FirstRows | None = None,
) -> Launched:
    """Run the kernels, each over so many rows; `first`: those alone of the rows that come out are read."""
    *builds, main = zip(kernels.functions, kernels.stages.programs, counts, strict=True)
    memory: dict[str, Array] = {}
    for function, made, rows in builds:
        context.check()
        columns = arguments(made, leaves)
        if build(function, made, columns, rows, memory, context.threads, context.deterministic):
            return Launched(doubt=CLOSE)
        index = made.index
        assert index is not None
        if index.unique and memory[f"{index.name}_state"][REPEATED]:
            return Launched(repeating=(index.number,))
    context.check()
    return _main(*main, memory, leaves, context, first)


def _rows_of_sums(made: Program, outcome: host_kernels.Outcome) -> int:
    """The most rows of a group, where sums may not be exact for so many; counts always are."""
    counts = (Number(1, Machine.I64), Number(0, Machine.I64))
    sums = (a for a in made.accumulators if a.fold == "add" and a.machine is Machine.I64)
    if made.counted is None or not made.repeats or all(a.term in counts for a in sums):
        return 0
    return int(outcome.arrays[made.counted].max(initial=0))


def _main(
    function: host_kernels.HostFunction,
    made: Program,
    rows: int,
    memory: dict[str, Array],
    leaves: Leaves,
    context: Context,
    first: FirstRows | None,
) -> Launched:
    columns = arguments(made, leaves)
    if made.accumulators:
        outcome = host_kernels.run(
            function, made, columns, rows, context.threads, context.deterministic, memory
        )
        if _rows_of_sums(made, outcome) >= MANY:
            return Launched(doubt="a group has 2**31 rows or more")
        return Launched(outcome, CLOSE if outcome.doubt else None)
    found: list[Array] | Array | None
    if made.rows_out:
        ranges = host_kernels.ranges_of(rows, context.threads)

        def listed(ranges: Ranges, bound: Bound = None) -> list[Array] | None:
            return host_kernels.list_rows(function, made, columns, ranges, memory, bound)

        if made.bound is None or first is None:
            found = listed(ranges)
        else:
            found = FirstRowsListing(made, first, listed, leaves, context).rows(rows, ranges)
    else:
        found = host_kernels.select_rows(function, made, columns, rows, context.threads)
    return Launched(found, CLOSE if found is None else None)
