"""A CUDA kernel, written by hand, that computes sums and products of integers in one pass; `value_kernels` lists its parameters."""

from __future__ import annotations

import numpy as np
from numba import cuda

COLUMN = -1  # a step is an address of 8-byte values behind this, or a constant behind 0, or one of the operators
SHORT = -2
CONSTANT = 0
ADD = 1
SUB = 2


def exact_terms(rows, steps, program, memory32, memory64, out):  # type: ignore[no-untyped-def]
    """Compute an expression for each row, whose steps come in postfix order: pairs of what to do, and of a place or a constant.

    The last four values lie in registers, and nothing may overflow.
    """
    row = np.int64(cuda.grid(1))
    while row < rows:
        last = np.int64(0)
        second = np.int64(0)
        third = np.int64(0)
        fourth = np.int64(0)
        step = np.int64(0)
        while step < steps:
            kind = program[2 * step]
            at = program[2 * step + 1]
            if kind <= CONSTANT:
                value = at
                if kind == COLUMN:
                    value = memory64[(at >> 3) + row]
                elif kind == SHORT:
                    value = np.int64(memory32[(at >> 2) + row])
                fourth = third
                third = second
                second = last
                last = value
            else:
                if kind == ADD:
                    last = second + last
                elif kind == SUB:
                    last = second - last
                else:
                    last = second * last
                second = third
                third = fourth
            step += 1
        out[row] = last
        row += np.int64(cuda.gridsize(1))
