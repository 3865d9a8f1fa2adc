"""GROUP BY: the keys and grouping sets of a SELECT, and its expressions rewritten to read the groups."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, Unsupported
from fuseline.plan import expr as ex, infer
from fuseline.plan.copies import map_expressions
from fuseline.plan.logical import Aggregate, Item, Logical
from fuseline.plan.node import walk
from fuseline.plan.types import BIGINT
from fuseline.plan.window.windowed import has_window
from fuseline.sql.parsing.pieces import span_of

from ...records import dataclass
from ..parsing.known_calls import RandomUuid, TimedUuid
from ..parsing.unread import use
from .bind_order import is_ordinal, ordinal
from .scope import Scope
from .udf.drawing_calls import find_draw

_MAX_GROUPING_SETS = 4096
_GROUPINGS = (exp.GroupingSets, exp.Rollup, exp.Cube, exp.Tuple)
Lifted = Mapping[ex.Column, ex.Expr]  # aggregates that stand in subqueries, as `Scope.lifted`
Sets = list[tuple[int, ...]]  # each the positions of the keys in it


@dataclass
class GroupKeys:
    """The distinct keys of GROUP BY; `sets` is None for one plain set of all of them.

    `is_all` is for GROUP BY ALL, which groups nothing where no output reads a column.
    """

    keys: list[ex.Expr] = field(default_factory=list)
    sets: Sets | None = None
    is_all: bool = False
    _places: dict[ex.Expr, int] = field(default_factory=dict)

    @property
    def is_nothing(self) -> bool:
        return self.is_all and not self.keys

    def position(self, key: ex.Expr) -> int:
        """Return the place of a key, which is added when it is new."""
        place = self._places.setdefault(key, len(self.keys))
        if place == len(self.keys):
            self.keys.append(key)
        return place


def bind_group(node: exp.Group, outputs: Sequence[tuple[str, ex.Expr]], scope: Scope) -> GroupKeys:
    """Bind GROUP BY; ordinals and, where no column has the name, aliases stand for the outputs of the SELECT list."""
    use(node)
    if node.args.get("all") is False:  # None where there is no such word
        raise Unsupported("GROUP BY DISTINCT is not supported.", span_of(node))
    place = scope.inside("GROUP BY")
    keys = GroupKeys(is_all=bool(node.args.get("all")))
    if keys.is_all:
        _refuse_drawn_keys(node, scope)
        for _, value in outputs:
            if (
                ex.columns_of(value)
                and not is_aggregated([value], scope.lifted)
                and not has_window([value])
            ):
                keys.position(value)
        return keys
    elements = node.expressions
    choices = [_element(element, outputs, place, keys) for element in elements]
    if any(isinstance(e, exp.GroupingSets | exp.Rollup | exp.Cube) for e in elements):
        keys.sets = _product(choices, span_of(node))
    return keys


def _refuse_drawn_keys(node: exp.Group, scope: Scope) -> None:
    """Raise `Unsupported` for outputs that would be keys of GROUP BY ALL and draw for each row."""
    select = node.parent
    assert isinstance(select, exp.Select)
    for output in select.expressions:
        if output.find(exp.Column) is None or output.find(exp.AggFunc, exp.Window) is not None:
            continue
        draw = find_draw(output, scope.session.catalog, exp.Rand, RandomUuid, TimedUuid)
        if draw is not None:
            raise Unsupported(
                "What draws for each row is not supported beside a column in GROUP BY ALL: name it in the SELECT list of a subquery.",
                span_of(draw),
            )


def _element(
    node: exp.Expr, outputs: Sequence[tuple[str, ex.Expr]], scope: Scope, keys: GroupKeys
) -> Sets:
    """Return the alternatives of one element of GROUP BY, which are combined with those of the others."""
    if isinstance(node, _GROUPINGS):
        use(node)
    match node:
        case exp.GroupingSets():
            return [s for e in node.expressions for s in _element(e, outputs, scope, keys)]
        case exp.Rollup():
            parts = [_element(e, outputs, scope, keys)[0] for e in node.expressions]
            return [_join(parts[:n]) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_element(e, outputs, scope, keys)[0] for e in node.expressions]
            if 2 ** len(parts) > _MAX_GROUPING_SETS:
                raise InvalidQuery(
                    f"CUBE of {len(parts)} columns makes more than {_MAX_GROUPING_SETS} grouping sets.",
                    span_of(node),
                )
            sizes = range(len(parts), -1, -1)
            return [_join(c) for n in sizes for c in itertools.combinations(parts, n)]
        case exp.Tuple():
            return [_join([_element(e, outputs, scope, keys)[0] for e in node.expressions])]
        case _ if is_ordinal(node):
            output = outputs[ordinal(node, len(outputs), "GROUP BY")][1]
            return [(keys.position(_without_aggregate(output, node, scope)),)]
        case exp.Column(this=exp.Identifier()) if scope.stands_for_alias(node.parts):
            use(node, node.this)
            output = next(v for name, v in outputs if name.lower() == node.name.lower())
            return [(keys.position(_without_aggregate(output, node, scope)),)]
        case _:
            return [(keys.position(scope.bind(node)),)]


def _join(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(i for part in parts for i in part))


def _product(choices: Sequence[Sets], span: Span | None) -> Sets:
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MAX_GROUPING_SETS:
        raise InvalidQuery(
            f"GROUP BY makes {count} grouping sets; {_MAX_GROUPING_SETS} are the most.", span
        )
    return [tuple(sorted(_join(combination))) for combination in itertools.product(*choices)]


def _without_aggregate(value: ex.Expr, node: exp.Expr, scope: Scope) -> ex.Expr:
    if is_aggregated([value], scope.lifted):
        raise InvalidQuery(
            "Aggregates are not allowed in GROUP BY: this names an output that has one.",
            span_of(node),
        )
    if has_window([value]):
        raise InvalidQuery(
            "Window functions are not allowed in GROUP BY: this names an output that has one.",
            span_of(node),
        )
    return value


def is_aggregated(exprs: Sequence[ex.Expr], lifted: Lifted) -> bool:
    """Whether one of the expressions holds an aggregate of this query or GROUPING."""
    return any(
        _reads_groups(e) or (lifted and not lifted.keys().isdisjoint(ex.columns_of(e)))
        for expr in exprs
        for e in walk(expr)
    )


def _reads_groups(expr: ex.Expr) -> bool:
    return isinstance(expr, ex.AggregateCall) or (
        isinstance(expr, ex.Call) and expr.function == "grouping"
    )


class GroupRewriter:
    """Rewrites expressions over the rows of `plan` to expressions over its groups, collecting their aggregates."""

    def __init__(self, plan: Logical, group: GroupKeys, lifted: Lifted) -> None:
        self.input = plan
        self.lifted = lifted
        self.rows = frozenset(plan.columns)
        self.sets = group.sets
        self.keys: list[Item] = [(self._key_column(key), key) for key in group.keys]
        self.aggregates: list[tuple[ex.Column, ex.AggregateCall]] = []
        self._places: dict[ex.Expr, list[int]] = {}  # of equal keys
        for i, key in enumerate(group.keys):
            self._places.setdefault(key, []).append(i)
        self._known: dict[ex.Expr, ex.Column] = {}  # the columns of the aggregates
        self.grouping_id: ex.Column | None = None

    def _key_column(self, key: ex.Expr) -> ex.Column:
        if isinstance(key, ex.ColumnRef):
            # Grouping sets make NULLs in the key, so that it is another column than the one it comes from.
            passed_on = self.sets is None and key.column in self.rows
            return key.column if passed_on else ex.new_column(key.column.name, key.type)
        return ex.new_column("key", key.type)

    def name_outputs(self, outputs: Sequence[tuple[str, ex.Expr]]) -> None:
        """Give aggregates and computed keys that are outputs the names of those."""
        for name, value in outputs:
            if isinstance(value, ex.AggregateCall) and value not in self._known:
                self._add(name, value)
            for i in () if isinstance(value, ex.ColumnRef) else self._places.get(value, ()):
                column, key = self.keys[i]
                self.keys[i] = (dataclasses.replace(column, name=name), key)

    def plan(self) -> Logical:
        """Return the aggregation; to be called after all expressions were rewritten."""
        sets = None if self.sets is None else tuple(self.sets)
        return Aggregate(
            self.input, tuple(self.keys), tuple(self.aggregates), sets, self.grouping_id
        )

    def rewrite(self, expr: ex.Expr, within: bool = False) -> ex.Expr:
        """Replace keys and aggregates by their columns; raises `InvalidQuery` for a column that is neither.

        `within` subqueries aggregates are theirs, and constants are no keys.
        """
        if expr in self._places and not (within and not ex.columns_of(expr)):
            return ex.ColumnRef(self.keys[self._places[expr][0]][0], expr.span)
        match expr:
            case ex.AggregateCall() if not within:
                return ex.ColumnRef(
                    self._known.get(expr) or self._add(expr.function, expr), expr.span
                )
            case ex.Call(function="grouping") if not within:
                return self._grouping(expr)
            case ex.ColumnRef(column=column) if column in self.lifted:
                return self.rewrite(self.lifted[column])
            case ex.ColumnRef(column=column) if column in self.rows:
                raise _ungrouped(column, expr.span)
        children = [self.rewrite(child, within) for child in expr.children]
        expr = expr.with_children(children) if children else expr
        if isinstance(expr, ex.Subquery):
            plan = map_expressions(expr.plan, partial(self.rewrite, within=True))
            return dataclasses.replace(expr, plan=plan)
        return expr

    def _add(self, name: str, call: ex.AggregateCall) -> ex.Column:
        column = self._known[call] = ex.new_column(name, call.type)
        self.aggregates.append((column, call))
        return column

    def _grouping(self, call: ex.Call) -> ex.Expr:
        """Return the bits of GROUPING(a, b ...): 1 where the key is aggregated away, the last argument lowest."""
        places = []
        for arg in call.args:
            if arg not in self._places:
                raise InvalidQuery("GROUPING takes columns of GROUP BY.", arg.span or call.span)
            places.append(self._places[arg][0])
        if self.sets is None:
            return ex.Literal(0, BIGINT, call.span)
        if self.grouping_id is None:
            self.grouping_id = ex.new_column("grouping_id", BIGINT)
        id_ = ex.ColumnRef(self.grouping_id, call.span)
        if places == list(range(len(self.keys))):
            return id_
        total: ex.Expr | None = None
        for weight, place in enumerate(reversed(places)):
            bit = _bit(id_, len(self.keys) - 1 - place, weight, call.span)
            total = bit if total is None else infer.call("add", [total, bit], call.span)
        assert total is not None
        return total


def _bit(id_: ex.Expr, place: int, weight: int, span: Span | None) -> ex.Expr:
    """Return bit `place` of `id_`, moved to `weight`."""

    def number(value: int) -> ex.Literal:
        return ex.Literal(value, BIGINT, span)

    shifted = infer.call("int_div", [id_, number(1 << place)], span) if place else id_
    bit = infer.call("mod", [shifted, number(2)], span)
    return infer.call("mul", [bit, number(1 << weight)], span) if weight else bit


def _ungrouped(column: ex.Column, span: Span | None) -> InvalidQuery:
    return InvalidQuery(
        f'The column "{column.name}" is neither in GROUP BY nor inside an aggregate function: '
        f"add it to GROUP BY, or use any_value({column.name}).",
        span,
    )
