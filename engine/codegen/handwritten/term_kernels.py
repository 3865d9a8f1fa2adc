"""The kernel of `functions_terms` as a file: its parameters, what its steps are, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

SOURCE = Path(__file__).with_name("functions_terms.py")
NAME = "exact_terms"
REGISTERS = 4  # for values that wait for an operator
# What a step is; columns by the bytes of a value
CONSTANT = 0
COLUMN_OF = {8: -1, 4: -2}
ADD, SUB, MUL = 1, 2, 3
SIGNATURE: Signature = parameters(
    "rows steps int64, program *int64, memory32 *int32, memory64 out *int64"
)
term_kernel = kernels_of(SOURCE, {NAME: SIGNATURE})
