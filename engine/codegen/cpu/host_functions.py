"""CPU kernels as functions: found or written by their source, loaded from machine code that was compiled before, or compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ... import stopping
from ...storage.recent import Recent
from ...threads.fork_locks import new_lock
from ..compile.compiler import Signature
from ..compile.kernel_files import KernelFile, Origin, kernel_file
from ..compile.native import NativeKernel
from ..kernel_fingerprint import SHAPES_KEPT, Shape, shape
from ..program import Program
from . import emit_cpu

FIRST_ROWS = 1 << 17
MOST_ROWS = 1 << 20  # a call costs 2 us, and so many rows seldom less than 500
LEAST_ROWS = 8
SHORT, LONG = 0.005, 0.02  # seconds of a call after which the next one takes more rows, or fewer


class Pace:
    """Where steps of a range of rows end: a row of a join may become thousands, so the time of a step decides about the next."""

    __slots__ = ("_began", "_rows", "_taken")

    def __init__(self) -> None:
        self._rows = FIRST_ROWS

    def end(self, start: int, last: int) -> int:
        """Return where the step from `start` on ends, which begins now."""
        self._began = time.perf_counter()
        end = min(start + self._rows, last)
        self._taken = end - start
        return end

    def done(self) -> None:
        """Note that a step has ended, in the query's progress too; raises when the query is to stop."""
        seconds = time.perf_counter() - self._began
        if seconds < SHORT:
            self._rows = min(4 * self._rows, MOST_ROWS)
        elif seconds > LONG:
            self._rows = max(self._rows // 4, LEAST_ROWS)
        stopping.advance(self._taken)


def in_steps(kernel: Callable[..., int], start: int, end: int, *results: Any) -> int:
    """Run a kernel whose results carry over from call to call over a range of rows; return the sum of what the calls give."""
    if 0 < end - start <= FIRST_ROWS:
        found = kernel(start, end, *results)
        stopping.advance(end - start)
        return found
    found, pace = 0, Pace()
    while start < end:
        stop = pace.end(start, end)
        found += kernel(start, stop, *results)
        start = stop
        pace.done()
    return found


KERNELS_KEPT = 512

Argument: TypeAlias = np.ndarray | int | float


class HostFunction:
    """The kernel of a file, loaded when it is first asked for; one that `has_loops` of a user's function may never end."""

    def __init__(self, file: KernelFile, has_loops: bool = False) -> None:
        self.file, self._has_loops = file, has_loops
        self._kernel: NativeKernel | None = None
        self._code: bytes | None = None
        self._lock = new_lock()

    @property
    def is_stored(self) -> bool:
        """Whether the machine code need not be compiled."""
        return self._kernel is not None or self._code is not None or self.file.is_compiled

    def fetch(self) -> Origin:
        """Bring the machine code into memory, and return where it came from; raises `NotCompiled`."""
        if self._kernel is not None or self._code is not None:
            return "memory"
        # Without a lock: several may wait for one compiler, and stop waiting
        self._code, origin = self.file.machine_code()
        return origin

    def load(self) -> Origin:
        """Make the kernel ready; return where its machine code came from."""
        if self._kernel is not None:
            return "memory"
        origin = self.fetch()
        with self._lock:
            if self._kernel is None:
                assert self._code is not None
                self._kernel = NativeKernel(self._code, self.file.signature)
                self._code = None
        return origin

    def __call__(self, *arguments: Argument) -> int:
        return self._ready()(*arguments)

    def over(self, arguments: Sequence[Argument]) -> Callable[..., int]:
        """Return what runs the kernel over a range of rows: it takes start and end, then what follows these arguments."""
        run = (self._kernel or self._ready()).over(arguments)
        return partial(stopping.apart, run) if self._has_loops else run

    def _ready(self) -> NativeKernel:
        if self._kernel is None:
            self.load()
        assert self._kernel is not None
        return self._kernel


def compiled(
    program: Program, describe: Callable[[], str], directory: Path
) -> tuple[HostFunction, Path]:
    """Return the kernel of a program, and its file, whose docstring `describe` gives."""
    key = shape(program), emit_cpu.is_wide(program), directory
    file = _files.find(key)
    if file is None:
        source, signature = emit_cpu.source(program, describe()), emit_cpu.signature(program)
        file = kernel_file(program.name, source, signature, directory, None)
        _files.keep(key, file)
    return loaded_function(file, any(f.image.has_loops for f in program.functions)), file.path


def written_kernel(
    name: str, source: str, signature: Signature, directory: Path, has_loops: bool = False
) -> HostFunction:
    """Return a kernel that is the same for all programs."""
    return loaded_function(kernel_file(name, source, signature, directory, None), has_loops)


_files: Recent[Shape, KernelFile] = Recent(SHAPES_KEPT)
_functions: Recent[Path, HostFunction] = Recent(KERNELS_KEPT)


def loaded_function(file: KernelFile, has_loops: bool) -> HostFunction:
    """Return the kernel of a file, the same object as long as it is kept."""
    return _functions.find_or_make(file.path, lambda: HostFunction(file, has_loops))
