"""Shapes of programs: what differs in constants alone finds one kernel file, and what differs in anything else does not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline.codegen.cpu import emit_cpu, host_functions
from fuseline.codegen.cuda import device_kernels, emit_cuda
from fuseline.codegen.groups.accumulate import Accumulator
from fuseline.codegen.indexes.layers import Direct
from fuseline.codegen.kernel_fingerprint import shape, shares
from fuseline.codegen.loop import Apply, Guard, Machine, Name, Number
from fuseline.codegen.program import Program
from fuseline.codegen.typed_values import Parameter
from fuseline.storage.columns.encodings import REGISTER, EncodedColumn
from tests.compare import connected

from .index_programs import index, main_program

HOPPER = (9, 0)


def program(limit: int = 5, meaning: str = "a limit", step: str = "below") -> Program:
    """A join that goes on with rows below a constant."""
    made = main_program("inner", index(Direct, False))
    constant = Name("c0", Machine.I32)
    below = Apply("<", (constant, Number(100, Machine.I32)), Machine.BOOL)
    keep = Guard(below, step, 0.3)
    given = (Parameter("c0", Machine.I32, limit, meaning),)
    return replace(made, parameters=given, body=(*made.body, keep))


def never() -> str:
    raise AssertionError("the kernel is printed again")


def test_other_constants_have_the_same_shape() -> None:
    one, other = program(), program(7, "another one", "above")
    assert shape(one) == shape(other)
    assert hash(shape(one)) == hash(shape(other))


CHANGES: dict[str, Callable[[Program], Program]] = {
    "name": lambda p: replace(p, name="another"),
    "parameters": lambda p: replace(p, parameters=(Parameter("c0", Machine.I64, 5),)),
    "body": lambda p: replace(p, body=p.body[:-1]),
    "keep": lambda p: replace(p, keep=Name("keep", Machine.BOOL)),
    "names": lambda p: replace(p, names={c: f"{n}_2" for c, n in p.names.items()}),
    "width": lambda p: replace(p, inputs=tuple(replace(i, encoding=REGISTER) for i in p.inputs)),
    "nullable": lambda p: replace(p, inputs=tuple(replace(i, nullable=False) for i in p.inputs)),
    "rows": lambda p: replace(p, relations=tuple(replace(r, rows=7) for r in p.relations)),
    "count_bits": lambda p: replace(p, count_bits=8),
    "repeats": lambda p: replace(p, repeats=True),
    "elements": lambda p: replace(p, elements=()),
    "buffers": lambda p: replace(p, buffers=p.buffers[:0]),
    "fold": lambda p: with_accumulator(p, fold="min"),
    # Which equality of accumulators leaves out, though cells are as small as they allow
    "magnitude": lambda p: with_accumulator(p, magnitude=3),
    "positive": lambda p: with_accumulator(p, positive=True),
}


def with_accumulator(made: Program, **changes: Any) -> Program:
    first, *others = made.accumulators
    changed: Accumulator = replace(first, **changes)
    return replace(made, accumulators=(changed, *others))


@pytest.mark.parametrize("change", CHANGES)
def test_anything_else_makes_another_shape(change: str) -> None:
    assert shape(CHANGES[change](program())) != shape(program())


def test_estimates_are_apart() -> None:
    made = program()
    *before, guard = made.body
    assert isinstance(guard, Guard)
    other = replace(made, body=(*before, replace(guard, share=0.9)))
    assert shape(made) == shape(other)
    assert shares(made) != shares(other)


def test_a_cuda_kernel_is_printed_once(tmp_path: Path) -> None:
    first = device_kernels.kernel_file(program(), lambda: "a plan", tmp_path, HOPPER)
    again = device_kernels.kernel_file(program(7, "another one"), never, tmp_path, HOPPER)
    assert again is first
    assert again.source == emit_cuda.source(program(), "a plan")
    assert again.signature == emit_cuda.signature(program(7))
    with pytest.raises(AssertionError, match="again"):
        device_kernels.kernel_file(
            with_accumulator(program(), magnitude=3), never, tmp_path, HOPPER
        )
    with pytest.raises(AssertionError, match="again"):
        device_kernels.kernel_file(program(), never, tmp_path / "elsewhere", HOPPER)


def test_a_cpu_kernel_is_printed_once(tmp_path: Path) -> None:
    function, path = host_functions.compiled(program(), lambda: "a plan", tmp_path)
    assert host_functions.compiled(program(7, "another one"), never, tmp_path) == (function, path)
    assert function.file.source == emit_cpu.source(program(), "a plan")
    with pytest.raises(AssertionError, match="again"):
        host_functions.compiled(with_accumulator(program(), fold="min"), never, tmp_path)


def test_kernels_hold_no_columns(tmp_path: Path) -> None:
    """What the plan of a query and the known files keep does not keep a column that the cache lets go."""
    table = pa.table({"k": list(range(60_000)), "v": [i % 7 for i in range(60_000)]})
    others = {id(column) for column in encoded_columns()}
    with connected({"t": table}, fuse="always", cache_dir=tmp_path) as connection:
        frame = connection.sql("SELECT v, sum(k) FROM t WHERE k > 5 GROUP BY v")
        assert frame.to_arrow().num_rows == 7
        columns = [weakref.ref(c) for c in encoded_columns() if id(c) not in others]
        assert columns
        connection.cache.clear()
        gc.collect()
        assert not any(column() for column in columns)
        assert frame.to_arrow().num_rows == 7


def encoded_columns() -> list[Any]:
    return [
        each for each in gc.get_objects() if type(each) is EncodedColumn
    ]  # of a dead proxy isinstance() raises
