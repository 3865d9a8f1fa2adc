"""The kernels of `functions_letters` and `functions_terms` as files: their parameters, what steps of terms are, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

LETTERS_SOURCE, TERMS_SOURCE = map(
    Path(__file__).with_name, ("functions_letters.py", "functions_terms.py")
)
LETTERS, TERMS = "letter_case", "exact_terms"
WORD = 8  # bytes of letters
REGISTERS = 4  # for values that wait for an operator
# What a step is; columns by the bytes of a value
CONSTANT = 0
COLUMN_OF = {8: -1, 4: -2}
ADD, SUB, MUL = 1, 2, 3
LETTERS_SIGNATURE: Signature = parameters(
    "words rest first last int64, words64 *uint64, bytes8 *uint8, out64 *uint64, "
    "out8 *uint8, state *int64"
)
TERMS_SIGNATURE: Signature = parameters(
    "rows steps int64, program *int64, memory32 *int32, memory64 out *int64"
)
letter_kernel = kernels_of(LETTERS_SOURCE, {LETTERS: LETTERS_SIGNATURE})
term_kernel = kernels_of(TERMS_SOURCE, {TERMS: TERMS_SIGNATURE})
