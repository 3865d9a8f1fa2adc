"""Expressions over a few rows, one row after the other in Python's own numbers: to prepare arrays for them takes longer.

A value is an `int` (of a DECIMAL the unscaled one), a `float`, a `bool`, or None for NULL.  Not every expression has such a form,
and not every value is found in it: what raises there, or has to do with NaN, arrays decide (`Unsure`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..codegen.groups.results import Registers, arrow_array
from ..plan.expr import Call, Case, Cast, Column, ColumnRef, Expr, Literal, new_column, physical
from ..plan.types import BOOLEAN, DataType, Kind
from ..storage.columns.encodings import Array

MOST_ROWS = 64  # of so many, arrays take as long

# The values of a row's columns -> that of an expression
RegisterRow: TypeAlias = Sequence[Any]  # a row's values as in registers, None for NULL
Step: TypeAlias = Callable[[RegisterRow], Any]
Values: TypeAlias = list[Any]  # of a column, as in registers
Operate: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class RowSteps:
    """What a node computes of which columns, which it passes on, and what is the same in all rows; `steps` is None where arrays have to do it."""

    read: tuple[Column, ...]
    passed: tuple[tuple[Column, Column], ...]
    constants: tuple[tuple[Column, DataType, Any], ...]
    steps: tuple[tuple[Column, Step], ...] | None

    @classmethod
    def of(cls, items: Sequence[tuple[Column, Expr]]) -> RowSteps:
        literals = [(c, e) for c, e in items if isinstance(e, Literal) and _lies(e.type)]
        wanted = [i for i in items if not isinstance(i[1], ColumnRef) and i not in literals]
        read = tuple(set().union(*(columns_read(e) for _, e in wanted)))
        places = {column.id: place for place, column in enumerate(read)}
        found = [(c, compiled(e, places) if is_known(e.type) else None) for c, e in wanted]
        steps = tuple((column, step) for column, step in found if step is not None)
        passed = tuple((c, e.column) for c, e in items if isinstance(e, ColumnRef))
        constants = tuple((c, e.type, physical(e.value, e.type)) for c, e in literals)
        return cls(read, passed, constants, steps if len(steps) == len(found) else None)

    @classmethod
    def condition(cls, predicate: Expr) -> RowSteps:
        """One step, which says of a row whether it is kept."""
        return cls.of([(new_column("kept", BOOLEAN), predicate)])


class Unsure(Exception):
    """A value that is not found row by row: an error that is to be raised in words, or one of NaN."""


def compiled(expr: Expr, places: Mapping[int, int]) -> Step | None:
    """Return what computes `expr` of a row, in which a column has the place that its id has in `paths`; None without that form.

    NULL has one whichever its type is, as an argument: results are to be of types that are known.
    """
    if not is_known(expr.type) and not (isinstance(expr, Literal) and expr.value is None):
        return None
    match expr:
        case Literal():
            constant = physical(expr.value, expr.type)
            return lambda row: constant
        case ColumnRef(column=column):
            place = places[column.id]
            return lambda row: row[place]
        case Cast(safe=False, operand=operand):
            made = _converted(operand.type, expr.type)
            inner = compiled(operand, places)
            return None if made is None or inner is None else _through(made, inner)
        case Call(args=args):
            make = CALLS.get(expr.function)
            steps = [compiled(arg, places) for arg in args]
            known = [step for step in steps if step is not None]
            return None if make is None or len(known) < len(steps) else make(expr, known)
        case Case():
            return _case(expr, places)
    return None


def columns_read(expr: Expr) -> set[Column]:
    """Return the columns of which an expression reads values."""
    found = {expr.column} if isinstance(expr, ColumnRef) else set()
    return found.union(*(columns_read(child) for child in expr.children))


def is_known(data_type: DataType) -> bool:
    """Whether there are such values of a type: those of 64 bits without a sign, and floats of 32 bits, are other than Python's."""
    if data_type.is_integer:
        return data_type.kind is not Kind.UBIGINT
    return data_type.is_decimal or data_type.kind in (Kind.DOUBLE, Kind.BOOLEAN)


def values_of(array: pa.Array) -> Values:
    """The values of a column in the types of results, of decimals the unscaled integers."""
    if not pa.types.is_decimal128(array.type):
        found: Values = array.to_pylist()
        return found
    words = np.frombuffer(array.buffers()[1], np.uint64)
    limbs = words[2 * array.offset : 2 * (array.offset + len(array))]
    highs = limbs[1::2].view(np.int64).tolist()
    found = [(h << 64) + low for low, h in zip(limbs[0::2].tolist(), highs, strict=True)]
    return with_nulls(found, np.asarray(array.is_valid())) if array.null_count else found


def with_nulls(values: Values, valid: Array) -> Values:
    return [v if there else None for v, there in zip(values, valid.tolist(), strict=True)]


def column_of(values: Values, data_type: DataType) -> Registers | pa.Array:
    """A column of such values, of integers beyond 64 bits in the type of results."""
    valid = None
    if None in values:
        valid = np.array([v is not None for v in values])
        values = [0 if v is None else v for v in values]
    if data_type.is_float:
        return Registers(np.array(values, np.float64), valid, data_type)
    try:
        return Registers(np.array(values, np.int64), valid, data_type)
    except OverflowError:
        return arrow_array(np.array(values, object), valid, data_type, None)


def _lies(data_type: DataType) -> bool:
    """Whether a constant of a type is a number, or text."""
    return (is_known(data_type) and not data_type.is_wide_decimal) or data_type.kind in (
        Kind.DATE,
        Kind.VARCHAR,
    )


# Casts

Convert: TypeAlias = Callable[[Any], Any]


def _through(made: Convert, inner: Step) -> Step:
    def step(row: RegisterRow) -> object:
        value = inner(row)
        return None if value is None else made(value)

    return step


def _converted(source: DataType, target: DataType) -> Convert | None:
    """A conversion of numbers that rounds no decimal."""
    if source == target:
        return lambda value: value
    if Kind.BOOLEAN in (source.kind, target.kind) or source.is_float:
        return None
    if target.is_float:
        return _to_double(source)
    shift = target.scale - source.scale
    if shift < 0:
        return None
    factor, check = 10**shift, checked(target)
    return lambda value: check(value * factor)


def _to_double(source: DataType) -> Convert:
    """As arrays do it, digit for digit (`cpu.functions.kernels_decimals`)."""
    scale = 10**source.scale
    if scale > 1:
        return lambda value: value / scale  # of integers, so rounded once
    return float


# Functions


def checked(data_type: DataType) -> Convert:
    low, high = data_type.integer_range

    def check(value: int) -> int:
        if low <= value <= high:
            return value
        raise Unsure

    return check


def _of_two(operate: Operate) -> Callable[[Call, list[Step]], Step]:
    """What is NULL where an argument is; integers are checked against the type."""

    def make(call: Call, steps: list[Step]) -> Step:
        left, right = steps
        check = None if call.type.is_float else checked(call.type)

        def step(row: RegisterRow) -> object:
            a, b = left(row), right(row)
            if a is None or b is None:
                return None
            value = operate(a, b)
            return value if check is None else check(value)

        return step

    return make


def _toward_zero(a: int, b: int) -> int:
    if not b:
        raise Unsure
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _of_integers(operate: Operate) -> Callable[[Call, list[Step]], Step | None]:
    def make(call: Call, steps: list[Step]) -> Step | None:
        whole = all(arg.type.is_integer for arg in call.args)
        return _of_two(operate)(call, steps) if whole else None

    return make


def _quotient(call: Call, steps: list[Step]) -> Step | None:
    if not all(arg.type.is_float for arg in call.args):
        return None
    left, right = steps

    def step(row: RegisterRow) -> object:
        a, b = left(row), right(row)
        if a is None or b is None:
            return None
        if not b:
            raise Unsure
        return a / b

    return step


def _comparison(operate: Operate) -> Callable[[Call, list[Step]], Step]:
    def make(call: Call, steps: list[Step]) -> Step:
        left, right = steps

        def step(row: RegisterRow) -> object:
            a, b = left(row), right(row)
            if a is None or b is None:
                return None
            if isnan(a) or isnan(b):
                raise Unsure
            return operate(a, b)

        return step

    return make


def _decided_by(value: bool) -> Callable[[Call, list[Step]], Step]:
    """AND or OR: one argument of this value decides, else a NULL makes NULL."""

    def make(call: Call, steps: list[Step]) -> Step:
        def step(row: RegisterRow) -> object:
            unknown = False
            for argument in steps:
                found = argument(row)
                if found is value:
                    return value
                unknown = unknown or found is None
            return None if unknown else not value

        return step

    return make


def _negation(call: Call, steps: list[Step]) -> Step:
    if call.type.is_float:
        return _through(lambda value: -value, steps[0])
    check = checked(call.type)
    return _through(lambda value: check(-value), steps[0])


def _first_present(call: Call, steps: list[Step]) -> Step:
    def step(row: RegisterRow) -> object:
        for argument in steps:
            value = argument(row)
            if value is not None:
                return value
        return None

    return step


def _case(case: Case, places: Mapping[int, int]) -> Step | None:
    parts = [compiled(e, places) for e in (*case.conditions, *case.results, case.default)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    count, default = len(case.conditions), known[-1]
    branches = list(zip(known[:count], known[count:-1], strict=True))

    def step(row: RegisterRow) -> object:
        for condition, result in branches:
            if condition(row):
                return result(row)
        return default(row)

    return step


CALLS: dict[str, Callable[[Call, list[Step]], Step | None]] = {
    "add": _of_two(add),
    "sub": _of_two(sub),
    "mul": _of_two(mul),
    "div": _quotient,
    "int_div": _of_integers(_toward_zero),
    "mod": _of_integers(lambda a, b: a - b * _toward_zero(a, b)),
    "neg": _negation,
    "eq": _comparison(eq),
    "ne": _comparison(ne),
    "lt": _comparison(lt),
    "le": _comparison(le),
    "gt": _comparison(gt),
    "ge": _comparison(ge),
    "and": _decided_by(False),
    "or": _decided_by(True),
    "not": lambda call, steps: _through(lambda value: not value, steps[0]),
    "is_null": lambda call, steps: lambda row: steps[0](row) is None,
    "is_not_null": lambda call, steps: lambda row: steps[0](row) is not None,
    "coalesce": _first_present,
}
