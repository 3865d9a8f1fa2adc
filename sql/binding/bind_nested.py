"""Lists, structs and what is taken out of them and of JSON: [1, 2], {'a': 1}, x[1], x[2:3], s.a, j -> 'a'."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, Unsupported
from fuseline.plan import infer
from fuseline.plan.composed.json_calls import at_path
from fuseline.plan.composed.nested_values import cut, element, field, list_value, struct_pack
from fuseline.plan.expr import Case, Expr, Literal
from fuseline.plan.types import BIGINT, JSON
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .bind_expr_call import call_span
from .bind_expr_subquery import bind_array
from .bind_lambda import bind_comprehension
from .constants.known_values import with_known
from .scope import Scope


def _comprehension(item: exp.Expr) -> exp.Expr:
    """Return what [x > 1 for x in l] is: sqlglot reads x > [1 for x in l]."""
    last = item
    while not isinstance(last, exp.Comprehension):
        inside = last.args.get("high") or last.args.get("expression")
        if isinstance(last, exp.Not | exp.Neg):
            inside = last.this
        if not isinstance(last, exp.Binary | exp.Unary | exp.Between) or inside is None:
            return item
        last = inside
    if last is not item:
        last.replace(last.this)
        last.set("this", item)
    return last


def _list(node: exp.Expr, scope: Scope) -> Expr:
    items = [_comprehension(item) for item in node.expressions]
    if len(items) == 1 and isinstance(items[0], exp.Comprehension):
        return bind_comprehension(items[0], scope, span_of(node))
    if not node.args.get("value_constructor"):  # which [(SELECT 1)] is
        match items:
            case [exp.Query() | exp.Values() as query]:
                return bind_array(query, scope, span_of(node))
    return list_value([scope.bind(item) for item in items], span_of(node))


def _struct(node: exp.Expr, scope: Scope) -> Expr:
    """{'a': 1} and struct_pack(a := 1, b), of which a column has its own name."""
    names, values = [], []
    for item in node.expressions:
        named = isinstance(item, exp.PropertyEQ | exp.Kwarg)
        if named:
            use(item, item.this)
        elif not isinstance(item, exp.Column):
            raise InvalidQuery("A field of a STRUCT has a name: {'name': value}.", span_of(item))
        names.append(item.this.name)
        values.append(scope.bind(item.expression if named else item))
    if not names:
        raise InvalidQuery("A STRUCT has at least one field.", span_of(node))
    return struct_pack(names, values, call_span(node, scope))


def _bracket(node: exp.Expr, scope: Scope) -> Expr:
    """X[i], x[from:to] and x[from:to:step]; what is left out of a slice is the end of the list on that side."""
    value, place = scope.bind(node.this), span_of(node)
    if len(node.expressions) != 1:
        raise InvalidQuery("A subscript is one place or one slice.", place)
    (inside,) = node.expressions
    if not isinstance(inside, exp.Slice):
        return element(with_known("struct_extract", [value, scope.bind(inside)], scope), place)
    use(inside)
    begin, end, step = (inside.args.get(key) for key in ("this", "expression", "step"))
    steps = [] if step is None else [scope.bind(step)]
    bounds = [
        _open_bound(default, steps) if bound is None else scope.bind(bound)
        for bound, default in ((begin, 1), (end, -1))
    ]
    return cut([value, *bounds, *steps], place)


def _open_bound(place: int, steps: Sequence[Expr]) -> Expr:
    """Return the place of a bound that is not written, from which a step below 0 goes backwards."""
    forwards = Literal(place, BIGINT)
    if not steps:
        return forwards
    goes_back = infer.compare("lt", steps[0], Literal(0, BIGINT))
    return Case((goes_back,), (Literal(-place, BIGINT),), forwards, BIGINT)


def _dot(node: exp.Expr, scope: Scope) -> Expr:
    """(x).name."""
    if not isinstance(node.expression, exp.Identifier):
        raise Unsupported("OVER behind a call with a dot is not supported.", span_of(node))
    use(node.expression)
    return field(scope.bind(node.this), node.expression.name, span_of(node.expression))


def _series(node: exp.Expr, scope: Scope) -> Expr:
    """range() and generate_series(), to which sqlglot gives the start that is not written."""
    name = "range" if node.args.get("is_end_exclusive") else "generate_series"
    start, *rest = (node.args.get(key) for key in ("start", "end", "step"))
    if isinstance(start, exp.Literal) and span_of(start) is None:
        use(start)
        start = None
    given = [scope.bind(value) for value in (start, *rest) if value is not None]
    return infer.call(f"list_of_{name}", given, call_span(node, scope))


def _map(node: exp.Expr, scope: Scope) -> Expr:
    """MAP {key: value, ...}, and map(keys, values), which sqlglot has a class for."""
    place = call_span(node, scope)
    if isinstance(node, exp.Map):
        lists = [node.args.get(key) for key in ("keys", "values")]
        return infer.call(
            "map_of_lists", [scope.bind(each) for each in lists if each is not None], place
        )
    pairs = node.this.expressions
    use(node.this, *pairs)
    if not all(isinstance(pair, exp.PropertyEQ) for pair in pairs):
        raise InvalidQuery("An entry of a MAP is a key and a value: MAP {'a': 1}.", place)
    keys = [scope.bind(pair.this) for pair in pairs]
    values = [scope.bind(pair.expression) for pair in pairs]
    return infer.call("map_of_lists", [list_value(keys, place), list_value(values, place)], place)


def _arrow(name: str) -> Callable[[exp.Expr, Scope], Expr]:
    """J -> path and j ->> path."""

    def handler(node: exp.Expr, scope: Scope) -> Expr:
        sides = [scope.bind(node.this), scope.bind(node.expression)]
        return at_path(name, with_known(name, sides, scope), span_of(node))

    return handler


def _json(node: exp.Expr, scope: Scope) -> Expr:
    """JSON '{}', for which sqlglot has a class."""
    return infer.cast(scope.bind(node.this), JSON, span=span_of(node))


HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Expr]] = {
    exp.Array: _list,
    exp.Struct: _struct,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.GenerateSeries: _series,
    exp.Map: _map,
    exp.ToMap: _map,
    exp.JSONExtract: _arrow("json_extract"),
    exp.JSONExtractScalar: _arrow("json_extract_string"),
    exp.ParseJSON: _json,
}
