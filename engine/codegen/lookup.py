"""Any expression over one column of few codes, as a table indexed by the code.

The expression is evaluated once on the column's distinct values by the CPU backend, which makes every SQL function usable in
a kernel.  A string result becomes the code of a new sorted dictionary.
"""

from __future__ import annotations

from typing import Any

from ..errors import FuselineError
from ..plan.expr import Expr, columns_of
from ..plan.types import Kind
from .loop import Lookup, Machine, Number, Select, Term
from .ranges import Interval
from .values import LOOKUP_LIMIT, Input, Kernel, NotFusable, Value


def through_table(expr: Expr, kernel: Kernel) -> Value:
    """Return `expr` as a table lookup; raises `NotFusable` unless it reads exactly one column of few codes."""
    read = columns_of(expr)
    if len(read) != 1:
        raise NotFusable(f"{_shown(expr)} reads {len(read)} columns and has no form in registers")
    (column,) = read
    source = kernel.inputs.get(column)
    if source is None:
        raise NotFusable(f"{_shown(expr)} reads a computed column and has no form in registers")
    if source.codes is None or source.codes > LOOKUP_LIMIT:
        raise NotFusable(
            f'{_shown(expr)} needs a table of "{column.name}", which has more than {LOOKUP_LIMIT} values'
        )
    try:
        result = kernel.fold(expr, source)
    except FuselineError as error:
        # On a value that may not even occur: the operators decide on the rows that do
        raise NotFusable(f'{_shown(expr)} fails on a value of "{column.name}": {error}') from error
    return _value(expr, result, source, kernel)


def _value(expr: Expr, result: Any, source: Input, kernel: Kernel) -> Value:
    from .translate import code, validity  # the two call each other

    index: Term = code(source, kernel)
    valid_row = validity(source, kernel)
    if valid_row is not None:
        assert source.codes is not None
        last = Number(source.codes, index.type)  # the entry that NULL gives
        index = Select(valid_row, index, last, index.type)
    array, machine, interval, values, valid = _columns(expr, result)
    term: Term = Lookup(kernel.table(array, machine), index, machine)
    ok = None if valid is None else Lookup(kernel.table(valid, Machine.BOOL), index, Machine.BOOL)
    return Value(term, ok, interval, values)


def _columns(expr: Expr, result: Any) -> tuple[Any, Machine, Interval | None, Any, Any]:
    """NumPy form of an Arrow result in physical types: values, register type, interval, dictionary, validity."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    values = None
    valid = None if result.null_count == 0 else np.asarray(result.is_valid())
    if expr.type.kind is Kind.VARCHAR:
        plain = result.dictionary_decode() if pa.types.is_dictionary(result.type) else result
        values = pc.unique(plain.drop_null()).sort()
        result = pc.fill_null(pc.index_in(plain, value_set=values), 0)
    if expr.type.kind is Kind.BOOLEAN:
        return np.asarray(pc.fill_null(result, False)), Machine.BOOL, None, None, valid
    if expr.type.is_wide_decimal or expr.type.kind in (Kind.INTERVAL, Kind.NULL):
        raise NotFusable(f"a {expr.type} does not fit a register")
    if expr.type.is_float:
        machine = Machine.F32 if expr.type.kind is Kind.FLOAT else Machine.F64
        array = np.asarray(pc.fill_null(result, 0.0), dtype=machine.value)
        return array, machine, None, None, valid
    if pa.types.is_date32(result.type):
        result = result.view(pa.int32())
    elif pa.types.is_timestamp(result.type):
        result = result.view(pa.int64())
    array = np.asarray(pc.fill_null(result, 0))
    interval = Interval(int(array.min()), int(array.max())) if len(array) else Interval(0, 0)
    if not interval.fits_i64:
        raise NotFusable(f"a value of {expr.type} needs more than 64 bits")
    machine = Machine.I32 if interval.fits_i32 else Machine.I64
    return array.astype(machine.value), machine, interval, values, valid


def _shown(expr: Expr) -> str:
    from ..plan.text import expression

    return expression(expr)
