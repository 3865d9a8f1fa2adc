"""Lambdas, as the argument of a function of lists and as a list comprehension: [x * 2 for x in l if x > 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, TypeMismatch
from fuseline.plan.casts import as_list, texts_read_late
from fuseline.plan.composed.lambdas import LAMBDAS, Bind, attempted, mapped, reduced
from fuseline.plan.expr import Column, Expr
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .scope import Scope


def has_lambda(name: str, nodes: Sequence[exp.Expr]) -> bool:
    """Whether a call has a lambda."""
    return any(isinstance(node, exp.Lambda) for node in nodes)


def bind_lambda_call(
    name: str, nodes: Sequence[exp.Expr], place: Span | None, scope: Scope
) -> Expr:
    """Bind list_transform, list_filter, list_reduce or another name of theirs, with a lambda among the arguments."""
    function, counts = LAMBDAS.get(name.lower(), ("", range(0)))
    node = nodes[1] if len(nodes) > 1 else None
    if (
        not function
        or not isinstance(node, exp.Lambda)
        or sum(isinstance(n, exp.Lambda) for n in nodes) > 1
    ):
        takes = "takes a list and then the lambda" if function else "does not take a lambda"
        raise InvalidQuery(f"{name}() {takes}.", place)
    if len(nodes) > (3 if function == "list_reduce" else 2):
        raise InvalidQuery(f"{name}() has an argument too many behind its lambda.", place)
    use(node)
    names = _names(node.expressions)
    if len(names) not in counts:
        raise InvalidQuery(
            f"The lambda of {name}() has {counts[0]} or {counts[-1]} parameters, and here are {len(names)}.",
            span_of(node) or place,
        )
    operand, body = as_list(scope.bind(nodes[0])), _body(node.this, scope)
    depth = scope.lambda_depth
    if function == "list_transform":
        return mapped(operand, names, body, None, depth, place)
    if function == "list_filter":
        return mapped(operand, names, None, body, depth, place)
    initial = scope.bind(nodes[2]) if len(nodes) > 2 else None
    return reduced(operand, initial, names, body, depth, place)


def bind_comprehension(node: exp.Expr, scope: Scope, place: Span | None) -> Expr:
    """Bind [body for x, i in list if condition]."""
    use(node)
    position, condition = node.args.get("position"), node.args.get("condition")
    names = _names([node.expression, *([] if position is None else [position])])
    kept = None if condition is None else _body(condition, scope)
    operand = as_list(scope.bind(node.args["iterator"]))
    return mapped(operand, names, _body(node.this, scope), kept, scope.lambda_depth, place)


def _names(parameters: Sequence[exp.Expr]) -> list[str]:
    use(*parameters)
    names: list[str] = []
    for parameter in parameters:
        if parameter.name.lower() in map(str.lower, names):
            raise InvalidQuery(
                f'Two parameters of the lambda are called "{parameter.name}".', span_of(parameter)
            )
        names.append(parameter.name)
    return names


def _body(node: exp.Expr, scope: Scope) -> Bind:
    def bind(parameters: Mapping[str, Column]) -> Expr:
        inner = scope.changed(
            lambdas={**scope.lambdas, **parameters}, lambda_depth=scope.lambda_depth + 1
        )
        return inner.bind(node)

    return bind


def bind_try(node: exp.Expr, scope: Scope) -> Expr:
    """Bind TRY(x), NULL where x raises."""
    with texts_read_late():
        body = scope.bind(node.this)
    return attempted(body, scope.lambda_depth, span_of(node))


def refused(node: exp.Expr, scope: Scope) -> Expr:
    """Refuse a lambda that is no argument."""
    raise TypeMismatch(
        "A lambda is an argument of list_transform, list_filter and list_reduce.", span_of(node)
    )
