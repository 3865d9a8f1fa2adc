"""OVER: window calls with their partitions, orders and frames, and the nodes that compute them for a SELECT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, TypeMismatch, UnknownName, Unsupported, nearest
from fuseline.plan import infer
from fuseline.plan.expr import Expr, Literal, SortKey
from fuseline.plan.functions import WINDOW, scalar_name, sql_names, window_name
from fuseline.plan.window.fill import filled
from fuseline.plan.window.window_call import WHOLE, Exclude, Side, Unit, WindowCall, WindowFrame
from fuseline.plan.window.windowed import (
    FrameBounds,
    check_sides,
    default_frame,
    framed,
    is_framed,
    over,
    range_bounds,
    rows_offset,
    without_order,
)

from ...records import dataclass
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

# Definitions


@dataclass(frozen=True)
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
    remedy = hint or f" Name one behind FROM and WHERE: WINDOW {name.name} AS (ORDER BY ...)."
    return UnknownName(f'There is no window "{name.name}" in this query.{remedy}', span_of(name))


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
) -> FrameBounds:
    if spec is None:
        return FrameBounds(default_frame(order))
    use(spec)
    place = span_of(spec) or around
    start, first = _side(spec, "start")
    end, last = _side(spec, "end")
    exclude = "no others"
    if spec.args.get("exclude") is not None:
        use(spec.args["exclude"])
        exclude = spec.args["exclude"].name.lower()
    check_sides(start, end, place)
    unit = cast("Unit", str(spec.args.get("kind")).lower())
    frame = WindowFrame(unit, start, end, cast("Exclude", exclude))
    if unit == "range" and (first is not None or last is not None):
        if len(order) != 1:
            place = span_of(first if first is not None else last) or place
        offsets = [
            None if node is None or len(order) != 1 else scope.bind(node) for node in (first, last)
        ]
        return range_bounds(frame, offsets[0], offsets[1], order, place)
    frame = frame if order else without_order(frame)
    starts, ends = (
        None if node is None else rows_offset(scope.bind(node), frame, place)
        for node in (first, last)
    )
    return FrameBounds(frame, starts, ends)


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
    call = _filled(node.this, order, inner, place) or _call(node.this, bounds, inner, place)
    return over(call, partition, order)


def _filled(
    node: exp.Expr, order: tuple[SortKey, ...], scope: Scope, place: Span | None
) -> Expr | None:
    """Bind fill(x), whose frame says nothing; None for another function."""
    if not isinstance(node, exp.Anonymous) or window_name(node.name) != "fill":
        return None
    use(node)
    nodes, distinct, inside = without_clauses(node.expressions)
    if distinct or inside is not None:
        raise Unsupported("DISTINCT and ORDER BY inside of fill() are not supported.", place)
    if len(nodes) != 1:
        raise TypeMismatch(f"fill() takes one argument, not {len(nodes)}.", place)
    if len(order) != 1:
        raise InvalidQuery("The window of fill() has an ORDER BY of one key.", place)
    return filled(scope.bind(nodes[0]), order[0].expr, place)


def _call(node: exp.Expr, bounds: FrameBounds, scope: Scope, place: Span | None) -> Expr:
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
    return framed(bound_aggregate(clauses, scope, place), bounds, place)


def _function(
    clauses: CallClauses,
    found: tuple[str, list[exp.Expr]],
    bounds: FrameBounds,
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
    over_frame = bounds if order or is_framed(name) else FrameBounds(WHOLE)
    return WindowCall(
        name,
        args,
        result,
        over_frame.frame,
        over_frame.start,
        over_frame.end,
        over_frame.key,
        descending=over_frame.descending,
        ignore_nulls=clauses.nulls == "ignore",
        order=order,
        span=place,
    )


def _own_order(
    name: str,
    inside: exp.Order | None,
    clauses: CallClauses,
    bounds: FrameBounds,
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
