"""Functions whose argument is a lambda, closed: what its body reads of the row around it goes into the call beside the list.

So a body is over columns of its own alone, and no walk through a plan has to look into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from ...errors import InvalidQuery, Span, TypeMismatch
from .. import expr as ex, infer
from ..coercion import common_pair
from ..functions.lists import element_type
from ..node import walk
from ..types import BIGINT, BOOLEAN, NULL, DataType, list_of
from ..window.window_call import Over

Bind = Callable[[Mapping[str, ex.Column]], ex.Expr]  # a body, by the columns of its parameters

# SQL name -> the function that it is, and how many parameters its lambda has
LAMBDAS: dict[str, tuple[str, range]] = {
    **dict.fromkeys(
        ("list_transform", "array_transform", "list_apply", "array_apply", "apply"),
        ("list_transform", range(1, 3)),
    ),
    **dict.fromkeys(("list_filter", "array_filter", "filter"), ("list_filter", range(1, 3))),
    **dict.fromkeys(("list_reduce", "array_reduce", "reduce"), ("list_reduce", range(2, 4))),
}


@lru_cache(4096)
def parameter(name: str, data_type: DataType, depth: int, place: int) -> ex.Column:
    """Return a column within a call, the same one in each call of the same text, so that GROUP BY finds the call in SELECT."""
    return ex.new_column(name, data_type)


def mapped(
    operand: ex.Expr,
    names: Sequence[str],
    body: Bind | None,
    condition: Bind | None,
    depth: int,
    span: Span | None,
) -> ex.Expr:
    """Return [body for element, place in operand if condition]; without a body the elements, without a condition all."""
    kind = _elements(operand, span)
    first, second = (*names, "")[:2]
    inner = parameter(first, kind, depth, 0), parameter(second, BIGINT, depth, 1)
    given = dict(zip((name.lower() for name in names), inner, strict=False))
    made = ex.ColumnRef(inner[0]) if body is None else body(given)
    kept = None if condition is None else infer.cast(condition(given), BOOLEAN)
    closure = _Closure(inner, depth)
    made, kept = closure.closed(made), None if kept is None else closure.closed(kept)
    if operand.type == NULL:
        return ex.Literal(None, NULL, span)
    element, place = inner
    return ex.ListMap(
        infer.coerce(operand, list_of(kind)),
        closure.captures,
        element,
        place,
        closure.columns,
        made,
        kept,
        list_of(made.type),
        span,
    )


def reduced(
    operand: ex.Expr,
    initial: ex.Expr | None,
    names: Sequence[str],
    body: Bind,
    depth: int,
    span: Span | None,
) -> ex.Expr:
    """Return body(body(a, b), c) of the elements a, b, c, which an initial value may go before."""
    kind = _elements(operand, span)
    start = kind if initial is None else initial.type

    def bound(accumulated: DataType) -> tuple[tuple[ex.Column, ex.Column, ex.Column], ex.Expr]:
        first, second, third = (*names, "")[:3]
        inner = (
            parameter(first, accumulated, depth, 0),
            parameter(second, kind, depth, 1),
            parameter(third, BIGINT, depth, 2),
        )
        return inner, body(dict(zip((name.lower() for name in names), inner, strict=False)))

    inner, made = bound(start)
    shared = common_pair(start, made.type)
    if shared is None:
        what = "the elements" if initial is None else "the initial value"
        raise TypeMismatch(
            f"The lambda gives {made.type} and {what} are {start}: cast one to the other's type.",
            span,
        )
    if shared != start:
        inner, made = bound(shared)
    closure = _Closure(inner, depth)
    made = closure.closed(infer.cast(made, shared))
    if operand.type == NULL:
        return ex.Literal(None, NULL, span)
    return ex.ListReduce(
        infer.coerce(operand, list_of(kind)),
        None if initial is None else infer.cast(initial, shared),
        closure.captures,
        inner,
        closure.columns,
        made,
        shared,
        span,
    )


def attempted(body: ex.Expr, depth: int, span: Span | None) -> ex.Expr:
    """Return TRY(body); raises `InvalidQuery` for what is not computed of a row's values alone."""
    for node in walk(body):
        if isinstance(node, ex.Subquery | ex.AggregateCall | Over):
            raise InvalidQuery(
                "TRY() takes no subqueries, aggregates, window functions and draws: name them in the SELECT list of a subquery.",
                node.span or span,
            )
        if isinstance(node, ex.Call) and node.function == "unnest":
            raise InvalidQuery("unnest() is not allowed in TRY().", node.span)
    closure = _Closure((), depth)
    made = closure.closed(body)
    return ex.Try(closure.captures, closure.columns, made, made.type, span)


def _elements(operand: ex.Expr, span: Span | None) -> DataType:
    kind = element_type(operand.type)
    if kind is None:
        raise TypeMismatch(
            f"A lambda is for the elements of a list, and this is {operand.type}.",
            operand.span or span,
        )
    return kind


class _Closure:
    """What bodies read beside their parameters, each by a column of theirs."""

    def __init__(self, parameters: Sequence[ex.Column], depth: int) -> None:
        self.parameters = frozenset(parameters)
        self.depth = depth
        self.found: dict[ex.Expr, ex.Column] = {}

    @property
    def captures(self) -> tuple[ex.Expr, ...]:
        return tuple(self.found)

    @property
    def columns(self) -> tuple[ex.Column, ...]:
        return tuple(self.found.values())

    def closed(self, body: ex.Expr) -> ex.Expr:
        for node in walk(body):
            if isinstance(node, ex.Subquery):
                raise InvalidQuery("Subqueries are not allowed in a lambda.", node.span)
            if isinstance(node, ex.Call) and node.function == "unnest":
                raise InvalidQuery("unnest() is not allowed in a lambda: use flatten().", node.span)
            if isinstance(node, ex.AggregateCall | Over) and node.reads & self.parameters:
                raise InvalidQuery(
                    "Aggregates and window functions do not see the parameters of a lambda: "
                    "use a function of lists, such as list_sum.",
                    node.span,
                )
        return self._closed(body)

    def _closed(self, node: ex.Expr) -> ex.Expr:
        grouping = isinstance(node, ex.Call) and node.function == "grouping"
        if grouping or isinstance(node, ex.ColumnRef | ex.AggregateCall | Over):
            if isinstance(node, ex.ColumnRef) and node.column in self.parameters:
                return node
            if node not in self.found:
                name = node.column.name if isinstance(node, ex.ColumnRef) else "captured"
                place = -1 - len(self.found)
                self.found[node] = parameter(name, node.type, self.depth, place)
            return ex.ColumnRef(self.found[node], node.span)
        return node.with_children([self._closed(child) for child in node.children])
