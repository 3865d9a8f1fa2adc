"""CUDA kernels of programs as files, with no GPU and no driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...storage.recent import Recent
from ..compile.compiler import Architecture
from ..compile.kernel_files import KernelFile, kernel_file as kernel_of
from ..kernel_fingerprint import SHAPES_KEPT, Shape, shape, shares
from ..program import Program
from . import emit_cuda
from .accumulator_layout import layout

_files: Recent[Shape, KernelFile] = Recent(SHAPES_KEPT)


def kernel_file(
    program: Program, describe: Callable[[], str], directory: Path, architecture: Architecture
) -> KernelFile:
    """Return a program's kernel; `describe` gives its docstring."""
    where = replace(layout(program), cut=None)  # as it follows from the rest, and holds the program
    key = shape(program), shares(program), where, directory, architecture
    found = _files.find(key)
    if found is None:
        source, signature = emit_cuda.source(program, describe()), emit_cuda.signature(program)
        found = kernel_of(program.name, source, signature, directory, architecture)
        _files.keep(key, found)
    return found
