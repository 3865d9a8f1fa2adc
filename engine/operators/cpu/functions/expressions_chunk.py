"""The value of an expression over one chunk of rows.

An error counts only for rows that get to it: CASE branches, arguments of AND, OR and COALESCE are computed for all rows at first,
which is fast and nearly always works; when that raises, they are computed again for the rows alone that reach them.

What computes calls and the rarer expressions is imported when the first one comes: a query that one kernel runs has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .... import stopping
from ....errors import ExecutionError, FuselineError
from ....plan import expr as ex
from ....plan.arrow.arrow_arrays import array_from, from_numpy, null_as
from ....plan.functions import STRICT
from ....plan.types import BOOLEAN, DataType, Kind
from ....plan.udf.python_function import PythonCall, PythonFold, has_python
from ....records import dataclass
from .. import table as tables
from ..table import Table
from . import kernels_logic as logic
from .vectors import Array, Mask, Vector, booleans, constant, null_constant

# Later conjuncts look at the remaining rows alone when they are less than one in so many.
NARROW = 8


@dataclass(frozen=True, eq=False)
class ComputedConstant(ex.Expr):
    """A constant that has been computed."""

    vector: Vector
    type: DataType
    span: None = None


@dataclass(frozen=True, eq=False)
class DictionaryLookup(ex.Expr):
    """A function of one dictionary column: its value for each entry, and last for NULL."""

    column: ex.Column
    entries: Vector
    type: DataType
    span: None = None

    def codes(self, array: pa.Array) -> pa.Array:
        """Places in `entries` for the rows of the column, without NULL."""
        indices = array.indices
        if indices.null_count == 0:
            return indices
        return null_as(indices, self.entries.length - 1)

    def values(self, codes: pa.Array) -> Vector:
        """Return the entries at `codes`."""
        data, valid = self.entries.data, self.entries.valid
        if isinstance(data, pa.Array):
            return Vector(self.type, pc.take(data, codes, boundscheck=False))
        return Vector(self.type, _at(data, codes), None if valid is None else _at(valid, codes))

    def dictionary_array(self, table: Table) -> pa.Array:
        """The strings of all rows as a dictionary array whose entries differ from each other."""
        array = table.arrays[self.column.id]
        encoded = pc.dictionary_encode(self.entries.data)
        last = self.entries.length - 1
        if len(encoded.dictionary) == last and not self.entries.data[last].is_valid:
            # NULL gives NULL and different entries stay different: the codes are the same.
            return pa.DictionaryArray.from_arrays(array.indices, encoded.dictionary)
        indices = pc.take(encoded.indices, self.codes(array), boundscheck=False)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)


def _at(data: Array, codes: pa.Array) -> Array:
    """Return data[codes]; Arrow reads int32 codes as they are, where numpy would widen them first."""
    if data.dtype == bool:
        places = np.flatnonzero(data)
        if len(places) == 1:
            return tables.to_numpy(codes) == places[0]
        return _at(data.view(np.int8), codes).view(np.bool_)
    if data.dtype.fields is not None:
        return data[tables.to_numpy(codes)]
    return tables.to_numpy(pc.take(from_numpy(data), codes, boundscheck=False))


@dataclass
class Chunk:
    """Rows `start` to `stop` of a table, or those of them that `rows` numbers."""

    table: Table
    start: int
    stop: int
    shared: frozenset[int] = frozenset()
    memo: dict[int, Vector] = field(default_factory=dict)
    whole: Chunk | None = None
    rows: npt.NDArray[np.int64] | None = None

    @property
    def num_rows(self) -> int:
        return self.stop - self.start if self.rows is None else len(self.rows)

    def narrowed(self, rows: npt.NDArray[np.int64]) -> Chunk:
        """Return some of the rows, by their numbers in this chunk."""
        if self.rows is None:
            return Chunk(self.table, self.start, self.stop, self.shared, whole=self, rows=rows)
        return Chunk(
            self.table, self.start, self.stop, self.shared, whole=self.whole, rows=self.rows[rows]
        )

    def array(self, column: ex.Column) -> pa.Array:
        return self.table.arrays[column.id].slice(self.start, self.stop - self.start)

    def once(self, key: int, make: Callable[[], Vector]) -> Vector:
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def column(self, column: ex.Column) -> Vector:
        if self.whole is not None and self.rows is not None:
            rows = self.rows
            whole = self.whole.column(column)
            return self.once(-column.id, lambda: whole.take(rows))
        return self.once(-column.id, lambda: Vector.from_arrow(self.array(column), column.type))

    def lookup(self, lookup: DictionaryLookup) -> Vector:
        codes = lookup.codes(self.array(lookup.column))
        return lookup.values(codes if self.rows is None else codes.take(from_numpy(self.rows)))


def value(expr: ex.Expr, chunk: Chunk) -> Vector:
    """Return the values of `expr`, or one constant; an error gets the place of the innermost expression that raised it."""
    stopping.check()
    if chunk.num_rows == 0:  # not even a constant may raise
        return Vector.from_arrow(array_from([], tables.physical_type(expr.type)), expr.type)
    try:
        if id(expr) in chunk.shared:
            return chunk.once(id(expr), lambda: _value(expr, chunk))
        return _value(expr, chunk)
    except FuselineError as error:
        error.at(expr.span)
        raise


def _value(expr: ex.Expr, chunk: Chunk) -> Vector:
    match expr:
        case ComputedConstant(vector=vector):
            return vector
        case ex.ColumnRef(column=column):
            return chunk.column(column)
        case ex.Call():
            return _call(expr, chunk)
        case DictionaryLookup():
            return chunk.lookup(expr)
        case ex.Literal():
            return constant(expr.value, expr.type)
        case ex.Cast(operand=operand):
            from .kernels_casts import cast

            return cast(value(operand, chunk), expr.type, expr.safe)
        case ex.Case():
            return _case(expr, chunk)
        case ex.InList():
            return _in_list(expr, chunk)
        case ex.ListAggregate(operand=operand):
            from .nested.list_counts import aggregated

            return aggregated(expr, value(operand, chunk), _over_rows)
        case PythonCall():
            from .udf.compiled_calls import called

            return called(expr, [value(child, chunk) for child in expr.children], chunk.num_rows)
        case PythonFold():
            from .udf.compiled_calls import folded

            return folded(expr, [value(child, chunk) for child in expr.children], chunk.num_rows)
        case ex.ListMap():
            from .nested.over_elements import mapped

            return mapped(expr, [value(child, chunk) for child in expr.children], _over_rows)
        case ex.ListReduce():
            from .nested.over_elements import reduced

            return reduced(expr, [value(child, chunk) for child in expr.children], _over_rows)
        case ex.Try():
            from .values.attempts import attempted

            return attempted(expr, [value(child, chunk) for child in expr.children], _over_rows)
    raise ExecutionError(f"{type(expr).__name__} is no expression over rows: plan it away before.")


def _over_rows(expr: ex.Expr, table: Table) -> pa.Array:
    return value(expr, Chunk(table, 0, table.num_rows)).to_arrow(table.num_rows)


def _call(call: ex.Call, chunk: Chunk) -> Vector:
    from .kernel_table import KERNELS

    lazy = _LAZY.get(call.function)
    if lazy is not None and any(map(has_python, call.args[1:])):
        return lazy(call, chunk)
    if lazy is not None:
        try:
            return KERNELS[call.function](call, tuple(value(a, chunk) for a in call.args))
        except FuselineError:
            return lazy(call, chunk)
    args = tuple(value(a, chunk) for a in call.args)
    if call.function in STRICT and any(a.is_null for a in args):
        return null_constant(call.type)
    return KERNELS[call.function](call, args)


def spread(vector: Vector, count: int) -> tuple[Array, Array]:
    """Return where a BOOLEAN is TRUE and where FALSE, for each of `count` rows."""
    return (
        np.broadcast_to(logic.known_true(vector), count),
        np.broadcast_to(logic.known_false(vector), count),
    )


def _decided(call: ex.Call, chunk: Chunk) -> Vector:
    """AND or OR from left to right, each argument for the rows alone that are not decided yet."""
    count = chunk.num_rows
    settled = np.zeros(count, bool)  # FALSE found for AND, TRUE for OR
    unknown = np.zeros(count, bool)
    for arg in call.args:
        rows = np.flatnonzero(~settled)
        true, false = spread(value(arg, chunk.narrowed(rows)), len(rows))
        settled[rows] = false if call.function == "and" else true
        unknown[rows] |= ~(true | false)
    valid = settled | ~unknown
    data = ~settled if call.function == "and" else settled
    return booleans(data, None if valid.all() else valid)


def _first_present(call: ex.Call, chunk: Chunk) -> Vector:
    """COALESCE, each argument for the rows alone for which all before were NULL."""
    pieces = []
    rows = np.arange(chunk.num_rows)
    for arg in call.args:
        if not len(rows):
            break
        vector = value(arg, chunk.narrowed(rows))
        found = np.broadcast_to(logic.present(vector), len(rows))
        pieces.append((rows[found], _picked(vector, found, len(rows))))
        rows = rows[~found]
    pieces.append((rows, null_constant(call.type).to_arrow(len(rows))))
    return _joined(pieces, call.type, chunk.num_rows)


_LAZY = {"and": _decided, "or": _decided, "coalesce": _first_present}


def _picked(vector: Vector, found: Mask, count: int) -> pa.Array:
    return vector.to_arrow(count).filter(from_numpy(found))


def _joined(
    pieces: list[tuple[npt.NDArray[np.int64], pa.Array]], data_type: DataType, count: int
) -> Vector:
    """Put values back to their rows."""
    places = np.empty(count, np.int64)
    places[np.concatenate([rows for rows, _ in pieces])] = np.arange(count)
    joined = tables.concat_arrays([array for _, array in pieces])
    return Vector.from_arrow(tables.take_array(joined, places), data_type)


def _case(case: ex.Case, chunk: Chunk) -> Vector:
    if has_python(case):
        return _case_by_rows(case, chunk)
    try:
        conditions = [logic.known_true(value(c, chunk)) for c in case.conditions]
        result = value(case.default, chunk)
        results = [value(r, chunk) for r in case.results]
    except FuselineError:
        return _case_by_rows(case, chunk)
    for condition, chosen in zip(reversed(conditions), reversed(results), strict=True):
        result = logic.select(condition, chosen, result)
    return result


def _case_by_rows(case: ex.Case, chunk: Chunk) -> Vector:
    """Each branch for the rows alone that it is for."""
    pieces = []
    rows = np.arange(chunk.num_rows)
    for condition, result in zip(case.conditions, case.results, strict=True):
        true, _ = spread(value(condition, chunk.narrowed(rows)), len(rows))
        chosen, rows = rows[true], rows[~true]
        pieces.append((chosen, _over(result, chunk, chosen)))
    pieces.append((rows, _over(case.default, chunk, rows)))
    return _joined(pieces, case.type, chunk.num_rows)


def _over(expr: ex.Expr, chunk: Chunk, rows: npt.NDArray[np.int64]) -> pa.Array:
    if not len(rows):
        return array_from([], tables.physical_type(expr.type))
    return value(expr, chunk.narrowed(rows)).to_arrow(len(rows))


def _in_list(expr: ex.InList, chunk: Chunk) -> Vector:
    operand = value(expr.operand, chunk)
    if operand.is_null:
        return null_constant(BOOLEAN)
    values = [value(v, chunk) for v in expr.values]
    known = [v for v in values if not v.is_null]
    found = _among(operand, known)
    valid = operand.mask
    if len(known) < len(values):
        valid = np.asarray(found if valid is None else found & valid)
        return logic.booleans_or_null(found, valid)
    return booleans(found, valid)


def _among(operand: Vector, values: list[Vector]) -> Array:
    if not values:
        return np.zeros(np.shape(operand.data) if not isinstance(operand.data, str) else (), bool)
    if operand.type.kind is Kind.VARCHAR and not isinstance(operand.data, str):
        entries = array_from([v.data for v in values], operand.data.type)
        return tables.to_numpy(pc.is_in(operand.data, entries))
    plain = not (
        operand.type.is_float or operand.type.is_wide_decimal or operand.type.kind is Kind.INTERVAL
    )
    if plain and len(values) > NARROW and operand.type.kind is not Kind.VARCHAR:
        return np.isin(operand.data, np.array([v.data for v in values]))
    return reduce(np.logical_or, [logic.same(operand, v) for v in values])


def true_rows(parts: Sequence[ex.Expr], chunk: Chunk) -> Array:
    """Return the rows for which all `parts` are TRUE, as a mask that may be one value for all."""
    try:
        if any(map(has_python, parts)):
            return _true_rows(sorted(parts, key=has_python), chunk, 1)
        return _true_rows(sorted(parts, key=_cost), chunk, NARROW)
    except FuselineError:
        return _true_rows(parts, chunk, 1)


def _cost(part: ex.Expr) -> int:
    """Lookups and comparisons of numbers first, plain strings last."""
    match part:
        case DictionaryLookup():
            return 0
        case ex.Call(args=args) if args and all(a.type.kind is not Kind.VARCHAR for a in args):
            return 1
    return 2


def _true_rows(parts: Sequence[ex.Expr], chunk: Chunk, narrow: int) -> Array:
    """With `narrow` 1 every part sees the rows alone for which all before were TRUE."""
    mask: Array | None = None
    for part in parts:
        if mask is None:
            mask = logic.known_true(value(part, chunk))
            continue
        rows = np.flatnonzero(np.broadcast_to(mask, chunk.num_rows))
        if len(rows) * narrow > chunk.num_rows:
            mask = mask & logic.known_true(value(part, chunk))
            continue
        here = np.broadcast_to(logic.known_true(value(part, chunk.narrowed(rows))), len(rows))
        mask = np.zeros(chunk.num_rows, bool)
        mask[rows[here]] = True
    return np.ones((), bool) if mask is None else mask
