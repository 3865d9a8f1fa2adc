"""CUDA kernels without a GPU: the generated source runs in Python, a Python thread for each CUDA thread.

Shuffles, barriers, shared memory and atomics do what CUDA's do; registers are NumPy scalars, so that they wrap as they should.
Numba's own simulator knows no shuffles.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fuseline.codegen import emit_cuda
from fuseline.codegen.loop import Machine
from fuseline.codegen.places import WARP, layout
from fuseline.codegen.steps import Program

I64_MAX = np.int64(2**63 - 1)
FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "or_": lambda a, b: a | b,
    "and_": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
}


class _Block:
    """What the threads of a block share."""

    def __init__(self, threads: int, shared_bytes: int) -> None:
        self.barrier = threading.Barrier(threads)
        self.warps = [threading.Barrier(WARP) for _ in range(threads // WARP)]
        self.registers: list[Any] = [None] * threads
        self.memory = np.full(-(-max(shared_bytes, 8) // 8), -(2**62) + 12345)  # garbage at first


class _Cuda:
    """The module that a kernel knows as `cuda`."""

    def __init__(self, blocks: int, threads: int, shared_bytes: int) -> None:
        self.blocks, self.threads, self.shared_bytes = blocks, threads, shared_bytes
        self.here = threading.local()
        self.lock = threading.Lock()
        self.shared = SimpleNamespace(array=self._shared)
        self.atomic = SimpleNamespace(**{name: self._atomic(fold) for name, fold in FOLDS.items()})
        self.blockDim = SimpleNamespace(x=np.int32(threads))

    @property
    def threadIdx(self) -> Any:  # noqa: N802 - CUDA's name
        return SimpleNamespace(x=np.int32(self.here.thread))

    def grid(self, dimensions: int) -> Any:
        return np.int64(self.here.number * self.threads + self.here.thread)

    def gridsize(self, dimensions: int) -> Any:
        return np.int64(self.blocks * self.threads)

    def syncthreads(self) -> None:
        self.here.block.barrier.wait()

    def shfl_down_sync(self, mask: int, value: Any, offset: int) -> Any:
        block, thread = self.here.block, self.here.thread
        barrier = block.warps[thread // WARP]
        block.registers[thread] = value
        barrier.wait()
        other = thread + offset
        found = block.registers[other] if other // WARP == thread // WARP else value
        barrier.wait()
        return found

    @staticmethod
    def selp(condition: Any, yes: Any, no: Any) -> Any:
        assert type(yes) is type(no), (yes, no)
        return yes if condition else no

    def _shared(self, shape: int, machine: Any) -> Any:
        return self.here.block.memory.view(machine)

    def _atomic(self, fold: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], None]:
        def change(array: Any, index: Any, value: Any) -> None:
            assert array.dtype.type is type(value), (array.dtype, value)
            assert int(index) < len(array)
            with self.lock:
                array[int(index)] = fold(array[int(index)], value)

        return change

    def launch(self, kernel: Callable[..., None], arguments: Sequence[Any]) -> None:
        failed: list[BaseException] = []

        def one(number: int, block: _Block, thread: int) -> None:
            self.here.number, self.here.block, self.here.thread = number, block, thread
            try:
                with np.errstate(all="ignore"):
                    kernel(*arguments)
            except BaseException as error:
                failed.append(error)
                block.barrier.abort()
                for barrier in block.warps:
                    barrier.abort()

        for number in range(self.blocks):
            block = _Block(self.threads, self.shared_bytes)
            members = [
                threading.Thread(target=one, args=(number, block, t)) for t in range(self.threads)
            ]
            for member in members:
                member.start()
            for member in members:
                member.join()
        if failed:
            raise next(
                (e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0]
            )


def run(
    program: Program, columns: Sequence[Any], rows: int, blocks: int = 2
) -> tuple[list[Any], bool]:
    """Run a program's CUDA kernel; arguments and answer are those of `codegen.host.run`."""
    where = layout(program)
    cuda = _Cuda(blocks, where.threads, where.shared_bytes)
    source = emit_cuda.source(program, "")
    lines = [line for line in source.splitlines() if "import" not in line]
    namespace: dict[str, Any] = {"np": np, "cuda": cuda, **FUNCTIONS}
    exec(compile("\n".join(lines), program.name, "exec"), namespace)
    out_i, out_f = blank(where)
    cuda.launch(
        namespace[program.name],
        [
            np.int64(rows),
            *_pointers(program, columns),
            *_scalars(program),
            *_tables(program),
            out_i,
            out_f,
        ],
    )
    arrays = {"out_i": out_i, "out_f": out_f}
    count = where.groups
    places = where.results()
    found = []
    for number in range(len(program.accumulators)):
        array, row = places[number]
        found.append(arrays[array][row * count : (row + 1) * count])
    return found, bool(out_i[-1])


def blank(where: Any) -> tuple[Any, Any]:
    """Result arrays of identities, one element a group and accumulator, and the doubts after the integers."""
    integers = np.repeat(np.array(where.identities("out_i"), np.int64), where.groups)
    doubles = np.repeat(np.array(where.identities("out_f"), np.float64), where.groups)
    return np.append(integers, 0), np.append(doubles, 0.0)


def _pointers(program: Program, columns: Sequence[Any]) -> list[Any]:
    """The columns as words; what lies behind the last row is garbage."""
    words = [t.removeprefix("*") for _, t in emit_cuda.signature(program) if t.startswith("*")]
    found = []
    for column, word in zip(columns, words, strict=False):
        data = np.ascontiguousarray(column).view(np.uint8).tobytes()
        found.append(np.frombuffer(data + b"\xff" * (64 - len(data) % 64), word))
    return found


def _scalars(program: Program) -> list[Any]:
    return [getattr(np, p.machine.value)(p.value) for p in program.kernel.parameters]


def _tables(program: Program) -> list[Any]:
    return [
        t.array.astype(np.uint8 if t.machine is Machine.BOOL else t.machine.value)
        for t in program.kernel.tables
    ]


def _absolute(x: Any) -> Any:
    return -x if x < 0.0 else x


def _order_of_double(x: Any) -> Any:
    if x != x:
        return I64_MAX
    bits = np.float64(x + 0.0).view(np.int64)
    return bits ^ I64_MAX if bits < 0 else bits


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "absolute": _absolute,
    "order_of_double": _order_of_double,
    "load_pair": lambda words, pair: (words[2 * int(pair)], words[2 * int(pair) + 1]),
    "double_of_bits": lambda bits: np.float64(struct.unpack("d", struct.pack("Q", int(bits)))[0]),
    "float_of_bits": lambda bits: np.float32(
        struct.unpack("f", struct.pack("I", int(bits) & 0xFFFFFFFF))[0]
    ),
}
