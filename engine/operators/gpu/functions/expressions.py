"""Expressions over a table: `evaluate` gives a device column, `selection` a BOOL8 column that is TRUE in the selected rows.

Each function runs as one or a few libcudf kernels over all rows; constants stay scalars, equal parts are computed once, and what
reads nothing but one column of codes is computed once for each key.  What a row that CASE, COALESCE, AND or OR does not reach
would raise is ignored: checks look at the rows in `RowScope.active` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import pylibcudf as plc

from ....errors import FuselineError
from ....plan import expr as ex
from ....plan.functions import STRICT
from ....plan.types import Kind
from ....plan.udf.python_function import PythonCall, PythonFold, has_python
from ..columns import (
    BOOL,
    both,
    cast as to_type,
    constant,
    negate,
    reinterpret,
    select,
    true_mask,
    where_true,
)
from ..dictionaries import Coded, Held, recoded
from ..table import Table, count_true, device_type, unsupported_type
from . import (
    kernels_arithmetic,
    kernels_dates,
    kernels_formats,
    kernels_logic,
    kernels_numeric,
    kernels_patterns,
    kernels_strings,
    kernels_zones,
    values as val,
)
from .compiled_functions import looped, python_refusal
from .kernels_casts import cast, cast_refusal
from .kernels_logic import in_list
from .one_pass_terms import in_one_pass

__all__ = ["evaluate", "evaluate_all", "selection", "unsupported"]


def evaluate(expr: ex.Expr, table: Table) -> plc.Column:
    """Return the value of `expr` in each row of `table`, in physical form."""
    return val.as_column(value(expr, val.RowScope(table)), table.num_rows)


def evaluate_all(exprs: Sequence[ex.Expr], table: Table) -> list[Held]:
    """Return the values of several expressions; what they have in common is computed once, and codes stay codes."""
    scope = val.RowScope(table)
    return [_held(expr, scope) for expr in exprs]


def _held(expr: ex.Expr, scope: val.RowScope) -> Held:
    if isinstance(expr, ex.ColumnRef):
        return scope.table.columns[expr.column.id]
    if expr.type.kind is Kind.VARCHAR:
        coded = _only_codes(expr, scope)
        values = None if coded is None else _of_each_key(expr, coded)
        if coded is not None and values is not None:
            return recoded(coded[1], values)
    return val.as_column(value(expr, scope), scope.rows)


def selection(predicate: ex.Expr, table: Table) -> plc.Column:
    """Return a BOOL8 column; rows where it is FALSE or NULL are not selected."""
    return evaluate(predicate, table)


def unsupported(expr: ex.Expr) -> str | None:
    """Return what of an expression the GPU does not compute, or None."""
    reason = _refusal(expr)
    if reason is not None:
        return reason
    for child in expr.children:
        if isinstance(child, ex.Literal):
            continue
        reason = unsupported(child)
        if reason is not None:
            return reason
    return None


def _refusal(expr: ex.Expr) -> str | None:
    if isinstance(expr, PythonCall) and (reason := python_refusal(expr)) is not None:
        return reason
    if isinstance(expr, PythonFold):
        return f"the Python aggregate {expr.function.name}, whose loop over lists of values is the CPU's"
    for part in (expr, *expr.children):
        if part.type.kind is not Kind.INTERVAL and unsupported_type(part.type):
            return f"{part.type} values"
    if expr.type.kind is Kind.INTERVAL and not isinstance(expr, ex.Literal):
        return "INTERVAL columns"
    if any(a.type.kind is Kind.INTERVAL for a in expr.children) and not _moves_by_literal(expr):
        return "INTERVAL values, but for literals that are added to dates"
    match expr:
        case ex.Call():
            return refusal(expr)
        case ex.Cast(operand=inner):
            return cast_refusal(inner.type, expr.type)
        case ex.ColumnRef() | ex.Literal() | ex.Case() | ex.InList() | PythonCall():
            return None
    return type(expr).__name__


def _moves_by_literal(expr: ex.Expr) -> bool:
    """Whether an expression adds an INTERVAL literal, which needs no column."""
    return (
        isinstance(expr, ex.Call)
        and expr.function in ("add_interval", "sub_interval")
        and isinstance(expr.args[1], ex.Literal)
    )


def value(expr: ex.Expr, scope: val.RowScope) -> val.Value:
    """Return the value of an expression in the rows of a scope; arbitrary in rows that are not active.

    An error gets the place of the innermost expression that raised it.
    """
    if isinstance(expr, ex.Literal):
        return val.literal(expr)
    found = scope.find(expr)
    if found is None:
        try:
            found = _of_codes(expr, scope)
            if found is None:
                found = _computed(expr, scope)
        except FuselineError as error:
            error.at(expr.span)
            raise
        scope.known[expr] = found
    return found


def _of_codes(expr: ex.Expr, scope: val.RowScope) -> plc.Column | None:
    """Return the value of an expression over one column of codes, computed for each key."""
    coded = _only_codes(expr, scope)
    values = None if coded is None else _of_each_key(expr, coded)
    return None if coded is None or values is None else coded[1].spread(values)


def _only_codes(expr: ex.Expr, scope: val.RowScope) -> tuple[ex.Column, Coded] | None:
    """Return the one column that an expression reads, if it has codes with fewer keys than rows."""
    if not scope.has_codes or isinstance(expr, ex.ColumnRef):
        return None
    read = ex.columns_of(expr)
    if len(read) != 1:
        return None
    (column,) = read
    held = scope.table.columns[column.id]
    return (column, held) if isinstance(held, Coded) and held.keys.size() < held.size() else None


def _of_each_key(expr: ex.Expr, coded: tuple[ex.Column, Coded]) -> plc.Column | None:
    """Return an expression's values in the codes' domain; None when it raises for one, which no row may have."""
    column, codes = coded
    domain = codes.domain()
    try:
        return evaluate(expr, Table({column.id: domain}, domain.size()))
    except FuselineError:
        return None


def _computed(expr: ex.Expr, scope: val.RowScope) -> val.Value:
    match expr:
        case ex.ColumnRef(column=column):
            return scope.table[column]
        case ex.Call(function="coalesce"):
            return _coalesce(expr, scope)
        case ex.Call(function=function) if function in _LAZY:
            if any(map(has_python, expr.args[1:])):
                return _LAZY[function](expr, scope)
            try:
                return KERNELS[function](expr, scope, tuple(value(a, scope) for a in expr.args))
            except FuselineError:
                return _LAZY[function](expr, scope)
        case ex.Call():
            whole = in_one_pass(expr, scope.rows, scope.table.__getitem__, scope.extremes)
            if whole is not None:
                target = device_type(expr.type)
                return reinterpret(to_type(whole, val.integer_type(target)), target)
            args = [value(a, scope) for a in _operands(expr)]
            if any(map(val.is_null_constant, args)) and expr.function in STRICT:
                return val.null(expr.type)
            if args and all(isinstance(a, val.Constant) for a in args):
                args[0] = val.as_column(args[0], scope.rows)
            return KERNELS[expr.function](expr, scope, tuple(args))
        case ex.Cast(operand=inner):
            return cast(expr, scope, val.as_column(value(inner, scope), scope.rows))
        case ex.Case():
            return _case(expr, scope)
        case PythonCall():
            return _python(expr, scope, [value(a, scope) for a in expr.args])
        case ex.InList(operand=inner):
            return in_list(expr, scope, val.as_column(value(inner, scope), scope.rows))
    raise AssertionError(f"{type(expr).__name__} is no expression of a physical plan")


def _python(call: PythonCall, scope: val.RowScope, args: Sequence[val.Value]) -> val.Value:
    """Return the values of a Python function: NULL where an argument is, and in rows that are not active.

    The host computes the rows for which its compiled loop fails: Python has numbers of any size there, or says what is wrong.
    """
    if any(map(val.is_null_constant, args)) or not scope.rows:
        return val.null(call.type)
    columns = [val.as_column(a, scope.rows) for a in args]
    masks = [plc.unary.is_valid(c) for c in columns if c.null_count()]
    if scope.active is not None:
        masks.append(scope.active())
    reached = reduce(both, masks) if masks else constant(True, BOOL, scope.rows)
    found, failed = looped(call, columns, reached)
    target = device_type(call.type)
    made = reinterpret(to_type(found, val.integer_type(target)), target)
    if count_true(failed):
        made = val.recomputed(call, dict(enumerate(columns)), made, failed)
    return where_true(made, reached) if masks else made


def _operands(call: ex.Call) -> tuple[ex.Expr, ...]:
    """The arguments; + and - look through casts to more digits, since they widen no more than they have to."""
    if call.function not in ("add", "sub"):
        return call.args
    return tuple(_unwidened(a) for a in call.args)


def _unwidened(expr: ex.Expr) -> ex.Expr:
    if not isinstance(expr, ex.Cast) or not expr.type.is_decimal:
        return expr
    source, target = expr.operand.type, expr.type
    wider = source.scale == target.scale and source.precision <= target.precision
    return expr.operand if source.is_decimal and wider else expr


def _case(expr: ex.Case, scope: val.RowScope) -> val.Value:
    """Conditions see the rows that none before took, results the rows that their condition took."""
    chosen: list[tuple[plc.Column, val.Value]] = []
    rest = scope
    for condition, result in zip(expr.conditions, expr.results, strict=True):
        test = value(condition, rest)
        if isinstance(test, val.Constant):
            test = val.as_column(test, scope.rows)
        true = true_mask(test)
        chosen.append((true, value(result, rest.where(lambda true=true: true))))  # type: ignore[misc]
        rest = rest.where(lambda true=true: negate(true))  # type: ignore[misc]
    answer = value(expr.default, rest)
    data_type = device_type(expr.type)
    for true, result_value in reversed(chosen):
        yes, no = (_typed(v, data_type) for v in (result_value, answer))
        answer = select(true, val.operand(yes), val.operand(no))
    return answer


def _typed(found: val.Value, data_type: plc.DataType) -> val.Value:
    """A NULL constant takes the type of the whole."""
    if isinstance(found, val.Constant) and found.value is None:
        return val.Constant(None, data_type)
    return found


def _decided(expr: ex.Call, scope: val.RowScope, deciding: bool) -> val.Value:
    """AND or OR from left to right; later arguments see the rows that no `deciding` value has decided yet."""

    def undecided(so_far: val.Value) -> plc.Column:
        column = val.as_column(so_far, scope.rows)
        return negate(true_mask(column if deciding else negate(column)))

    first, *others = expr.args
    answer, rest = value(first, scope), scope
    for arg in others:
        rest = rest.where(partial(undecided, answer))
        answer = KERNELS[expr.function](expr, scope, (answer, value(arg, rest)))
    return answer


# Instead of KERNELS where an argument raises
_LAZY: dict[str, Callable[[ex.Call, val.RowScope], val.Value]] = {
    "and": partial(_decided, deciding=False),
    "or": partial(_decided, deciding=True),
}


def _coalesce(expr: ex.Call, scope: val.RowScope) -> val.Value:
    """Later arguments see the rows in which all before are NULL."""
    answer: val.Value = val.null(expr.type)
    rest = scope
    for arg in expr.args:
        found = value(arg, rest)
        if isinstance(answer, val.Constant):
            answer = found
        elif not (isinstance(found, val.Constant) and found.value is None):
            answer = plc.replace.replace_nulls(answer, val.operand(found))
        if isinstance(answer, val.Constant) and answer.value is not None:
            break
        if not isinstance(answer, val.Constant):
            if not answer.null_count():
                break
            missing = answer
            rest = rest.where(lambda missing=missing: plc.unary.is_null(missing))  # type: ignore[misc]
    return answer


KERNELS: dict[str, val.Kernel] = {
    **kernels_logic.KERNELS,
    **kernels_arithmetic.KERNELS,
    **kernels_numeric.KERNELS,
    **kernels_strings.KERNELS,
    **kernels_patterns.KERNELS,
    **kernels_dates.KERNELS,
    **kernels_formats.KERNELS,
    **kernels_zones.KERNELS,
}
# Function -> why a call of it is refused, or None.
REFUSALS: dict[str, Callable[[ex.Call], str | None]] = {
    **kernels_numeric.REFUSALS,
    **kernels_strings.REFUSALS,
    **kernels_patterns.REFUSALS,
    **kernels_dates.REFUSALS,
    **kernels_formats.REFUSALS,
    **kernels_zones.REFUSALS,
}


def refusal(call: ex.Call) -> str | None:
    """Return why the GPU does not compute a call, whatever its arguments are made of, or None."""
    if call.function not in KERNELS and call.function != "coalesce":
        return f"the function {call.function}()"
    check = REFUSALS.get(call.function)
    return None if check is None else check(call)
