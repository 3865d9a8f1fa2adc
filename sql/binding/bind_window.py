"""OVER: window calls with their partitions, orders and frames, and the nodes that compute them for a SELECT."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import cast

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, UnknownName, Unsupported, nearest
from fuseline.plan import infer
from fuseline.plan.expr import AggregateCall, Column, ColumnRef, Expr, Literal, SortKey, new_column
from fuseline.plan.functions import WINDOW, scalar_name, sql_names
from fuseline.plan.logical import Logical
from fuseline.plan.node import walk
from fuseline.plan.types import BIGINT
from fuseline.plan.window.window_call import (
    WHOLE,
    Exclude,
    Over,
    Side,
    Unit,
    WindowCall,
    WindowFrame,
)
from fuseline.plan.window.window_node import Window

from ..parsing.pieces import span_of
from ..parsing.unread import use, use_all
from . import function_names
from .bind_expr_call import (
    CallClauses,
    bind_sort_key,
    bound_aggregate,
    call_span,
    clauses_of,
    without_clauses,
)
from .scope import Scope

_ORDERED_SIDES: tuple[Side, ...] = (
    "unbounded preceding",
    "preceding",
    "current row",
    "following",
    "unbounded following",
)


def has_window(exprs: Sequence[Expr]) -> bool:
    """Whether one of the expressions holds a window call, outside of subqueries."""
    return any(isinstance(e, Over) for expr in exprs for e in walk(expr))


# Definitions


@dataclasses.dataclass(frozen=True)
class _Definition:
    """What stands in the parentheses behind OVER, with what the window that it names has."""

    partition: Sequence[exp.Expr] = ()
    order: exp.Order | None = None
    spec: exp.WindowSpec | None = None


def named_windows(nodes: Sequence[exp.Expr]) -> dict[str, exp.Expr]:
    """Return the entries of WINDOW by their names in lower case."""
    found: dict[str, exp.Expr] = {}
    for node in nodes:
        name = node.this.name
        if name.lower() in found:
            raise InvalidQuery(f'WINDOW names "{name}" twice.', span_of(node.this))
        base = node.args.get("alias")
        if base is not None and base.name.lower() not in found:
            raise _unknown(base, found)
        found[name.lower()] = node
        use(node.this)
    return found


def pass_over(windows: Mapping[str, exp.Expr]) -> None:
    """Note that DuckDB does not look into entries of WINDOW that nobody names either; to be called when all is bound."""
    for node in windows.values():
        if not node.meta_get("used"):
            use_all(node)


def _unknown(name: exp.Expr, known: Mapping[str, exp.Expr]) -> UnknownName:
    hint = nearest(name.name, [node.this.name for node in known.values()])
    return UnknownName(f'There is no window "{name.name}" in this query.{hint}', span_of(name))


def _definition(node: exp.Expr, scope: Scope, text: str | None = None) -> _Definition:
    """Return the definition of `OVER w`, `OVER (...)`, `OVER (w ...)`, or of an entry of WINDOW."""
    own = _Definition(
        node.args.get("partition_by") or (), node.args.get("order"), node.args.get("spec")
    )
    name = node.args.get("alias")
    if name is None:
        return own
    use(name)
    entry = scope.windows.get(name.name.lower())
    if entry is None:
        raise _unknown(name, scope.windows)
    use(entry)
    base = _definition(entry, scope)
    place = span_of(name)
    written = "" if text is None or place is None else text[: place.start].rstrip()
    if text is not None and not written.endswith("("):
        return base
    if base.spec is not None:
        raise InvalidQuery(
            f'The window "{name.name}" has a frame, so that no other window can be made of it.',
            place,
        )
    for what, theirs, ours in (
        ("PARTITION BY", base.partition, own.partition),
        ("ORDER BY", base.order, own.order),
    ):
        if ours and theirs:
            raise InvalidQuery(f'The window "{name.name}" has {what} already.', place)
    return _Definition(own.partition or base.partition, own.order or base.order, own.spec)


# Frames


@dataclasses.dataclass(frozen=True)
class _Bounds:
    """A frame with the bound expressions of its offsets."""

    frame: WindowFrame
    start: Expr | None = None
    end: Expr | None = None
    key: Expr | None = None
    descending: bool = False


def _side(spec: exp.Expr, key: str) -> tuple[Side, exp.Expr | None]:
    value, side = spec.args.get(key), spec.args.get(f"{key}_side")
    word = str(side or "").lower()
    named = str(value or "CURRENT ROW").upper() if not isinstance(value, exp.Expr) else ""
    if named == "CURRENT ROW" and not side:
        return "current row", None
    if word in ("preceding", "following") and named in ("", "UNBOUNDED"):
        sided = f"unbounded {word}" if named else word
        return cast("Side", sided), None if named else value
    where = f"{key} {side}".replace("_", " ").upper()
    raise Unsupported(f"{where} is not supported as a bound of a frame.", span_of(spec))


def _bounds(
    spec: exp.Expr | None, order: tuple[SortKey, ...], scope: Scope, around: Span | None
) -> _Bounds:
    if spec is None:
        return _Bounds(WindowFrame() if order else WHOLE)
    use(spec)
    place = span_of(spec) or around
    start, first = _side(spec, "start")
    end, last = _side(spec, "end")
    exclude = "no others"
    if spec.args.get("exclude") is not None:
        use(spec.args["exclude"])
        exclude = spec.args["exclude"].name.lower()
    if start == "unbounded following" or end == "unbounded preceding":
        which = "start with" if start == "unbounded following" else "end with"
        wrong = start if start == "unbounded following" else end
        raise InvalidQuery(f"A frame cannot {which} {wrong.upper()}.", place)
    if _ORDERED_SIDES.index(end) < _ORDERED_SIDES.index(start):
        raise InvalidQuery(
            f"A frame that starts with {start.upper()} cannot end with {end.upper()}.", place
        )
    unit = cast("Unit", str(spec.args.get("kind")).lower())
    frame = WindowFrame(unit, start, end, cast("Exclude", exclude))
    if unit == "range" and (first is not None or last is not None):
        return _range_bounds(frame, first, last, order, scope, place)
    if not order and unit != "rows":  # all rows are peers
        peers: dict[Side, Side] = {"current row": "unbounded preceding"}
        frame = dataclasses.replace(frame, start=peers.get(start, start))
        if end == "current row":
            frame = dataclasses.replace(frame, end="unbounded following")
    return _Bounds(frame, _offset(first, frame, scope, place), _offset(last, frame, scope, place))


def _offset(
    node: exp.Expr | None, frame: WindowFrame, scope: Scope, place: Span | None
) -> Expr | None:
    """Return a number of rows or groups."""
    if node is None:
        return None
    bound = scope.bind(node)
    offset = infer.cast(bound, BIGINT) if bound.type != BIGINT else bound
    value = bound.value if isinstance(bound, Literal) else 0
    if value is None or (isinstance(value, int) and value < 0):
        wrong = "NULL" if value is None else "negative"
        raise InvalidQuery(
            f"The bound of a {frame.unit.upper()} frame cannot be {wrong}.", bound.span or place
        )
    return offset


def _range_bounds(
    frame: WindowFrame,
    first: exp.Expr | None,
    last: exp.Expr | None,
    order: tuple[SortKey, ...],
    scope: Scope,
    place: Span | None,
) -> _Bounds:
    """Bounds are values: the order key less or more an offset."""
    if len(order) != 1:
        place = span_of(first if first is not None else last) or place
        raise InvalidQuery(
            "A RANGE frame with an offset needs exactly one ORDER BY expression.", place
        )
    (key,) = order

    def value(node: exp.Expr | None, side: Side) -> Expr | None:
        if node is None:
            return None
        offset = scope.bind(node)
        if isinstance(offset, Literal) and offset.value is None:
            raise InvalidQuery("The bound of a RANGE frame cannot be NULL.", offset.span or place)
        back = (side == "preceding") != key.descending
        return infer.call("sub" if back else "add", [key.expr, offset], offset.span)

    values = [value(first, frame.start), value(last, frame.end)]
    typed = infer.unify([key.expr, *(v for v in values if v is not None)], key.span)
    start = typed[1] if values[0] is not None else None
    return _Bounds(
        frame, start, typed[-1] if values[1] is not None else None, typed[0], key.descending
    )


# Calls


def bind_over(node: exp.Expr, scope: Scope) -> Expr:
    """Bind a call with OVER, which comes back as `Over` within the tree."""
    place = call_span(node, scope)
    if not scope.allow_windows:
        where = "inside of one another" if scope.in_window else f"in {scope.clause}"
        raise InvalidQuery(f"Window functions are not allowed {where}.", place)
    definition = _definition(node, scope, scope.session.text)
    inner = scope.inside_window()
    partition = tuple(inner.bind(n) for n in definition.partition)
    order: tuple[SortKey, ...] = ()
    if definition.order is not None:
        use(definition.order)
        for item in definition.order.expressions:
            if isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL":
                raise InvalidQuery("ORDER BY ALL has no meaning in a window.", span_of(node))
        order = tuple(bind_sort_key(item, inner) for item in definition.order.expressions)
    bounds = _bounds(definition.spec, order, inner, place)
    call = _call(node.this, bounds, inner, place)
    return _over(call, partition, order)


def _over(call: Expr, partition: tuple[Expr, ...], order: tuple[SortKey, ...]) -> Expr:
    """Return what an aggregate stands for, with its calls over the window."""
    if isinstance(call, WindowCall):
        return Over(call, partition, order, call.span)
    return call.with_children([_over(child, partition, order) for child in call.children])


def _call(node: exp.Expr, bounds: _Bounds, scope: Scope, place: Span | None) -> Expr:
    clauses = clauses_of(node)
    found = function_names.window(clauses.call)
    if found is not None:
        return _function(clauses, found, bounds, scope, place)
    if function_names.aggregate(clauses.call) is None:
        if isinstance(clauses.call, exp.Anonymous) and scalar_name(clauses.call.name) is None:
            hint = nearest(clauses.call.name, sql_names())
            raise Unsupported(f'There is no window function "{clauses.call.name}".{hint}', place)
        raise InvalidQuery("OVER belongs to aggregates and window functions.", place)
    if clauses.nulls and not isinstance(clauses.call, exp.AnyValue):  # whose NULLs sqlglot ignores
        raise InvalidQuery("IGNORE NULLS and RESPECT NULLS do not go with aggregates.", place)
    return _framed(bound_aggregate(clauses, scope, place), bounds, place)


def _framed(expr: Expr, bounds: _Bounds, place: Span | None) -> Expr:
    if isinstance(expr, AggregateCall):
        return WindowCall(
            expr.function,
            expr.args,
            expr.type,
            bounds.frame,
            bounds.start,
            bounds.end,
            bounds.key,
            expr.distinct,
            False,
            bounds.descending,
            expr.filter,
            expr.order,
            place,
        )
    return expr.with_children([_framed(child, bounds, place) for child in expr.children])


def _function(
    clauses: CallClauses,
    found: tuple[str, list[exp.Expr]],
    bounds: _Bounds,
    scope: Scope,
    place: Span | None,
) -> WindowCall:
    name, nodes = found
    row = WINDOW[name]
    nodes, distinct, inside = without_clauses(nodes)
    if distinct:
        raise InvalidQuery(f"{name} takes no DISTINCT.", place)
    order = _own_order(name, inside, clauses, bounds, scope, place)
    if clauses.filter is not None or clauses.within is not None:
        raise InvalidQuery(f"FILTER and WITHIN GROUP do not go with {name}.", place)
    if clauses.nulls and not nodes:
        raise InvalidQuery(f"IGNORE NULLS and RESPECT NULLS do not go with {name}.", place)
    args, result = infer.typed(row, [scope.bind(n) for n in nodes], place)
    if name == "ntile" and isinstance(args[0], Literal):
        value = args[0].value
        if isinstance(value, int) and value <= 0:
            raise InvalidQuery("ntile() takes a number above zero.", args[0].span or place)
    framed = bounds if order or row.reach == "frame" else _Bounds(WHOLE)
    return WindowCall(
        name,
        args,
        result,
        framed.frame,
        framed.start,
        framed.end,
        framed.key,
        descending=framed.descending,
        ignore_nulls=clauses.nulls == "ignore",
        order=order,
        span=place,
    )


def _own_order(
    name: str,
    inside: exp.Order | None,
    clauses: CallClauses,
    bounds: _Bounds,
    scope: Scope,
    place: Span | None,
) -> tuple[SortKey, ...]:
    """Bind the ORDER BY of a window function, by which it sees the rows of its frame."""
    if inside is None:
        return ()
    row = WINDOW[name]
    if not row.orderable:
        raise InvalidQuery(f"ORDER BY inside of {name} is not supported.", place)
    if row.reach != "frame" and bounds.frame.exclude != "no others":
        raise InvalidQuery(f"EXCLUDE does not go with ORDER BY inside of {name}.", place)
    if row.reach != "frame" and clauses.nulls == "ignore":
        raise Unsupported(f"IGNORE NULLS does not go with ORDER BY inside of {name}.", place)
    return tuple(bind_sort_key(item, scope) for item in inside.expressions)


# Nodes


class WindowRewriter:
    """Rewrites expressions with window calls to expressions over the columns that compute them."""

    def __init__(self, plan: Logical) -> None:
        self.input = plan
        self._known: dict[Over, Column] = {}
        self._names: dict[Over, str] = {}

    def name_outputs(self, outputs: Sequence[tuple[str, Expr]]) -> None:
        """Give window calls that are outputs the names of those."""
        for name, value in outputs:
            if isinstance(value, Over):
                self._names.setdefault(value, name)

    def rewrite(self, expr: Expr) -> Expr:
        if isinstance(expr, Over):
            if expr not in self._known:
                name = self._names.get(expr, expr.call.function)
                self._known[expr] = new_column(name, expr.type)
            return ColumnRef(self._known[expr], expr.span)
        if not expr.children:
            return expr
        return expr.with_children([self.rewrite(child) for child in expr.children])

    def plan(self) -> Logical:
        """Return the input below one node for each partition and order; to be called after all expressions were rewritten."""
        calls: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[tuple[Column, WindowCall]]]
        calls = {}
        for over, column in self._known.items():
            calls.setdefault((over.partition, over.order), []).append((column, over.call))
        plan = self.input
        for (partition, order), made in calls.items():
            plan = Window(plan, partition, order, tuple(made))
        return plan
