"""The kernels of `functions_sort` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compile.compiler import Architecture, Signature
from ..compile.kernel_files import KernelFile, kernel_file

SOURCE = Path(__file__).with_name("functions_sort.py")
DIGIT, LEAD = "sort_digit", "text_lead"
SIGNATURE: Signature = [
    ("rows", "int64"),
    ("narrow", "int64"),
    ("keys32", "*int32"),
    ("keys64", "*int64"),
    ("bits", "*uint32"),
    ("first_bit", "int64"),
    ("nullable", "int64"),
    ("turned", "int64"),
    ("base", "int64"),
    ("null", "int64"),
    ("size", "int64"),
    ("begun", "int64"),
    ("numbers", "*int64"),
    ("short", "int64"),
    ("out32", "*int32"),
    ("out64", "*int64"),
]


LEAD_SIGNATURE: Signature = [
    ("rows", "int64"),
    ("characters", "*uint8"),
    ("wide", "int64"),
    ("offsets32", "*int32"),
    ("offsets64", "*int64"),
    ("out", "*int64"),
]


@cache
def digit_kernel(directory: Path, architecture: Architecture) -> KernelFile:
    """Return the kernel that puts a key behind others."""
    return kernel_file(DIGIT, _source(), SIGNATURE, directory, architecture)


@cache
def lead_kernel(directory: Path, architecture: Architecture) -> KernelFile:
    """Return the kernel that makes numbers of the first bytes of texts."""
    return kernel_file(LEAD, _source(), LEAD_SIGNATURE, directory, architecture)


def _source() -> str:
    return SOURCE.read_text(encoding="utf-8")
