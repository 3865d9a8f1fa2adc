"""A GPU that is not there: what a query asks of its driver and libraries, answered at once and by nothing, so that the host's part can be counted.

Columns and buffers lie in the host's memory, kernels are generated but neither compiled nor run, and what libcudf would compute is zeros (`idle_libcudf`).  A
kernel finds `FOUND` rows or groups, so that what follows one has something to do.  Run as a program, in a process of its own, it prints how many functions named
queries call when they are hot, and those that have new constants.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests import idle_libcudf
from tests.idle_libcudf import INT64, Column

FOUND = 20  # rows or groups that a kernel finds, where there are so many
ROOM = 1 << 36  # bytes of memory that the device says it has
CAPABILITY = (9, 0)
# What the driver's functions do here, in machine code as its own; all others do nothing
DRIVER = {
    "cuMemcpyAsync": """
        declare ptr @memmove(ptr, ptr, i64)
        define i32 @kernel(ptr %target, ptr %source, i64 %size) {
          %copied = call ptr @memmove(ptr %target, ptr %source, i64 %size)
          ret i32 0
        }""",
    "": "define i32 @kernel() { ret i32 0 }",
}


class HostBuffer:
    """Memory of the host in the place of the device's."""

    def __init__(self, size: int = 0, stream: object = None) -> None:
        self.memory = np.zeros(size, np.uint8)
        self.ptr, self.size = self.memory.ctypes.data, size

    @classmethod
    def to_device(cls, values: Any) -> HostBuffer:
        made = cls(values.nbytes)
        made.memory[:] = values.view(np.uint8)
        return made

    def data(self) -> HostBuffer:
        return self


class Emptied(list[HostBuffer]):
    """Memory that is given back, of which no kernel makes what a later run finds."""

    def append(self, buffer: HostBuffer) -> None:
        buffer.memory[:] = 0
        super().append(buffer)


class Stream:
    """What waits for nothing."""

    synchronize = staticmethod(sys.gettrace)  # a function of C, as the libraries' are

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0


def install() -> None:
    """Have the libraries of a GPU answer in this process; before the backend is imported."""
    buffer = _module("rmm.pylibrmm.device_buffer")
    buffer.DeviceBuffer = HostBuffer
    for name in ("rmm", "rmm.pylibrmm", "rmm.pylibrmm.stream", "pylibcudf.interop"):
        _module(name)
    memory = sys.modules["rmm"].mr = _module("rmm.mr")
    memory.available_device_memory = lambda: (ROOM, ROOM)
    libcudf = _module("pylibcudf")
    idle_libcudf.fill(libcudf)
    libcudf.utils = SimpleNamespace(CUDF_DEFAULT_STREAM=Stream())
    _answer_as_driver()
    _leave_out_the_device()


def _module(name: str) -> Any:
    made = sys.modules[name] = MagicMock(name=name)
    made.__spec__, made.__path__ = ModuleSpec(name, None), []
    return made


def _answer_as_driver() -> None:
    from cuda.bindings import runtime

    done, kept = runtime.cudaError_t.cudaSuccess, []
    given = {runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor: CAPABILITY[0]}
    given[runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMinor] = CAPABILITY[1]

    def copied(target: int, source: int, size: int, *_: object) -> tuple[object]:
        ctypes.memmove(target, source, size)
        return (done,)

    def filled(target: int, byte: int, size: int, *_: object) -> tuple[object]:
        ctypes.memset(target, byte, size)
        return (done,)

    def allocated(size: int, *_: object) -> tuple[object, int]:
        kept.append(HostBuffer(size))
        return done, kept[-1].ptr

    answers = {
        "cudaDriverGetVersion": lambda: (done, 13000),
        "cudaGetDeviceCount": lambda: (done, 1),
        "cudaDeviceGetAttribute": lambda name, _: (done, given.get(name, 1 << 11)),
        "cudaMemcpyAsync": copied,
        "cudaMemsetAsync": filled,
        "cudaHostAlloc": allocated,
        "cudaHostRegister": lambda *_: (done,),
    }
    for name, answer in answers.items():
        setattr(runtime, name, answer)


def _leave_out_the_device() -> None:
    """Have kernels neither compiled nor loaded, columns encoded on the host, and tables of values computed there."""
    from fuseline.codegen.compile.kernel_files import KernelFile
    from fuseline.codegen.compile.native import loaded_text
    from fuseline.operators.cpu.pipeline.pipeline_inputs import Leaves
    from fuseline.operators.gpu.memory import buffers, device
    from fuseline.operators.gpu.pipeline import (
        driver_calls,
        launch,
        pipeline,
        pipeline_inputs,
        ready_pipeline,
    )
    from fuseline.operators.gpu.pipeline.pipeline_inputs import Relations
    from fuseline.operators.gpu.scan import encoded

    functions = {name: loaded_text(text, int) for name, text in DRIVER.items()}
    replaced: list[tuple[Any, str, Any]] = [
        (KernelFile, "machine_code", lambda file: (b"", "compiler")),
        (Relations, "fold", staticmethod(Leaves.fold)),
        (buffers, "_spare", {size: Emptied() for size in buffers._spare}),
        (device, "take_device", lambda: None),
        (launch, "loaded", lambda *_: SimpleNamespace(handle=0)),
        (driver_calls, "_function", lambda name: functions.get(name, functions[""])),
        (launch, "_resident", lambda *_: 1),
        (launch, "default_stream", lambda: None),
        (launch, "launch", lambda *_: None),
        (encoded, "load", _encoded_on_the_host),
        (pipeline, "laid_out", _finding_rows(pipeline.laid_out)),
        (pipeline_inputs, "derived", _derived_on_the_host),
        (ready_pipeline, "starting", _starting_on_the_host),
    ]
    for place, name, other in replaced:
        setattr(place, name, other)
    device._of_thread.has_device = True  # as on a thread that has run something


def _finding_rows(laid_out: Callable[..., Any]) -> Callable[..., Any]:
    """Have the kernels, which do nothing, find `FOUND` rows or groups: these stand in the buffers that a run begins with."""

    def laid_out_with_rows(*given: Any) -> Any:
        ready = laid_out(*given)
        words, sink = ready.launches.blank.memory.view(np.int64), ready.sink
        if sink.picking is not None:
            words[sink.picking.state.start // 8] = FOUND
        elif sink.counter is not None:
            words[sink.counter.start // 8] = min(FOUND, sink.lists[0].length)
        elif sink.out_i.length > 1:
            rows = words[sink.out_i.start // 8 :][: sink.out_i.length - 1].reshape(-1, sink.groups)
            rows[:, :FOUND] = 1
        return ready

    return laid_out_with_rows


def _derived_on_the_host(expr: Any, column: Any, held: Column, context: Any) -> Any:
    """Have an expression be false, or an empty text, in each row."""
    from fuseline.operators.gpu.pipeline.derived_columns import truths
    from fuseline.plan.types import Kind
    from fuseline.storage.columns.encode import encode

    if expr.type.kind is Kind.BOOLEAN:
        return truths(held)
    encoded = encode(pa.array([""] * held.size()).dictionary_encode(), expr.type)
    assert encoded is not None
    return replace(encoded, codes=_on_device(encoded.codes))


def _starting_on_the_host(encoded: Any) -> float:
    codes = encoded.codes.data().memory.view(f"u{encoded.encoding.width}")[: encoded.rows]
    return float((codes[1:] != codes[:-1]).mean()) if (codes[1:] >= codes[:-1]).all() else 0.0


def _on_device(codes: Any) -> Column:
    return Column(INT64, len(codes), HostBuffer.to_device(codes), None, 0, 0, [])


def _encoded_on_the_host(
    scan: Any, missing: Sequence[str], context: Any
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    from fuseline.operators.cpu.table import to_physical
    from fuseline.storage.columns.cache import NO_ENCODING, kernel_key, plain_key
    from fuseline.storage.columns.encode import encode

    types = {source: column.type for column, source in zip(scan.made, scan.sources, strict=True)}
    made, left = {}, []
    for source in missing:
        values = pq.read_table(scan.table.files[0].path, columns=[source]).column(0)
        values = values.combine_chunks()
        if types[source].kind == "VARCHAR":
            values = values.dictionary_encode()
        column = encode(to_physical(values, types[source]), types[source])
        if (
            column is None
        ):  # of many different texts: where they lie is asked for, but not what they are
            context.cache.put(kernel_key(scan, source, "gpu"), NO_ENCODING, 0)
            plain = idle_libcudf.zeros(idle_libcudf.STRING, len(values))
            context.cache.put(plain_key(scan, source, "gpu"), plain, 0)
            left.append(source)
            continue
        made[source] = replace(column, codes=_on_device(column.codes))
        context.cache.put(kernel_key(scan, source, "gpu"), made[source], column.nbytes)
    yield made, left


def hot_and_new_calls(
    folder: Path, names: Sequence[str], scale: float
) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many functions TPC-H's queries of these names call after their first runs, and with new constants; `folder` has its tables."""
    import fuseline
    from benchmarks import tpch
    from benchmarks.tpch import parameters
    from tests.work import calls_of

    hot, new, texts = {}, {}, tpch.queries(scale)
    seen, others = (parameters.queries(scale, stream) for stream in (1, 2))
    kinds = "call", "c_call"
    with (
        TemporaryDirectory() as kernels,
        fuseline.connect("gpu", fuse="always", cache_dir=kernels) as opened,
    ):
        for path in folder.glob("*.parquet"):
            opened.read_parquet(str(path), path.stem)
        for name in names:
            text = texts[name]
            for _ in range(4):
                frame = opened.sql(text)
                frame.to_arrow()
            assert all(node.device == "gpu" for node in frame.profile.nodes)
            assert all(pipeline.receipt.fused for pipeline in frame.profile.pipelines)
            hot[name] = calls_of(lambda text=text: opened.sql(text).to_arrow(), kinds)
            for _ in range(2):
                opened.sql(seen[name]).to_arrow()
            text = others[name]
            new[name] = calls_of(lambda text=text: opened.sql(text).to_arrow(), kinds)
    return hot, new


if __name__ == "__main__":
    install()
    place, scale, *named = sys.argv[1:]
    print(json.dumps(hot_and_new_calls(Path(place), named, float(scale))))
