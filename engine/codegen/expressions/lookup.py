"""Any expression over one column of few codes, as a table indexed by the code; what no kernel computes, evaluated beforehand.

The expression is evaluated once on the column's distinct values by the CPU backend, which makes every SQL function usable in
a kernel.  A string result becomes the code of a new sorted dictionary.  Where the column has many values but a piece of it few, as
the first two characters of a telephone number, the piece is evaluated on all rows, and what is made of it is the table.

Comparisons of text with constants, over the values of a dictionary: what tables of kernels are made of most often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from ...errors import FuselineError
from ...plan.arrow.arrow_arrays import array_from, null_as, truth_values
from ...plan.expr import Call, Cast, Column, ColumnRef, Expr, InList, Literal, columns_of
from ...plan.functions import COMPARISONS, STRICT
from ...plan.node import transform_up, walk
from ...plan.shapes.guards import computed, decided
from ...plan.shapes.plan_model import computed_over
from ...plan.types import BOOLEAN, Kind
from ...records import dataclass
from ...storage.columns.encodings import Array, numbers
from ..loop import Lookup, Machine, Number, Select, Term
from ..program_builder import ProgramBuilder
from ..ranges import I64_MAX, IntegerRange
from ..typed_values import Input, NotFusable, Value
from .compare import SIGNS

if TYPE_CHECKING:
    Fold: TypeAlias = Callable[[Expr, Input], pa.Array]
    _Columns: TypeAlias = tuple[Array, Machine, IntegerRange | None, pa.Array | None, Array | None]
    import pyarrow as pa


LOOKUP_LIMIT = 1 << 16  # codes of a column up to which an expression over it becomes a table
SHORT = 16  # characters of a piece of text that may have few values


def through_table(expr: Expr, kernel: ProgramBuilder, ranks: bool = False) -> Value | None:
    """Return `expr` as a table lookup; None unless it reads exactly one column, which has few codes.

    `ranks`: floats as places among the different ones, which are the `values` of what is returned.
    """
    read = columns_of(expr)
    if len(read) != 1:
        return None
    (column,) = read
    source = kernel.described(column)
    if source is None or not has_table(source, kernel):
        return None
    assert source.codes is not None
    nullable = kernel.validity(source) is not None
    make = partial(_table, source=source, nullable=nullable, fold=kernel.source.fold, ranks=ranks)
    return _value(computed_over(make, expr, expr.type), source, kernel)


def has_table(source: Input, kernel: ProgramBuilder) -> bool:
    """Whether an expression over a column becomes a table."""
    times = 1 if source.values is None else kernel.source.text_tables
    return source.codes is not None and source.codes <= times * LOOKUP_LIMIT


def beforehand(expr: Expr, kernel: ProgramBuilder) -> Value:
    """Have `expr` evaluated on all rows before the kernel runs, or a piece of it; raises `NotFusable` unless it reads one column."""
    from .translate import translate  # the two call each other

    read = columns_of(expr)
    if len(read) != 1:
        raise NotFusable(f"{_shown(expr)} reads {len(read)} columns and has no form in registers")
    (column,) = read
    reading = kernel.readings.get(column)
    if reading is None:
        raise NotFusable(f"{_shown(expr)} reads a computed column and has no form in registers")
    if isinstance(expr, ColumnRef):
        raise NotFusable(f'"{column.name}" ({column.type}) has no form in registers')
    made = _by_piece(expr, column, kernel)
    if made is not None:
        return made
    # Where there is no row, the value may be another one than NULL
    if reading.optional and not _is_strict(expr):
        raise NotFusable(f'{_shown(expr)} reads "{column.name}", which an outer join may not find')
    return translate(ColumnRef(kernel.derive(expr, reading)), kernel)


def _by_piece(expr: Expr, column: Column, kernel: ProgramBuilder) -> Value | None:
    """Have a piece of a text column evaluated on all rows, and return `expr` as a table of its values; None where that does not do."""
    from .translate import translate  # the two call each other

    piece = piece_of(expr)
    if piece is None:
        return None
    try:
        alias = kernel.derive(piece, kernel.readings[column])
    except NotFusable:
        return None  # of many values, too
    return translate(_over(expr, piece, ColumnRef(alias)), kernel)


def piece_of(expr: Expr) -> Expr | None:
    """Return the smallest expression within `expr` that makes short text of its only column, if it reads that nowhere else."""
    found = [node for node in walk(expr) if _is_short(node)]
    smallest = {a for a in found if not any(b != a and b in walk(a) for b in found)}
    piece = smallest.pop() if smallest else None
    if piece is None or columns_of(_over(expr, piece, Literal(None, piece.type))):
        return None
    return piece


def _over(expr: Expr, piece: Expr, made: Expr) -> Expr:
    return transform_up(expr, lambda node: made if node == piece else None)


def _is_short(node: Expr) -> bool:
    match node:
        case Call("substring", (_, _, Literal(value=int(length)))):
            return abs(length) <= SHORT and _is_strict(node)
        case Call("left" | "right", (_, Literal(value=int(length)))):
            return abs(length) <= SHORT and _is_strict(node)
        case Call("split_part"):
            return _is_strict(node)
    return False


def _is_strict(node: Expr) -> bool:
    """Whether an expression is that of a text column alone and gives NULL for NULL."""
    match node:
        case Call(function=name, args=(text, *others)) if name in STRICT:
            return _is_strict(text) and all(isinstance(o, Literal) for o in others)
        case Cast(operand):
            return _is_strict(operand)
    return isinstance(node, ColumnRef) and node.type.kind is Kind.VARCHAR


@dataclass(frozen=True, slots=True)
class _Table:
    """The values of an expression by code, when they are valid, and what else the kernel is made for."""

    array: Array
    valid: Array | None
    form: tuple[Machine, IntegerRange | None, int, pa.Array | None]


_ARRAY, _VALID, _FORM = map(attrgetter, ("array", "valid", "form"))


def _table(expr: Expr, source: Input, nullable: bool, fold: Fold, ranks: bool = False) -> _Table:
    if source.values is not None and len(source.values) == source.codes:
        known = tested_text(expr, source.values)
        if known is not None:
            return _truths(known, nullable)
    try:
        result = fold(expr, source)
    except FuselineError as error:
        # On a value that may not even occur: the operators decide on the rows that do
        shown = f'{_shown(expr)} fails on a value of "{source.column.name}"'
        raise NotFusable(f"{shown}: {error}") from error
    if not nullable:
        result = result.slice(0, source.codes)  # without what NULL gives
    array, machine, interval, values, valid = _columns(expr, result)
    if ranks:
        array, machine, interval, values = _ranks(array)
    step = 1 if interval is None or values is not None else _step(array, interval)
    return _Table(array, valid, (machine, interval, step, values))


def _truths(known: pa.Array, nullable: bool) -> _Table:
    """Return the table of a condition that is NULL for NULL alone, which comes last."""
    import numpy as np

    found = truth_values(known)
    form = Machine.BOOL, None, 1, None
    if not nullable:
        return _Table(found, None, form)
    return _Table(np.append(found, False), np.append(np.ones(len(found), np.bool_), False), form)


def _has_nulls(table: _Table) -> bool:
    return table.valid is not None


def _value(table: Literal, source: Input, kernel: ProgramBuilder) -> Value:
    index: Term = kernel.code(source)
    valid_row = kernel.validity(source)
    if valid_row is not None:
        assert source.codes is not None
        last = Number(source.codes, index.type)  # the entry that NULL gives
        index = Select(valid_row, index, last, index.type)
    machine, interval, step, values = decided(_FORM, table)
    array = computed(_ARRAY, table, data_type=table.type)
    term: Term = Lookup(kernel.table(array, machine), index, machine)
    ok: Term | None = None
    if decided(_has_nulls, table):
        valid = computed(_VALID, table, data_type=BOOLEAN)
        ok = Lookup(kernel.table(valid, Machine.BOOL), index, Machine.BOOL)
    return Value(term, ok, interval, values, step=step)


def _ranks(floats: Array) -> tuple[Array, Machine, IntegerRange, pa.Array]:
    """Number floats by the order of SQL, in which NaN is one value and the largest, and 0.0 is -0.0."""
    import numpy as np

    values, ranks = np.unique(floats + floats.dtype.type(0), return_inverse=True)
    interval = IntegerRange(0, max(len(values) - 1, 0))
    return ranks.astype(np.int32), Machine.I32, interval, array_from(values)


def _step(array: Array, interval: IntegerRange) -> int:
    """The largest number of which all values are multiples, less the least of them."""
    import numpy as np

    return max(int(np.gcd.reduce(array - interval.low)), 1) if interval.size <= I64_MAX else 1


def _columns(expr: Expr, result: pa.Array) -> _Columns:
    """NumPy form of an Arrow result in physical types: values, register type, interval, dictionary, validity."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = None
    valid = None if result.null_count == 0 else truth_values(result.is_valid())
    if expr.type.kind is Kind.VARCHAR:
        plain = result.dictionary_decode() if pa.types.is_dictionary(result.type) else result
        values = pc.unique(plain.drop_null()).sort()
        result = null_as(pc.index_in(plain, value_set=values), 0)
    if expr.type.kind is Kind.BOOLEAN:
        return truth_values(null_as(result, False)), Machine.BOOL, None, None, valid
    if (
        expr.type.is_wide_decimal
        or expr.type.is_ranked
        or expr.type.kind in (Kind.INTERVAL, Kind.NULL)
    ):
        raise NotFusable(f"a {expr.type} does not fit a register")
    if expr.type.is_float:
        machine = Machine.F32 if expr.type.kind is Kind.FLOAT else Machine.F64
        array = numbers(null_as(result, 0.0)).astype(machine.value)
        return array, machine, None, None, valid
    if pa.types.is_date32(result.type):
        result = result.view(pa.int32())
    elif expr.type.is_ticks:
        result = result.view(pa.int64())
    least = pc.min(result)  # as a value that occurs, or what lies under a NULL widens the interval
    array = numbers(null_as(result, least if least.is_valid else 0))
    interval = (
        IntegerRange(int(array.min()), int(array.max())) if len(array) else IntegerRange(0, 0)
    )
    if not interval.fits_i64:
        raise NotFusable(f"a value of {expr.type} needs more than 64 bits")
    machine = Machine.I32 if interval.fits_i32 else Machine.I64
    return array.astype(machine.value), machine, interval, values, valid


def _shown(expr: Expr) -> str:
    from ...plan.text.plan_text import expression

    return expression(expr)


def tested_text(expr: Expr, values: pa.Array) -> pa.Array | None:
    """Return for which values a comparison of a text column with constants is true; None for other expressions.

    An evaluator of any expression takes 0.14 to 0.4 ms for it, this 0.02 (TPC-H's Q19 has 14 of them).
    """
    import pyarrow.compute as pc

    match expr:
        case Call(function=name, args=(ColumnRef() as column, Literal() as other)) if (
            name in COMPARISONS & STRICT and _are_text((column, other))
        ):
            tests = {"==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal}
            tests |= {">": pc.greater, ">=": pc.greater_equal}
            return tests[SIGNS[name]](values, _texts([other], values.type)[0])
        case InList(operand=ColumnRef() as column, values=others) if all(
            isinstance(other, Literal) for other in others
        ) and _are_text((column, *others)):
            return pc.is_in(values, value_set=_texts(others, values.type))
    return None


def _are_text(exprs: Sequence[Expr]) -> bool:
    """Whether all are text, and none NULL."""
    texts = all(e.type.kind is Kind.VARCHAR for e in exprs)
    return texts and not any(isinstance(e, Literal) and e.is_null for e in exprs)


def _texts(literals: Sequence[Expr], arrow_type: pa.DataType) -> pa.Array:

    return array_from([e.value for e in literals if isinstance(e, Literal)], arrow_type)
