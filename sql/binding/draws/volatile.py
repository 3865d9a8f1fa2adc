"""random(), uuid(), setseed() and samples: what a query draws, from the numbers of its rows and a seed for each place in its text.

A seed is drawn when a query is bound, and the plan is not kept for the next run of its text.  A draw reads row_number() OVER (), so
that the rules for windows keep filters and joins from moving through it, and that plans which are run in parts have the same draws.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import cast

from sqlglot import exp

from fuseline.errors import InvalidQuery, Unsupported
from fuseline.plan.composed.sampling import (
    ROW_NUMBER,
    SEED_BITS,
    Method,
    drawn,
    sample_rows,
    sample_share,
)
from fuseline.plan.expr import AggregateCall, Call, Expr, Literal
from fuseline.plan.logical import Logical, free_columns
from fuseline.plan.temporal import zones
from fuseline.plan.types import BIGINT, NULL, UUID
from fuseline.plan.window.window_call import Over
from fuseline.plan.window.windowed import WindowRewriter
from fuseline.sql.parsing.pieces import span_of

from ...parsing.known_calls import RandomUuid, TimedUuid
from ...parsing.unread import use
from ..constants.known_values import known_value
from ..scope import Scope
from ..udf.drawing_calls import find_draw

DEFAULT_OF_ROWS = "the default of rows"  # which are numbered where they are stored
CELL_OF_ROWS = "VALUES for rows"  # of which each is computed for many
_MOST_DRAWN = 10**9  # rows of a sample, as in DuckDB
_IN_ROWS = (
    "WHERE",
    "the arguments of an aggregate",
    "SET",
    "RETURNING",
    DEFAULT_OF_ROWS,
    CELL_OF_ROWS,
)


def _bind_random(node: exp.Expr, scope: Scope) -> Expr:
    """random(): a DOUBLE from 0 to below 1, another one for each row and each place in the text."""
    return drawn(*_row_and_seed(node, scope, "random()"))


def _bind_random_uuid(node: exp.Expr, scope: Scope) -> Expr:
    return Call("random_uuid", _row_and_seed(node, scope, "uuid()"), UUID, span_of(node))


def _bind_timed_uuid(node: exp.Expr, scope: Scope) -> Expr:
    """uuidv7(): a UUID that begins with the time of the statement."""
    millis = Literal(int(zones.now().timestamp() * 1000), BIGINT)
    args = (*_row_and_seed(node, scope, "uuidv7()"), millis)
    return Call("uuid_of_time", args, UUID, span_of(node))


def _row_and_seed(node: exp.Expr, scope: Scope, what: str) -> tuple[Expr, Expr]:
    """Return the number of the row and the seed of a place in the text; raises `Unsupported` where no row is numbered."""
    if node.args:
        raise InvalidQuery(f"{what} takes no arguments.", span_of(node))
    seed = _seed(scope, what)
    return row_number(node, scope, what), seed


def row_number(node: exp.Expr, scope: Scope, what: str) -> Expr:
    """Return the number of the row that a call is for, which rows of a SELECT have, and of WHERE; raises `Unsupported` elsewhere."""
    place = span_of(node)
    if scope.clause == "VALUES":
        return Literal(0, BIGINT)
    if node.find_ancestor(exp.Lambda, exp.Comprehension) is not None:
        raise Unsupported(f"{what} is not supported in a lambda.", place)
    if scope.in_window or not (scope.allow_windows or scope.clause in _IN_ROWS):
        raise Unsupported(
            f"{what} is not supported in {scope.clause}: name it in the SELECT list of a subquery.",
            place,
        )
    return Over(ROW_NUMBER, span=place)


def bind_setseed(node: exp.Expr, scope: Scope) -> Expr:
    """setseed(x): what is drawn from now on depends on x alone; NULL."""
    place = span_of(node)
    if len(node.expressions) != 1:
        raise InvalidQuery("setseed() takes a number from -1 to 1.", place)
    value = known_value(scope.bind(node.expressions[0]), "The seed of setseed()", scope)
    if not isinstance(value, int | float | Decimal) or not -1 <= value <= 1:
        raise InvalidQuery("setseed() takes a number from -1 to 1.", place)
    scope.session.catalog.session.seeds = Random(float(value))
    scope.session.passing.append("setseed()")
    return Literal(None, NULL, place)


def _seed(scope: Scope, what: str) -> Literal:
    scope.session.passing.append(what)
    return Literal(scope.session.catalog.session.seeds.getrandbits(SEED_BITS), BIGINT)


def sampled(plan: Logical, node: exp.Expr, scope: Scope) -> Logical:
    """Return a sample of rows: USING SAMPLE and TABLESAMPLE."""
    percent, size, given = (node.args.get(key) for key in ("percent", "size", "seed"))
    amount = percent if size is None else size
    assert isinstance(amount, exp.Expr)
    by = node.args.get("method")
    method = by.name.upper() if isinstance(by, exp.Var) else "SYSTEM"
    use(node, *(part for part in (by, given, amount) if isinstance(part, exp.Expr)))
    if method not in ("SYSTEM", "BERNOULLI", "RESERVOIR"):
        raise InvalidQuery(
            f"There is no method {method} of samples: there are SYSTEM, BERNOULLI and RESERVOIR.",
            span_of(by) or span_of(amount),
        )
    if isinstance(given, exp.Expr):
        seed: Expr = Literal(int(given.name), BIGINT)
    else:
        seed = _seed(scope, "SAMPLE")
    if percent is not None:
        return sample_share(plan, _share(percent), seed, cast("Method", method))
    if method == "BERNOULLI":
        raise InvalidQuery(
            "BERNOULLI takes a percentage: write 10%, or RESERVOIR for a number of rows.",
            span_of(amount),
        )
    count = round(Decimal(amount.name))  # halves to the even number
    if count > _MOST_DRAWN:
        raise InvalidQuery(
            f"A sample has at most {_MOST_DRAWN:,} rows: write a percentage.", span_of(amount)
        )
    return sample_rows(plan, count, seed)


def _share(percent: exp.Expr) -> float:
    value = float(percent.name)
    if not 0 <= value <= 100:
        raise InvalidQuery("A sample has at least 0% and at most 100%.", span_of(percent))
    return value / 100


def refuse_draws_by_row(plan: Logical, node: exp.Expr, scope: Scope) -> None:
    """Raise `Unsupported` for random() and samples in a subquery that reads columns of the query around it."""
    if scope.outer is None or not scope.session.passing:
        return
    draw = find_draw(node, scope.session.catalog, exp.Rand, exp.TableSample)
    if draw is not None and free_columns(plan):
        raise Unsupported(
            "random(), samples and functions with side effects are not supported in a subquery that reads columns of the query around it.",
            span_of(draw),
        )


HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Expr]] = {
    exp.Rand: _bind_random,
    RandomUuid: _bind_random_uuid,
    TimedUuid: _bind_timed_uuid,
}


class ArgumentRewriter:
    """Rewrites what stands inside of aggregates, where the only windows are those of random()."""

    def __init__(self, plan: Logical) -> None:
        self._rows = WindowRewriter(plan)

    def rewrite(self, expr: Expr) -> Expr:
        if not expr.children:
            return expr
        inside = self._rows if isinstance(expr, AggregateCall) else self
        return expr.with_children([inside.rewrite(child) for child in expr.children])

    def plan(self) -> Logical:
        return self._rows.plan()
