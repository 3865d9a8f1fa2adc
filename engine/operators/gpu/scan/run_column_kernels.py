"""The kernels of `codegen.column_kernels` on the device: found or compiled, loaded, launched."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pylibcudf as plc
from cuda.bindings import runtime
from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, Stream, launch

from ....codegen.compile.kernel_files import warn_without
from ....codegen.cuda.accumulator_layout import BLOCK_THREADS
from ....codegen.handwritten.column_kernels import SIGNATURES, column_kernel
from ....errors import Interrupted
from ...context import Context
from ..pipeline.launch import architecture

if TYPE_CHECKING:
    from rmm.pylibrmm.stream import Stream as RmmStream

ROWS_WORTH_COMPILING = 1 << 20
FOR_NUMBERS = (
    "column_measure",
    "column_narrow",
)  # those for texts are compiled when there are some

_lock = threading.Lock()
# Directories in which all kernels have been seen; of one that is gone since, they are compiled again
_ready: set[Path] = set()
# Directories that lacked some, and are not asked again by each hot run (three files of Q22 take 0.1 ms) until they are compiled here
_lacking: set[Path] = set()
_compiling: set[Path] = set()  # directories for which a thread compiles, or has tried to


def ready(context: Context, rows: int) -> bool:
    """Whether the kernels can be launched over so many rows; where they are not, libcudf does their work in more steps.

    They are not compiled for few rows; for many they are now or, with `auto`, by a thread for the next time.
    """
    if context.fuse == "never":
        return False
    directory = context.kernel_directory
    if directory in _ready:
        return True
    if directory not in _lacking:
        if all(column_kernel(n, directory, architecture()).is_compiled for n in SIGNATURES):
            _ready.add(directory)
            return True
        _lacking.add(directory)
    if rows < ROWS_WORTH_COMPILING:
        return False
    if context.fuse != "auto":
        return _compiled(directory, FOR_NUMBERS)
    with _lock:
        if directory not in _compiling:
            _compiling.add(directory)
            arguments = (directory, tuple(SIGNATURES))
            threading.Thread(target=_compiled, args=arguments, daemon=True).start()
    return False


def run(
    name: str, rows: int, arguments: tuple[Stream, ...], stream: RmmStream, directory: Path
) -> None:
    """Launch a kernel whose threads take a row each, and then another, on a stream.

    Arguments are as in `SIGNATURES`; an array is what `array` gives.
    """
    kernel, resident = _kernel(name, directory)
    blocks = max(1, min(-(-rows // BLOCK_THREADS), resident))
    config = LaunchConfig(grid=blocks, block=BLOCK_THREADS)
    launch(_launchable(stream), config, kernel, *arguments)


def array(pointer: int, length: int) -> tuple[int, ...]:
    """A one-dimensional array of 8-byte items as Numba passes it: no owner, length, item size, data, shape, stride."""
    return (0, 0, length, 8, pointer, length, 8)


@cache
def _compiled(directory: Path, names: tuple[str, ...]) -> bool:
    """Compile what is not compiled yet; whether that worked."""
    try:
        for name in names:
            column_kernel(name, directory, architecture()).machine_code()
    except Interrupted:
        raise
    except Exception as error:  # whatever a compiler that is not there or a full disk may raise
        warn_without(name, error)
        return False
    _lacking.discard(directory)
    return True


@cache
def _kernel(name: str, directory: Path) -> tuple[Kernel, int]:
    """Load a kernel; how many blocks of it the device holds at a time."""
    Device().set_current()
    code, _ = column_kernel(name, directory, architecture()).machine_code()
    kernel = ObjectCode.from_cubin(code).get_kernel(name)
    blocks = kernel.occupancy.max_active_blocks_per_multiprocessor(BLOCK_THREADS, 0)
    return kernel, max(1, blocks) * _processors()


@cache
def _processors() -> int:
    error, count = runtime.cudaDeviceGetAttribute(
        runtime.cudaDeviceAttr.cudaDevAttrMultiProcessorCount, 0
    )
    if int(error) != 0:
        raise RuntimeError(f"The CUDA driver answered {error.name}.")
    return int(count)


@cache
def _launchable(stream: RmmStream) -> Stream:
    """A stream of RMM's as cuda.core wants it."""
    device = Device()
    device.set_current()
    return device.create_stream(plc.utils.CUDF_DEFAULT_STREAM if stream is None else stream)
