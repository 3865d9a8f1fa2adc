"""The GPU itself: whether one can be used, its memory, and what happens when that runs out.

Importing this module imports no GPU library, so that it can say what is missing.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from ....errors import install
from ...context import Context
from ...host_memory import NoRoom
from .. import host_backend as hosts

OLDEST_DRIVER = 13000  # CUDA 13.0 as the driver counts: R580
_OUT_OF_MEMORY = ("out_of_memory", "out of memory", "bad_alloc", "cudaErrorMemoryAllocation")

T = TypeVar("T")
Operator = Callable[[Any, tuple[Any, ...], Context], Any]


class _FilesOfThread(threading.local):
    """Where the operator of a thread finds kernels of its expressions, and when these are compiled (the setting `fuse`)."""

    place: tuple[Path, str] | None = None


kernel_files = _FilesOfThread()


@functools.cache
def available() -> tuple[bool, str]:
    """Return whether a GPU can be used, and if not, what is missing; makes no CUDA context."""
    for module in ("pylibcudf", "rmm", "cuda.bindings"):
        if not _importable(module):
            return False, f"{module} is not installed: {install('cuda13')}."
    from cuda.bindings import runtime

    success = runtime.cudaError_t.cudaSuccess
    error, version = runtime.cudaDriverGetVersion()
    if error != success or not version:
        return False, "There is no NVIDIA driver: install R580 or newer."
    if version < OLDEST_DRIVER:
        found = f"CUDA {version // 1000}.{version % 1000 // 10}"
        return False, f"The NVIDIA driver is too old ({found}): install R580 or newer (CUDA 13.0)."
    error, count = runtime.cudaGetDeviceCount()
    if error != success or not count:
        return False, "The NVIDIA driver finds no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES."
    return True, ""


def device_description() -> list[str]:
    """Return name, memory and driver of the GPU that queries use, a line each."""
    from cuda.bindings import runtime

    _, properties = runtime.cudaGetDeviceProperties(0)
    _, version = runtime.cudaDriverGetVersion()
    free, total = device_memory()
    capability = f"{properties.major}.{properties.minor}"
    return [
        f"{properties.name.decode()}, compute capability {capability}",
        f"{free / 1e9:.1f} GB of {total / 1e9:.1f} GB free",
        f"driver for CUDA {version // 1000}.{version % 1000 // 10}",
    ]


class _DeviceOfThread(threading.local):
    """Whether the device's context is current on a thread."""

    has_device = False


_of_thread = _DeviceOfThread()


def take_device() -> None:
    """Make the device's context current on this thread, as threads of our own have to begin.

    libcudf's calls do so by themselves, the driver's do not: to wait for a stream is an error on a thread that did nothing before.
    """
    from cuda.core import Device

    Device().set_current()
    _of_thread.has_device = True


class _Memory:
    """What RMM was told; one device a process."""

    resource: Any = None
    limiter: Any = None  # what counts allocations under a limit
    limit: int | None = None
    ready = False


def prepare(
    memory_limit: int | None = None,
    *,
    host: hosts.Evaluator | None = None,
    operate: hosts.Operator | None = None,
) -> None:
    """Make allocations come from CUDA's stream-ordered pool, at most `memory_limit` bytes of it.

    May be called again with another limit; what is allocated already does not count against a new one.  `host` computes the
    single values that libcudf computes otherwise than DuckDB, and `operate` runs nodes over few rows that are there.
    """
    import rmm.mr

    hosts.use(host, operate)
    if _Memory.ready and _Memory.limit == memory_limit:
        return
    if _Memory.resource is None:
        _Memory.resource = rmm.mr.CudaAsyncMemoryResource()
    limiter = None
    if memory_limit is not None:
        limiter = rmm.mr.LimitingResourceAdaptor(_Memory.resource, memory_limit)
    rmm.mr.set_current_device_resource(limiter or _Memory.resource)
    _Memory.limiter, _Memory.limit, _Memory.ready = limiter, memory_limit, True


def device_memory() -> tuple[int, int]:
    """Return the free and the total bytes of device memory."""
    import rmm.mr

    free, total = rmm.mr.available_device_memory()
    return int(free), int(total)


def free_memory() -> str:
    """Say how much device memory there is, for an error."""
    free, total = device_memory()
    return f"{free:,} of {total:,} bytes are free"


def check_room(nbytes: int) -> None:
    """Raise `MemoryError` where the memory limit has no room for so many bytes beside what is allocated.

    Asked before files are read: a read that runs out in its middle takes as long as one that ends.
    """
    if _Memory.limiter is None or _Memory.limit is None:
        return
    left = _Memory.limit - _Memory.limiter.get_allocated_bytes()
    if nbytes > left:
        raise MemoryError(f"{nbytes:,} bytes are needed, of the memory limit {left:,} are left")


def make_room(nbytes: int, context: Context) -> None:
    """Have cached columns leave, those read longest ago first, until the memory limit has room for so many bytes.

    Who finds that out by trying has all of them leave and begins anew: Q21 of TPC-H SF100 within 10 GB did so in each run, Q17 within
    20 GB, which lifted 14 GB of 6.
    """
    if _Memory.limiter is None or _Memory.limit is None:
        return
    cache, left = context.cache.lasting, _Memory.limit - nbytes
    while (excess := _Memory.limiter.get_allocated_bytes() - left) > 0:
        if not cache.release("gpu", excess):  # or who reads it keeps it
            return


def synchronize() -> None:
    """Wait until everything launched so far has run."""
    import pylibcudf as plc

    plc.utils.CUDF_DEFAULT_STREAM.synchronize()


def on_device(operator: Operator) -> Operator:
    """Run an operator with RMM prepared; without memory for it, drop the scanned columns and try again.

    Raises `MemoryError` when that does not help; the executor names the node and the setting.  Inputs are immutable, so a
    second run is safe.
    """

    @functools.wraps(operator)
    def run(node: Any, inputs: tuple[Any, ...], context: Context) -> Any:
        if not _Memory.ready:
            prepare()
        if not _of_thread.has_device:
            take_device()
        kernel_files.place = context.kernel_directory, context.fuse
        counting = hosts.counting
        before, counting.counts = counting.counts, context.host_values
        try:
            return operator(node, inputs, context)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, NoRoom) or not is_out_of_memory(error):
                raise
        finally:
            counting.counts = before
        counting.counts = context.host_values
        try:
            return _once_more(functools.partial(operator, node, inputs, context), context)
        finally:
            counting.counts = before

    return run


def with_room(work: Callable[[], T], context: Context) -> T:
    """Do what takes device memory, once more where there is too little of it. Raises `MemoryError` when that does not help."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    return _once_more(work, context)


def _once_more(work: Callable[[], T], context: Context) -> T:
    """Do work that ran out of memory when the cached columns have gone, and then when reference cycles have, in which errors keep tables.

    In this order, since a collection looks at all objects of the process: that, and to give the host's memory back, which helps no device,
    took Q13 of TPC-H SF100 within 2 GB of an H200 2 of its 2.5 s.  An operator that this is part of tries again too, without the tables that
    it had made.
    """
    if context.cache.release("gpu", 1 << 62):
        try:
            return work()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
    gc.collect()
    context.cache.release("gpu", 1 << 62)  # what the last try has brought there
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(f"{error}; {free_memory()}") from error


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error of a GPU library says that an allocation failed."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
