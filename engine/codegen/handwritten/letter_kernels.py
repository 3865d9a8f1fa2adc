"""The kernel of `functions_letters` as a file: its parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

SOURCE = Path(__file__).with_name("functions_letters.py")
NAME = "letter_case"
WORD = 8  # bytes
SIGNATURE: Signature = parameters(
    "words rest first last int64, words64 *uint64, bytes8 *uint8, out64 *uint64, "
    "out8 *uint8, state *int64"
)
letter_kernel = kernels_of(SOURCE, {NAME: SIGNATURE})
