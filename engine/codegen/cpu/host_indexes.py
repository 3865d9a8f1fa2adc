"""Indexes of build sides on the CPU: their memory, and the run of the kernel that fills them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...storage.columns.encodings import Array
from ..index_checks import cpu_kernel
from ..indexes.layers import REPEATED, Buckets, Buffer, Index
from ..program import Program
from .host_functions import HostFunction, in_steps
from .host_kernels import each_range, run
from .kept_rows import KeptRows


def build(
    kernel: HostFunction,
    program: Program,
    columns: Sequence[Array],
    rows: int,
    memory: dict[str, Array],
    threads: int,
    deterministic: bool = False,
    kept: KeptRows | None = None,
) -> bool:
    """Fill a program's index, whose buffers and state go into `memory`; return whether they are in doubt.

    `deterministic`: rows of the same key are chained in the order in which they come.  `kept`: the only rows that may be in.
    """
    index = program.index
    assert index is not None
    for buffer in index.buffers:
        memory[buffer.name] = _allocated(buffer)
    threads = 1 if deterministic else threads
    outcome = run(kernel, program, columns, rows, threads, memory=memory, kept=kept)
    state = np.concatenate(outcome.arrays)
    if index.form is Buckets and index.unique:
        state[REPEATED] = _repeats(index, kernel, memory, threads)
    memory[f"{index.name}_state"] = state
    return outcome.doubt


def _allocated(buffer: Buffer) -> Array:
    if buffer.fill is None:
        return np.empty(buffer.length, buffer.type)
    if buffer.fill == 0:
        return np.zeros(buffer.length, buffer.type)  # pages that no row touches cost nothing
    return np.full(buffer.length, buffer.fill, buffer.type)


def _repeats(index: Index, kernel: HostFunction, memory: dict[str, Array], threads: int) -> int:
    """Count the buckets of a hashed index that hold a key twice."""
    check = cpu_kernel(kernel.file.directory)
    heads, links, numbers, *_ = (memory[b.name] for b in index.buffers)
    over = check.over([heads, links, numbers])
    return sum(each_range(lambda bounds: in_steps(over, *bounds), index.slots, threads))
