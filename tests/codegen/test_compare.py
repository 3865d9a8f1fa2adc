"""Comparing codes with a translated constant is comparing values with the constant, for each code and constant."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.cpu.emit_cpu import select
from fuseline.codegen.emit import text
from fuseline.codegen.expressions.compare import compare_with_constant
from fuseline.codegen.loop import Machine, Name
from fuseline.codegen.program_builder import ProgramBuilder
from fuseline.codegen.ranges import I32_MAX
from fuseline.codegen.typed_values import Input
from fuseline.plan.expr import new_column
from fuseline.plan.types import BIGINT
from fuseline.storage.columns.encodings import TRUTHS, Narrow

OPERATORS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "is_distinct": operator.ne, "is_not_distinct": operator.eq,
}  # fmt: skip


def _holds(name: str, source: Input, code: int, constant: int, valid: bool | None) -> bool:
    """Evaluate the term for one code, as Python."""
    kernel = ProgramBuilder(SimpleNamespace())  # type: ignore[arg-type]
    register = Name("code", source.register)
    row_valid = None if valid is None else Name("valid", Machine.BOOL)
    value = compare_with_constant(name, register, source, constant, row_valid, kernel)
    words: dict[str, Any] = {
        p.name: getattr(np, p.machine.value)(p.value) for p in kernel.parameters
    }
    words |= {"np": np, "code": getattr(np, source.register.value)(code), "valid": valid}
    return bool(eval(text(value.term, select), words))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(("base", "step"), [(0, 1), (-7, 3), (10, 10), (2**62, 5), (-(2**63), 1)])
def test_every_code_and_constant(name: str, base: int, step: int) -> None:
    source = Input(new_column("c", BIGINT), Narrow(base, step, 1), False, 4)
    constants = [base + k for k in range(-2 * step - 1, 6 * step + 2)] + [-(2**63), 2**63 - 1, 0]
    for constant in constants:
        for code in range(4):
            expected = OPERATORS[name](base + step * code, constant)
            assert _holds(name, source, code, constant, None) == expected, (code, constant)


@pytest.mark.parametrize(("name", "expected"), [("is_distinct", True), ("is_not_distinct", False)])
def test_null_is_distinct_from_a_constant(name: str, expected: bool) -> None:
    source = Input(new_column("c", BIGINT), TRUTHS, True, 4)
    assert _holds(name, source, 0, 0, False) == expected
    assert _holds("eq", source, 0, 0, False) is False


@pytest.mark.parametrize("codes", [I32_MAX, I32_MAX + 1, I32_MAX + 2, 2**32])
def test_a_constant_beyond_the_last_code_of_31_bits(codes: int) -> None:
    source = Input(new_column("c", BIGINT), Narrow(0, 1, 4), False, codes)
    assert _holds("lt", source, codes - 1, 2**40, None)
    assert not _holds("ge", source, codes - 1, codes, None)
    assert _holds("eq", source, codes - 1, codes - 1, None)
