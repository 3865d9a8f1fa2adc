"""CUDA kernels without a GPU: the generated source runs in Python, a Python thread for each CUDA thread.

Shuffles, barriers, shared memory and atomics do what CUDA's do; registers are NumPy scalars, so that they wrap as they should.
Numba's own simulator knows no shuffles.  Functions that threads of a warp call where they may have parted find each thread alone.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from fuseline.codegen.cuda import emit_cuda, functions_cuda
from fuseline.codegen.cuda.accumulator_layout import WARP, layout
from fuseline.codegen.cuda.packed_counters import packed_words
from fuseline.codegen.groups.results import whole
from fuseline.codegen.indexes.layers import Buffer
from fuseline.codegen.loop import Machine
from fuseline.codegen.program import Program
from tests.codegen.block_threads import Block

SLOTS = 1 << 10  # of a hash table, which is enough for the groups of tests
I64_MAX = np.int64(2**63 - 1)
ALL_LANES = 0xFFFFFFFF
CONSTANTS = {n: v for n, v in vars(functions_cuda).items() if n.isupper()}
FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "min": min, "max": max, "or_": lambda a, b: a | b, "and_": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b, "exch": lambda a, b: b,
}  # fmt: skip


class Cuda:
    """The module that a kernel knows as `cuda`."""

    def __init__(self, blocks: int, threads: int, shared_bytes: int) -> None:
        self.blocks, self.threads, self.shared_bytes = blocks, threads, shared_bytes
        self.here = threading.local()
        self.lock = threading.Lock()
        self.shared = SimpleNamespace(array=self._shared)
        self.atomic = SimpleNamespace(
            cas=self._compare_and_swap, **{name: self._atomic(fold) for name, fold in FOLDS.items()}
        )
        self.blockDim = SimpleNamespace(x=np.int32(threads))

    @property
    def threadIdx(self) -> Any:  # noqa: N802 - CUDA's name
        return SimpleNamespace(x=np.int32(self.here.thread))

    @staticmethod
    def jit(**options: Any) -> Any:
        """A device function is one of Python."""
        return lambda function: function

    def grid(self, dimensions: int) -> Any:
        return np.int64(self.here.number * self.threads + self.here.thread)

    def gridsize(self, dimensions: int) -> Any:
        return np.int64(self.blocks * self.threads)

    def syncthreads(self) -> None:
        self.here.block.barrier.wait()

    def syncwarp(self) -> None:
        self.here.block.warps[self.here.thread // WARP].wait()

    def shfl_down_sync(self, mask: int, value: Any, offset: int) -> Any:
        block, thread = self.here.block, self.here.thread
        barrier = block.warps[thread // WARP]
        block.registers[thread] = value
        barrier.wait()
        other = thread + offset
        found = block.registers[other] if other // WARP == thread // WARP else value
        barrier.wait()
        return found

    def shfl_up_sync(self, mask: int, value: Any, offset: int) -> Any:
        lane = self.here.thread % WARP - offset
        return self.shfl_sync(mask, value, lane if lane >= 0 else self.here.thread % WARP)

    @staticmethod
    def selp(condition: Any, yes: Any, no: Any) -> Any:
        assert type(yes) is type(no), (yes, no)
        return yes if condition else no

    def activemask(self) -> Any:
        return np.int32(np.uint32(1 << self.here.thread % WARP).view(np.int32))

    def lanemask_lt(self) -> Any:
        return np.int32((1 << self.here.thread % WARP) - 1)

    @property
    def laneid(self) -> Any:
        return np.int32(self.here.thread % WARP)

    def ballot_sync(self, mask: Any, vote: Any) -> Any:
        """The votes of a warp where all lanes are asked for, else of a thread alone."""
        if int(mask) != ALL_LANES:
            return mask if vote else np.int32(0)
        block, thread = self.here.block, self.here.thread
        barrier = block.warps[thread // WARP]
        block.registers[thread] = bool(vote)
        barrier.wait()
        first = thread // WARP * WARP
        bits = sum(block.registers[first + lane] << lane for lane in range(WARP))
        barrier.wait()
        return np.uint32(bits).view(np.int32)

    @staticmethod
    def popc(bits: Any) -> Any:
        return np.int32((int(bits) & 0xFFFFFFFF).bit_count())

    @staticmethod
    def clz(bits: Any) -> Any:
        return np.int32(WARP - (int(bits) & 0xFFFFFFFF).bit_length())

    @staticmethod
    def ffs(bits: Any) -> Any:
        low = int(bits) & 0xFFFFFFFF
        return np.int32((low & -low).bit_length())

    def shfl_sync(self, mask: Any, value: Any, lane: Any) -> Any:
        """The value of a lane where all lanes are asked, else that of a thread alone."""
        if int(mask) != ALL_LANES:
            return value
        block, thread = self.here.block, self.here.thread
        barrier = block.warps[thread // WARP]
        block.registers[thread] = value
        barrier.wait()
        found = block.registers[thread // WARP * WARP + int(lane)]
        barrier.wait()
        return found

    def _shared(self, shape: int, machine: Any) -> Any:
        return self.here.block.memory.view(machine)

    def _atomic(self, fold: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        def change(array: Any, index: Any, value: Any) -> Any:
            assert array.dtype.type is type(value), (array.dtype, value)
            assert int(index) < len(array)
            with self.lock:
                old = array[int(index)]
                array[int(index)] = fold(old, value)
            return old

        return change

    def _compare_and_swap(self, array: Any, index: Any, old: Any, value: Any) -> Any:
        assert array.dtype.type is type(old) is type(value)
        with self.lock:
            held = array[int(index)]
            if held == old:
                array[int(index)] = value
        return held

    def launch(self, kernel: Callable[..., None], arguments: Sequence[Any]) -> None:
        failed: list[BaseException] = []
        for number in range(self.blocks):
            block = Block(self.threads, self.shared_bytes)

            def one(thread: int, number: int = number, block: Block = block) -> None:
                self.here.number, self.here.block, self.here.thread = number, block, thread
                with np.errstate(all="ignore"):
                    kernel(*arguments)

            failed += block.run(one)
        if failed:
            raise next(
                (e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0]
            )


def run(
    program: Program,
    columns: Sequence[Any],
    rows: int,
    blocks: int = 2,
    memory: Mapping[str, Any] = MappingProxyType({}),
    groups: int | None = None,
) -> tuple[list[Any], bool]:
    """Run a program's CUDA kernel; arguments and answer are those of `codegen.host.run`.

    `groups`: how many a hash table has room for, which `memory` then holds, or the group keys' relation has rows.  A packed
    count that outgrew its bits is a doubt here.
    """
    where = layout(program) if groups is None else layout(program).with_groups(groups)
    arrays = dict(zip(("out_i", "out_f", "out_n"), blank(where), strict=True))
    shared = shared_words(where)
    given = {**memory, **arrays, **shared, "groups": np.int64(where.groups)}
    _launch(program, columns, rows, blocks, given)
    lost = unpack(where, shared, arrays["out_n"])
    count = where.groups
    places = where.results()
    found = []
    for number in range(len(program.accumulators)):
        array, row = places[number]
        found.append(arrays[array][row * count : (row + 1) * count])
    return found, bool(arrays["out_i"][-1]) or lost != 0


def assert_accumulators(
    program: Program,
    columns: Sequence[Any],
    rows: int,
    outcome: Any,
    memory: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Run a program's CUDA kernel; its accumulators must be those of a run on the CPU, group by group."""
    grouping, groups, tables = program.grouping, None, {}
    if grouping is not None and grouping.hashed:
        groups = SLOTS
        tables = {"keys": np.full(SLOTS, -1), "state": np.zeros(1, np.int64)}
    elif grouping is not None and grouping.row is not None:
        groups = grouping.groups
    arrays, doubt = run(program, columns, rows, 2, {**memory, **tables}, groups)
    assert doubt == outcome.doubt
    order: Any = slice(None) if outcome.numbers is None else outcome.numbers
    if tables:
        slots = {int(n): slot for slot, n in enumerate(tables["keys"]) if n >= 0}
        assert slots.keys() == set(outcome.numbers.tolist())
        order = [slots[n] for n in outcome.numbers.tolist()]
    for cell in layout(program).cells:
        expected, found = (_joined([a[n] for n in cell.numbers]) for a in (outcome.arrays, arrays))
        if found.dtype == np.float64:
            np.testing.assert_allclose(found[order], expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found[order], expected)


def list_rows(
    program: Program, columns: Sequence[Any], rows: int, room: int, memory: Mapping[str, Any]
) -> tuple[list[Any], int]:
    """Run a kernel that lists rows; return the lists, and how many rows there would be."""
    found = {f"out_row{i}": np.full(room, -7, np.int32) for i in program.rows_out}
    counter = np.zeros(1, np.int64)
    results = {"counter": counter, "out_i": np.zeros(1, np.int64), "out_f": np.zeros(0)}
    _launch(program, columns, rows, 2, {**memory, **found, **results})
    return list(found.values()), int(counter[0])


def memory(buffers: Sequence[Buffer]) -> dict[str, Any]:
    """Buffers of an index as they are before its build; what needs no filling holds garbage."""
    return {b.name: np.full(b.length, 12345 if b.fill is None else b.fill, b.type) for b in buffers}


def _launch(
    program: Program, columns: Sequence[Any], rows: int, blocks: int, given: Mapping[str, Any]
) -> None:
    """Run a kernel with its arguments in the order of its signature."""
    where = layout(program)
    cuda = Cuda(blocks, where.threads, where.shared_bytes)
    source = emit_cuda.source(program, "")
    lines = [line for line in source.splitlines() if "import" not in line]
    namespace: dict[str, Any] = {"np": np, "cuda": cuda, **functions(cuda), **FUNCTIONS}
    exec(compile("\n".join(lines), program.name, "exec"), namespace)
    known: dict[str, Any] = {"rows": np.int64(rows), **given}
    signature = emit_cuda.signature(program)
    pointers = [name for name, kind in signature if kind.startswith("*")]
    known |= zip(pointers, _pointers(program, columns), strict=False)
    known |= {p.name: s for p, s in zip(program.parameters, _scalars(program), strict=True)}
    known |= {t.name: a for t, a in zip(program.tables, _tables(program), strict=True)}
    cuda.launch(namespace[program.name], [known[name] for name, _ in signature])


def functions(cuda: Cuda) -> dict[str, Callable[..., Any]]:
    """The device functions that only need the module `cuda`, as Python runs them."""
    found: dict[str, Any] = {}
    for name, function in vars(functions_cuda).items():
        if hasattr(function, "py_func"):
            plain = function.py_func
            found[name] = FunctionType(plain.__code__, {"np": np, "cuda": cuda, **CONSTANTS})
    found["both_bits"] = _both_bits
    for function in found.values():
        function.__globals__.update(found | {"load_codes": _load_codes, "unite": cuda.atomic.or_})
    return found


def _both_bits(word: Any, first: Any, second: Any) -> bool:
    bits = int(word) >> (int(first) & 31) & int(word) >> (int(second) & 31)
    return bits & 1 != 0


def blank(where: Any) -> tuple[Any, Any, Any]:
    """Result arrays of identities, one element a group and accumulator, and the doubts after the integers of 64 bits."""
    integers = np.repeat(np.array(where.identities("out_i"), np.int64), where.groups)
    doubles = np.repeat(np.array(where.identities("out_f"), np.float64), where.groups)
    short = np.repeat(np.array(where.identities("out_n"), np.int32), where.groups)
    return np.append(integers, 0), np.append(doubles, 0.0), np.append(short, np.int32(0))


def shared_words(where: Any) -> dict[str, Any]:
    """The words of packed counts, and what was lost of them."""
    words = sum(packed_words(where.groups, cell.packed) for cell in where.packed)
    return {"packed": np.zeros(words, np.int32), "lost": np.zeros(1, np.int64)}


def unpack(where: Any, shared: Mapping[str, Any], out_n: Any) -> int:
    """Give packed counts their places among the results; return how many rows are missing in them."""
    missing, start = int(shared["lost"][0]), 0
    for cell in where.packed:
        end = start + packed_words(where.groups, cell.packed)
        counts = shared["packed"][start:end].view(f"u{cell.packed // 8}")[: where.groups]
        out_n[cell.outs[0] * where.groups :][: where.groups] = counts
        missing, start = missing - int(counts.sum(dtype=np.int64)), end
    return missing


def _pointers(program: Program, columns: Sequence[Any]) -> list[Any]:
    """The columns as words; what lies behind the last row is garbage."""
    words = [t.removeprefix("*") for _, t in emit_cuda.signature(program) if t.startswith("*")]
    found = []
    for column, word in zip(columns, words, strict=False):
        data = np.ascontiguousarray(column).view(np.uint8).tobytes()
        found.append(np.frombuffer(data + b"\xff" * (64 - len(data) % 64), word))
    return found


def _scalars(program: Program) -> list[Any]:
    return [getattr(np, p.machine.value)(p.value) for p in program.parameters]


def _tables(program: Program) -> list[Any]:
    return [
        t.array.astype(np.uint8 if t.machine is Machine.BOOL else t.machine.value)
        for t in program.tables
    ]


def _absolute(x: Any) -> Any:
    return -x if x < 0.0 else x


def _order_of_double(x: Any) -> Any:
    if x != x:
        return I64_MAX
    bits = np.float64(x + 0.0).view(np.int64)
    return bits ^ I64_MAX if bits < 0 else bits


def _load_codes(codes: Any, group: Any) -> tuple[Any, ...]:
    return tuple(codes[8 * int(group) : 8 * int(group) + 8])


FUNCTIONS: dict[str, Any] = {
    "absolute": _absolute, "order_of_double": _order_of_double, "math": math,
    "load_pair": lambda words, pair: (words[2 * int(pair)], words[2 * int(pair) + 1]),
    "double_of_bits": lambda bits: np.float64(struct.unpack("d", struct.pack("Q", int(bits) & (2**64 - 1)))[0]),
    "float_of_bits": lambda bits: np.float32(struct.unpack("f", struct.pack("I", int(bits) & 0xFFFFFFFF))[0]),
}  # fmt: skip


def _joined(parts: list[Any]) -> Any:
    """A sum of one part, or of two."""
    return whole(*parts) if len(parts) > 1 else parts[0]
