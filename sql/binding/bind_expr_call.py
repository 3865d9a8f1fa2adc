"""Calls of functions: scalar ones, and aggregates with DISTINCT, FILTER, ORDER BY and WITHIN GROUP."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from fuseline import errors as err
from fuseline.plan import derived, infer
from fuseline.plan.composed.nested_values import OF_NAMED_VALUES, list_value
from fuseline.plan.composed.other_aggregates import of_order
from fuseline.plan.composed.sampling import with_order
from fuseline.plan.expr import (
    Call,
    Cast,
    ColumnRef,
    Expr,
    Literal,
    SortKey,
    columns_of,
    new_column,
)
from fuseline.plan.functions import sql_names
from fuseline.plan.types import BIGINT, NULL, VARCHAR, list_of
from fuseline.plan.udf.python_function import python_fold
from fuseline.sql.parsing.pieces import span_of, split

from ...records import dataclass
from ..parsing.operator_calls import operation
from ..parsing.unread import use
from . import function_names
from .bind_expr_subquery import bind_sorted, sort_direction
from .bind_lambda import bind_lambda_call, has_lambda
from .constants.known_values import known, known_value, with_known
from .draws.volatile import bind_setseed
from .macros import expanded, in_schema, macro_of
from .relations.about_tables import current_setting, version
from .scope import Scope
from .udf.bind_python import (
    SEQUENCE_CALLS,
    bind_python,
    bind_sequence_call,
    python_aggregate,
    python_function,
)

_CALL = re.compile(r"([a-z_]\w*)\s*\(", re.IGNORECASE)
_QUANTILES = ("quantile_cont", "quantile_disc")


def bind_call(node: exp.Expr, scope: Scope) -> Expr:
    """Bind a function by its class or name; an expression of no known kind is refused."""
    names = function_names
    use(*_name_in_quotes(node))
    text = in_schema(node, scope) or operation(node, scope.session.text)
    if text is not None:
        return scope.bind(text)
    if isinstance(node, exp.CurrentVersion):
        return version(node, scope)
    if names.aggregate(node) or names.window(node) or python_aggregate(node, scope):
        return bind_aggregate(node, scope)
    python = python_function(node, scope)
    if python is not None:
        return bind_python(python, node, call_span(node, scope), scope)
    macro = macro_of(node, scope, is_table=False)
    if macro is not None:
        return scope.bind(expanded(macro, node, scope))
    found = names.scalar(node)
    if found is not None:
        name, nodes = found
        kept = _KEPT_VALUES.get(name.lower())
        if kept is not None:
            return kept(node, scope)
        if name.lower() in OF_SESSION:
            return OF_SESSION[name.lower()]([scope.bind(n) for n in nodes], scope, span_of(node))
        if nodes and all(type(n) is exp.Literal and span_of(n) is None for n in nodes):
            raise err.InvalidQuery(f"{name}() needs arguments.", call_span(node, scope))
        known = derived.is_spelled if isinstance(node, exp.Anonymous) else derived.is_known
        if not known(name):  # before its arguments, of which * would be the first complaint
            raise infer.unknown_function(name, call_span(node, scope), derived.DERIVED)
        if any(isinstance(n, exp.Distinct | exp.Order) for n in nodes):
            raise err.InvalidQuery(
                f"DISTINCT and ORDER BY belong into aggregates, and {name} is none.", span_of(node)
            )
        if name.lower() in OF_NAMED_VALUES:
            return _of_named_values(name, nodes, node, scope)
        if has_lambda(name, nodes):
            return bind_lambda_call(name, nodes, call_span(node, scope), scope)
        args = with_known(name, [scope.bind(n) for n in nodes], scope)
        called, sorted_by = with_order(name, args, scope.session.catalog.sort_defaults)
        return derived.function(called, sorted_by, call_span(node, scope))
    place = call_span(node, scope)
    if isinstance(node, exp.Func):
        name = _written_name(place, scope) or type(node).sql_names()[0].lower()
        raise err.UnknownName(
            f'There is no function "{name}".{err.nearest(name, sql_names())}', place
        )
    raise err.Unsupported(f"{node.key.upper()} is not supported in expressions.", place)


def _name_in_quotes(node: exp.Expr) -> list[exp.Expr]:
    named = isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier)
    return [node.this] if named else []


def _of_named_values(name: str, nodes: Sequence[exp.Expr], node: exp.Expr, scope: Scope) -> Expr:
    """Bind struct_insert(s, name := value, ...)."""
    place = call_span(node, scope)
    rest = nodes[1:]
    if not rest or not all(isinstance(each, exp.PropertyEQ | exp.Kwarg) for each in rest):
        raise err.InvalidQuery(f"{name}() takes a struct and values with names: b := 2.", place)
    use(*rest, *(each.this for each in rest))
    values = [scope.bind(each.expression) for each in rest]
    names = [each.this.name for each in rest]
    return OF_NAMED_VALUES[name.lower()]([scope.bind(nodes[0])], names, values, place)


def _variable(node: exp.Expr, scope: Scope) -> Expr:
    """Return the value of getvariable('name'), NULL where there is none."""
    nodes = node.expressions
    what = "The name of a variable"
    name = known_value(scope.bind(nodes[0]), what, scope) if len(nodes) == 1 else None
    if not isinstance(name, str):
        raise err.InvalidQuery(
            "getvariable takes the name of a variable as a string.", span_of(node)
        )
    variables = scope.session.catalog.session.variables
    found = variables.get(name.lower(), Literal(None, NULL))
    assert isinstance(found, Literal | Call | Cast), "constants, and what they are put together by"
    return dataclasses.replace(found, span=span_of(node))


def _query(args: Sequence[Expr], scope: Scope, place: err.Span | None) -> Expr:
    _takes("current_query()", 0, args, place)
    text = scope.session.text
    at = 0 if place is None else place.start
    own = next((piece.sql for piece in split(text) if at < piece.end), text)
    return Literal(own.strip(), VARCHAR, place)


def _schemas(args: Sequence[Expr], scope: Scope, place: err.Span | None) -> Expr:
    """The schemas in which names are looked up; those of each session where its argument is TRUE."""
    _takes("current_schemas(BOOLEAN)", 1, args, place)
    if not isinstance(args[0], Literal):
        raise err.InvalidQuery("The argument of current_schemas is a constant.", place)
    if args[0].value is None:
        return Literal(None, NULL, place)
    schema = scope.session.catalog.here()[1]
    found = [schema] if schema != "main" else []
    if args[0].value:
        found = ["main", *found, "main", "main", "pg_catalog"]
    return (
        list_value([Literal(name, VARCHAR) for name in found], place)
        if found
        else infer.cast(list_value([], place), list_of(VARCHAR))
    )


def _in_search_path(args: Sequence[Expr], scope: Scope, place: err.Span | None) -> Expr:
    """Whether names of a schema of a database need neither."""
    _takes("in_search_path(VARCHAR, VARCHAR)", 2, args, place)
    names = [derived.function("lower", [infer.to_text(a)]) for a in args]
    system = [("temp", "main"), ("system", "main"), ("system", "pg_catalog")]
    here = [scope.session.catalog.here(), (scope.session.catalog.here()[0], "main"), *system]
    here += [("", schema) for _, schema in here]
    pairs = [
        infer.call(
            "and",
            [
                infer.compare("eq", n, Literal(p.lower(), VARCHAR))
                for n, p in zip(names, pair, strict=True)
            ],
        )
        for pair in dict.fromkeys(here)
    ]
    return infer.call("or", pairs, place)


def _takes(signature: str, count: int, args: Sequence[Expr], place: err.Span | None) -> None:
    if len(args) != count:
        raise err.TypeMismatch(f"{signature} does not take {len(args)} arguments.", place)


# What the session knows
OF_SESSION: dict[str, Callable[[Sequence[Expr], Scope, err.Span | None], Expr]] = {
    "current_query": _query,
    "current_schemas": _schemas,
    "in_search_path": _in_search_path,
}


def _of_sequence(name: str, node: exp.Expr, scope: Scope) -> Expr:
    return bind_sequence_call(name, node, call_span(node, scope), scope)


# Functions of what a connection keeps beside tables
_KEPT_VALUES: dict[str, Callable[[exp.Expr, Scope], Expr]] = {
    "getvariable": _variable,
    "setseed": bind_setseed,
    "current_setting": lambda node, scope: current_setting(node, call_span(node, scope), scope),
    **{name: partial(_of_sequence, name) for name in SEQUENCE_CALLS},
}


def _written_name(place: err.Span | None, scope: Scope) -> str:
    """Return the name of a function as the text has it; sqlglot's classes are called as in any of its dialects."""
    found = None if place is None else _CALL.match(scope.session.text, place.start)
    return "" if found is None else found.group(1).lower()


def call_span(node: exp.Expr, scope: Scope) -> err.Span | None:
    """Return the place of a call up to its closing parenthesis."""
    place = span_of(node)
    return None if place is None else err.balanced(scope.session.text, place)


@dataclass(frozen=True)
class CallClauses:
    """What stands around and inside the call of an aggregate."""

    call: exp.Expr
    filter: exp.Expr | None = None
    within: exp.Order | None = None
    nulls: str = ""  # ignore or respect


def clauses_of(node: exp.Expr) -> CallClauses:
    """Take FILTER, WITHIN GROUP and IGNORE NULLS off the call, in whatever order sqlglot nests them."""
    match node:
        case exp.Filter():
            use(node, node.expression)
            inner = clauses_of(node.this)
            return dataclasses.replace(inner, filter=node.expression.this)
        case exp.WithinGroup():
            use(node, node.expression)
            return dataclasses.replace(clauses_of(node.this), within=node.expression)
        case exp.IgnoreNulls() | exp.RespectNulls():
            use(node)
            word = "ignore" if isinstance(node, exp.IgnoreNulls) else "respect"
            return dataclasses.replace(clauses_of(node.this), nulls=word)
    use(node)
    return CallClauses(node)


def bind_aggregate(node: exp.Expr, scope: Scope) -> Expr:
    """Bind an aggregate with its clauses; its arguments are bound inside of it, where no other aggregate may stand.

    One that reads columns of queries around this one alone belongs to the innermost of these.
    """
    place = call_span(node, scope)
    clauses = clauses_of(node)
    python = python_aggregate(clauses.call, scope)
    if function_names.aggregate(clauses.call) is None and python is None:
        if function_names.window(clauses.call) is not None:
            raise err.InvalidQuery("A window function needs OVER (...).", place)
        raise err.InvalidQuery("FILTER and WITHIN GROUP belong to aggregates.", place)
    if clauses.nulls and not isinstance(clauses.call, exp.AnyValue):  # whose NULLs sqlglot ignores
        raise err.InvalidQuery(
            "IGNORE NULLS and RESPECT NULLS need a window: add OVER (...).", place
        )
    call = bound_aggregate(clauses, scope.inside_aggregate(), place)
    owner = scope.owner(columns_of(call))
    if not owner.allow_aggregates:
        where = "inside of one another" if owner.in_aggregate else f"in {owner.clause}"
        raise err.InvalidQuery(f"Aggregates are not allowed {where}.", place)
    if owner is scope:
        return call
    column = new_column("aggregate", call.type)
    owner.lifted[column] = call
    return ColumnRef(column, place)


def bound_aggregate(clauses: CallClauses, inner: Scope, place: err.Span | None) -> Expr:
    """Bind the call of an aggregate, its arguments in the scope `inner`."""
    python = python_aggregate(clauses.call, inner)
    found = function_names.aggregate(clauses.call)
    assert found is not None or python is not None
    name, nodes = found or (clauses.call.name, list(clauses.call.expressions))
    nodes, distinct, order = without_clauses(nodes)
    args = [inner.bind(n) for n in _without_star(name, nodes, distinct, place)]
    if len(args) > 1 or clauses.within is not None:  # fractions, separators, numbers of values
        args = [known(arg, inner) for arg in args]
    keys = tuple(bind_sort_key(item, inner) for item in (order.expressions if order else ()))
    if name in _QUANTILES and keys:  # of which the direction alone matters
        if inner.in_window and keys[0].descending:  # where DuckDB has no direction either
            message = f"{name} with ORDER BY ... DESC is not supported in a window."
            raise err.Unsupported(message, place)
        args[1:] = [of_order(name, arg, keys[0].descending) for arg in args[1:]]
        keys = ()
    if distinct:
        _check_order_of_distinct(args, keys)
    if clauses.within is not None:
        name, args, keys = _within_group(name, args, clauses.within, inner, place)
    condition = None
    if clauses.filter is not None:
        within = inner.changed(
            clause="FILTER", allow_aggregates=inner.allow_aggregates and inner.in_window
        )
        condition = within.bind(clauses.filter)
    if python is not None:
        return python_fold(python, args, place, distinct=distinct, filter=condition, order=keys)
    return infer.aggregate(name, args, distinct=distinct, filter=condition, order=keys, span=place)


def _without_star(
    name: str, nodes: Sequence[exp.Expr], distinct: bool, place: err.Span | None
) -> Sequence[exp.Expr]:
    """Return the arguments of an aggregate, none for count(*)."""
    if not any(isinstance(node, exp.Star) for node in nodes):
        return nodes
    if name not in ("count", "count_star") or distinct or len(nodes) > 1:
        raise err.InvalidQuery("* can stand in count(*) alone.", place)
    use(nodes[0])
    return ()


def without_clauses(
    nodes: Sequence[exp.Expr],
) -> tuple[list[exp.Expr], bool, exp.Order | None]:
    """Take DISTINCT and ORDER BY off the arguments; sqlglot wraps the first or last one in them."""
    distinct, order = False, None
    found: list[exp.Expr] = []
    for node in nodes:
        if isinstance(node, exp.Order):
            use(node)
            order, node = node, node.this  # noqa: PLW2901 - unwrapped step by step
        if isinstance(node, exp.Distinct):
            use(node)
            distinct = True
            found.extend(node.expressions)
        elif node is not None:  # of an ORDER BY alone
            found.append(node)
    for node in found:
        if distinct and isinstance(node, exp.Star):
            raise err.InvalidQuery("DISTINCT * is no argument: name the columns.", span_of(node))
    return found, distinct, order


def _check_order_of_distinct(args: Sequence[Expr], keys: Sequence[SortKey]) -> None:
    read = {column for arg in args for column in columns_of(arg)}
    for key in keys:
        if not columns_of(key.expr) <= read:
            raise err.InvalidQuery(
                "With DISTINCT, the ORDER BY of an aggregate reads its arguments alone.", key.span
            )


def bind_sort_key(node: exp.Expr, scope: Scope) -> SortKey:
    if not isinstance(node, exp.Ordered):
        return SortKey(bind_sorted(node, scope), span=span_of(node))
    use(node)
    descending, nulls_first = sort_direction(node, scope)
    return SortKey(bind_sorted(node.this, scope), descending, nulls_first, span_of(node))


def _within_group(
    name: str, args: list[Expr], order: exp.Order, scope: Scope, place: err.Span | None
) -> tuple[str, list[Expr], tuple[SortKey, ...]]:
    """percentile_cont(f) WITHIN GROUP (ORDER BY x) -> quantile_cont(x, f); descending counts from the other end, as -f does."""
    if len(order.expressions) != 1 or name not in (*_QUANTILES, "mode"):
        raise err.Unsupported(
            f"WITHIN GROUP is supported for quantiles and mode with one ORDER BY item, not for {name}.",
            place,
        )
    key = bind_sort_key(order.expressions[0], scope)
    if name == "mode" and args:
        raise err.InvalidQuery("mode() WITHIN GROUP takes no arguments.", place)
    if name == "mode":
        return name, [key.expr], (key,)
    return name, [key.expr, of_order(name, args[0], key.descending)], ()


def bind_grouping(node: exp.Expr, scope: Scope) -> Expr:
    """GROUPING(a, b) stays a call of that name, which `bind_group` replaces."""
    if not scope.allow_aggregates:
        raise err.InvalidQuery(
            "GROUPING belongs to the SELECT list, HAVING, QUALIFY and ORDER BY of a query with GROUP BY.",
            call_span(node, scope),
        )
    args = tuple(scope.bind(n) for n in node.expressions)
    return Call("grouping", args, BIGINT, call_span(node, scope))
