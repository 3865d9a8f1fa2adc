"""The kernel of `functions_letters` as a file: its parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compile.compiler import Architecture, Signature
from ..compile.kernel_files import KernelFile, kernel_file

SOURCE = Path(__file__).with_name("functions_letters.py")
NAME = "letter_case"
WORD = 8  # bytes
SIGNATURE: Signature = [
    ("words", "int64"),
    ("rest", "int64"),
    ("first", "int64"),
    ("last", "int64"),
    ("words64", "*uint64"),
    ("bytes8", "*uint8"),
    ("out64", "*uint64"),
    ("out8", "*uint8"),
    ("state", "*int64"),
]


@cache
def letter_kernel(directory: Path, architecture: Architecture) -> KernelFile:
    """Return the kernel."""
    return kernel_file(NAME, SOURCE.read_text(encoding="utf-8"), SIGNATURE, directory, architecture)
