"""Which device a connection runs on, the backends that it needs, and how they and the column cache are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .errors import DeviceError, InvalidQuery, Unsupported
from .operators.context import Context, PlanMemory
from .plan.expr import ColumnRef
from .plan.physical import ComputeColumns, Device, MemoryScan, ParquetScan, Physical, Transfer
from .progress.run_progress import Progress
from .settings import Settings, set_default

if TYPE_CHECKING:
    from pathlib import Path

    from .plan.udf.settled_calls import FunctionCompiler
    from .runtime.run import Backend
    from .stopping import Stop
    from .storage.column_store.column_store import ColumnStore
    from .storage.columns.cache import ColumnCache, ToHost

CACHE_SHARE = (
    0.5  # of a device's memory, for scanned columns, unless column_cache_limit says otherwise
)


def resolve_device(settings: Settings) -> Device:
    """Return the device that the settings mean; raises `DeviceError`, with what is missing, for a GPU that cannot be used."""
    if settings.device == "cpu":
        return "cpu"
    from .operators import gpu

    usable, missing = gpu.available()
    if usable:
        return "gpu"
    if settings.device == "gpu":
        raise DeviceError(f"There is no GPU to run on. {missing}")
    return "cpu"


def load_backends(device: Device, settings: Settings) -> Mapping[Device, Backend]:
    """Return the CPU backend, and the GPU one where queries run there."""
    # Where colorama is installed, Numba's colours put an earlier sys.stdout back while a thread compiles, whoever has redirected it
    set_default("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    from .codegen.stored.folder import DEFAULT_LIMIT, folder
    from .operators import cpu

    limit = settings.kernel_cache_limit
    folder(settings.cache_dir).limit = DEFAULT_LIMIT if limit is None else limit
    cpu.keep_kernels_in(settings.cache_dir)
    backends: dict[Device, Any] = {"cpu": cpu}
    if device == "gpu":
        from .operators import gpu

        gpu.prepare(settings.memory_limit, host=cpu.evaluate_columns, operate=cpu.operate)
        backends["gpu"] = gpu
    return backends


def cache_limits(device: Device, settings: Settings) -> Mapping[str, int]:
    """Return how many bytes of scanned columns to keep on the device, and beside a GPU on the host."""
    from .runtime.memory import host_memory

    asked = settings.column_cache_limit
    beside = asked if device == "cpu" else settings.host_cache_limit
    limits = {"cpu": int(host_memory() * CACHE_SHARE) if beside is None else beside}
    if device == "gpu" and asked is None:
        from .operators import gpu

        _, total = gpu.device_memory()
        asked = int((settings.memory_limit or total) * CACHE_SHARE)
    return limits if asked is None else {"gpu": asked} | limits


def host_tier(device: Device) -> ToHost | None:
    """Return what copies columns that a GPU's cache has no room for to the host's memory."""
    if device == "cpu":
        return None
    from .operators import gpu

    return gpu.to_host_tier


def column_store(settings: Settings) -> ColumnStore | None:
    """Return the folder of encoded columns that the settings name; raises `AccessDenied` for one that others may look into."""
    if settings.column_store is None:
        return None
    from .storage.column_store.column_store import ColumnStore

    return ColumnStore(settings.column_store, settings.column_store_limit)


def column_cache(device: Device, settings: Settings) -> ColumnCache:
    """Return the cache of a connection's columns, with the folder of those on disk, if there is one."""
    from .storage.columns.cache import ColumnCache

    return ColumnCache(cache_limits(device, settings), column_store(settings), host_tier(device))


def device_memory(device: Device) -> tuple[int, int]:
    """Return the bytes of a device's memory that are free now, and all that it has."""
    if device == "gpu":
        from .operators import gpu

        return gpu.device_memory()
    from .operators.host_memory import available_memory, host_memory

    return available_memory(), host_memory()


def check_placement(plan: Physical, backends: Mapping[Device, Backend], settings: Settings) -> None:
    """Raise before anything runs: `Unsupported` for what no backend can do, `DeviceError` for what require_gpu forbids."""
    nodes = [n for n in _each(plan) if n.device == "cpu" and not isinstance(n, Transfer)]
    for node in nodes:
        reason = backends["cpu"].unsupported(node)
        if reason is not None:
            raise Unsupported(f"{type(node).__name__} cannot run: {reason}.")
    if settings.require_gpu and nodes:
        reasons = dict.fromkeys(f"{type(n).__name__}: {n.reason}" for n in nodes)
        raise DeviceError(
            "require_gpu is set and this query would not run on the GPU alone ("
            + "; ".join(reasons)
            + "): change the query, or SET require_gpu = false."
        )


def function_compiler(device: Device, directory: Path) -> FunctionCompiler:
    """Return what is known of Python functions where they are compiled for the CPU and, where queries run there, for the GPU."""
    from .codegen.udf.fold_kinds import fold_kinds
    from .codegen.udf.refusals import device_refusal, refusal
    from .plan.udf.settled_calls import FunctionCompiler

    on_gpu = None
    if device == "gpu":
        from .operators.gpu.pipeline.launch import architecture

        on_gpu = partial(device_refusal, directory=directory, architecture=architecture())
    return FunctionCompiler(partial(refusal, directory=directory), fold_kinds, on_gpu)


def table_scan(plan: Physical) -> ParquetScan | MemoryScan:
    """Return the scan of a plan that is a table or some of its columns; raises `InvalidQuery` for any other."""
    while isinstance(plan, ComputeColumns) and all(isinstance(e, ColumnRef) for _, e in plan.items):
        plan = plan.input
    if not isinstance(plan, ParquetScan | MemoryScan):
        raise InvalidQuery(
            "cache() takes a table or some of its columns: call it on table(...) or read_parquet(...)."
        )
    return plan


def _each(plan: Physical) -> Iterator[Physical]:
    """Yield each node object once."""
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack.extend(node.children)
            yield node


def context_of(settings: Settings, cache: ColumnCache, stop: Stop, memory: PlanMemory) -> Context:
    """Return what operators get in one run under these settings."""
    return Context(
        cache,
        stop.check,
        settings.threads,
        settings.cache_dir,
        settings.fuse,
        settings.deterministic,
        settings.memory_limit,
        memory,
        progress=stop.progress or Progress(),
    )
