"""What the kernels of a pipeline are to say of their runs: all that is the same in each, and the receipt of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..codegen.compile_pipeline import Stages
from ..codegen.indexes.layers import Index
from .context import BuildReceipt, PipelineReceipt


def of_every_run(
    made: Stages, paths: Sequence[Path], indexes: Sequence[Index], columns: int, operations: int
) -> PipelineReceipt:
    """Return what is known before a run: kernels, indexes with their bytes, and the rows and bytes that are read of columns."""
    sizes = [sum(np.dtype(b.type).itemsize * b.length for b in i.buffers) for i in indexes]
    builds = zip(made.programs[:-1], paths, indexes, sizes, strict=False)
    return PipelineReceipt(
        kernel=paths[len(made.programs) - 1],
        rows=made.main.relations[0].rows,
        bytes=columns,
        operations=operations,
        program=made.main,
        builds=tuple(BuildReceipt(path, i.shown, i.rows, size, p) for p, path, i, size in builds),
    )


def of_one_run(known: PipelineReceipt, built: Sequence[int]) -> PipelineReceipt:
    """Return the receipt of a run that put so many rows into each index."""
    builds = zip(known.builds, built, strict=True)
    return dataclasses.replace(
        known, builds=tuple(dataclasses.replace(build, rows=rows) for build, rows in builds)
    )
