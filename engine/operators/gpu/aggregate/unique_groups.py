"""GROUP BY over rows of which no two have the same keys: each is a group of its own, and nothing has to be looked for.

The groups of a build side's rows are such rows, where a column of theirs is found to have no value twice: names of suppliers,
say.  Integers that lie as in registers take another type meanwhile without a pass over them.

TPC-H SF10, hot on an H200, takes 3 % longer without it, Q21 1.7 times as long (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

import pylibcudf as plc

from ....plan import physical as p
from ....plan.expr import AggregateCall, Call, Cast, Column, ColumnRef, Expr
from ....plan.functions import AGGREGATE
from ....plan.types import DataType, Kind
from ....storage.columns.encodings import REGISTER
from ..dictionaries import Held
from ..late_materialization import Fetch, LateColumns
from ..pipeline.finish import from_registers
from ..table import Table, device_type, renamed

MOST_ROWS = 1 << 24  # of a relation, of which the different values are counted once
KNOWN = 256  # columns of which it is remembered whether a value comes twice

_known: OrderedDict[Hashable, bool] = OrderedDict()


def each_alone(node: p.HashAggregate, table: Table) -> Table | None:
    """Return the groups of rows that are known to have different keys, in the order of the rows; None for others."""
    columns = table.columns
    if type(columns) is not LateColumns or not table.num_rows:
        return None
    pairs = [(made, _passed(call, columns)) for made, call in node.aggregates]
    passed = [(made, expr) for made, expr in pairs if expr is not None]
    if len(passed) < len(pairs) or not any(_tells_apart(key, columns) for key in node.keys):
        return None
    same = [(key, key) for key in node.keys]
    same += [(made, e.column) for made, e in passed if isinstance(e, ColumnRef)]
    sums = {made: e for made, e in passed if isinstance(e, Cast)}
    return Table(with_types(table, same, sums), table.num_rows)


def _passed(call: AggregateCall, columns: LateColumns) -> Expr | None:
    """What an aggregate is of a single row: the argument, or the argument as integers of another type."""
    if call.filter is not None or len(call.args) != 1:
        return None
    (arg,) = call.args
    if not isinstance(arg, ColumnRef) or arg.type.is_float:
        return None
    row = AGGREGATE[call.function]
    if row.idempotent and not row.counts and call.type == arg.type:
        return arg
    if call.function != "sum":
        return None
    cast = Cast(arg, call.type)
    return cast if _register(cast, columns) is not None else None


def _tells_apart(key: Column, columns: LateColumns) -> bool:
    """Whether no two rows have the same value of a key: different rows of a column in which none comes twice."""
    fetch = columns.late(key.id)
    return (
        fetch is not None
        and columns.places[columns.fetches[key.id][0]].distinct
        and is_unique(fetch)
    )


def is_unique(fetch: Fetch) -> bool:
    """Whether no text comes twice in a column, which is counted once."""
    if fetch.origin is None or fetch.lying.type().id() != plc.TypeId.STRING:
        return False
    if fetch.lying.size() > MOST_ROWS:
        return False
    found = _known.get(fetch.origin)
    if found is None:
        different = plc.reduce.distinct_count(
            fetch.lying, plc.types.NullPolicy.INCLUDE, plc.types.NanPolicy.NAN_IS_VALID
        )
        found = _known[fetch.origin] = different == fetch.lying.size()
        while len(_known) > KNOWN:
            _known.popitem(last=False)
    return found


# Other types


def is_retyped(expr: Expr, table: Table) -> bool:
    """Whether an expression is a column of a table whose integers, as they lie, are those of another type too."""
    return type(table.columns) is LateColumns and _register(expr, table.columns) is not None


def without_default(expr: Expr, table: Table) -> Expr:
    """coalesce(x, ...) -> x, where x is a column without NULL, or a cast of one, but for TRY_CAST."""
    if not isinstance(expr, Call) or expr.function != "coalesce":
        return expr
    first = expr.args[0]
    source = first.operand if isinstance(first, Cast) and not first.safe else first
    if not isinstance(source, ColumnRef) or type(table.columns) is not LateColumns:
        return expr
    return expr if table.columns.may_be_null(source.column.id) else first


def with_types(
    table: Table, same: Iterable[tuple[Column, Column]], retyped: Mapping[Column, Expr]
) -> Mapping[int, Held]:
    """Return columns under other identities, given as (new, old), and those that take another type."""
    columns = table.columns
    sources = {new: e.operand.column for new, e in retyped.items() if _is_of_column(e)}  # type: ignore[attr-defined]
    made = renamed(table, [*same, *sources.items()]).columns
    if not sources:
        return made
    assert type(columns) is LateColumns
    assert type(made) is LateColumns
    fetches = dict(made.fetches)
    for new, expr in retyped.items():
        fetch = _register(expr, columns)
        assert fetch is not None
        fetches[new.id] = fetches[new.id][0], _as_type(fetch, expr.type)
    return LateColumns(made.there, made.places, fetches)


def _is_of_column(expr: Expr) -> bool:
    return isinstance(expr, Cast) and isinstance(expr.operand, ColumnRef)


def _register(expr: Expr, columns: LateColumns) -> Fetch | None:
    """How the operand of a cast is fetched, if that is a column of integers as in registers all of which the type has."""
    if not isinstance(expr, Cast) or not isinstance(expr.operand, ColumnRef):
        return None
    source, target = expr.operand.type, expr.type
    fetch = columns.late(expr.operand.column.id)
    if fetch is None or fetch.encoding != REGISTER or fetch.bounds is None:
        return None
    if not (_has_integers(source) and _has_integers(target)) or source.scale != target.scale:
        return None
    low, high = target.integer_range
    return fetch if low <= fetch.bounds[0] and fetch.bounds[1] <= high else None


def _has_integers(data_type: DataType) -> bool:
    return (data_type.is_integer and data_type.kind is not Kind.UBIGINT) or data_type.is_decimal


def _as_type(fetch: Fetch, data_type: DataType) -> Fetch:
    lying = device_type(data_type)
    return replace(fetch, decode=lambda registers: from_registers(registers, lying))
