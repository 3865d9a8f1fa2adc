"""ASOF and POSITIONAL joins, which pair rows by their order, as windows that number rows and joins of the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InvalidQuery, Span, Unsupported
from .. import infer
from ..copies import fresh
from ..expr import (
    Call,
    Column,
    ColumnRef,
    Expr,
    Literal,
    SortKey,
    columns_of,
    conjunction,
    conjuncts,
    new_column,
    substitute,
)
from ..functions import MIRRORED, SCALAR
from ..join_kinds import JoinKind
from ..logical import (
    Common,
    CommonScan,
    Filter,
    Join,
    Logical,
    Project,
    SetOperation,
    Sort,
    free_columns,
)
from ..types import BIGINT
from ..window.window_call import SO_FAR, Window, WindowCall

_TAKES = "An ASOF join takes equalities and one comparison by <, <=, > or >= of the two tables, combined by AND"


@dataclass(frozen=True)
class _Match:
    """What an ASOF join compares: expressions that are equal, and two of which the left one stands before the right one or behind it."""

    left_keys: tuple[Expr, ...]
    right_keys: tuple[Expr, ...]
    left_order: Expr
    right_order: Expr
    comparison: str


def positional_join(left: Logical, right: Logical) -> Logical:
    """Pair the rows of two tables by their places; of the longer one the rest stands alone."""
    first, mine = _numbered(left)
    second, theirs = _numbered(right)
    pairs = infer.call("eq", [ColumnRef(mine), ColumnRef(theirs)])
    place = infer.call("coalesce", [ColumnRef(mine), ColumnRef(theirs)])
    return Sort(Join(first, second, JoinKind.FULL, pairs), (SortKey(place),))


def _numbered(plan: Logical) -> tuple[Logical, Column]:
    number = new_column("row_number", BIGINT)
    return Window(plan, (), (), ((number, WindowCall("row_number", (), BIGINT)),)), number


def asof_join(
    left: Logical, right: Logical, kind: JoinKind, condition: Expr, span: Span | None
) -> Logical:
    """Pair each left row with the right row that is nearest before it (`>=`, `>`) or behind it (`<=`, `<`), among those of equal keys.

    Rows of both sides are sorted together once, and each left row takes the number of the last right row: one merge, by whatever sorts here.
    """
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        raise Unsupported(
            f"An ASOF {kind.upper()} JOIN is not supported: there are ASOF JOIN and ASOF LEFT JOIN.",
            span,
        )
    if free_columns(right) & set(left.columns):
        raise Unsupported("The right side of an ASOF join cannot be LATERAL.", span)
    match = _match(condition, left, right, span)
    numbered, number = _numbered(right)
    # The right side is read twice, for its order and for its rows, and its numbers have to be the same
    plan, renamed = fresh(numbered)
    common = Common("asof", plan)
    candidates = _candidates(common, match, renamed, number)
    passed, found = _last_before(left, candidates, match)
    rows = CommonScan(common, numbered.columns, tuple(renamed.get(c, c) for c in numbered.columns))
    pairs = infer.call("eq", [ColumnRef(found), ColumnRef(number)])
    return Join(passed, rows, kind, pairs)


def _match(condition: Expr, left: Logical, right: Logical, span: Span | None) -> _Match:
    mine, theirs = set(left.columns), set(right.columns)
    keys: list[tuple[Expr, Expr]] = []
    orders: list[tuple[Expr, Expr, str]] = []
    for part in conjuncts(condition):
        sides = _sides(part, mine, theirs)
        row = None if sides is None else SCALAR[sides[2]]
        if sides is None or row is None or not row.bound or row.nulls != "propagate":
            raise InvalidQuery(f"{_TAKES}.", part.span or span)
        if row.bound == "both":
            keys.append(sides[:2])
        else:
            orders.append(sides)
    if len(orders) != 1:
        raise InvalidQuery(
            f"{_TAKES}, and here are {len(orders)} comparisons.", condition.span or span
        )
    lefts, rights = tuple(zip(*keys, strict=True)) if keys else ((), ())
    return _Match(lefts, rights, *orders[0])


def _sides(part: Expr, mine: set[Column], theirs: set[Column]) -> tuple[Expr, Expr, str] | None:
    """Return the left side's expression, the right side's, and how the first compares to the second."""
    if not isinstance(part, Call) or len(part.args) != 2 or part.function not in MIRRORED:
        return None
    first, second = part.args
    if columns_of(first) <= mine and columns_of(second) <= theirs:
        return first, second, part.function
    if columns_of(first) <= theirs and columns_of(second) <= mine:
        return second, first, MIRRORED[part.function]
    return None


def _candidates(
    common: Common, match: _Match, renamed: dict[Column, Column], number: Column
) -> tuple[Logical, tuple[Expr, ...], Expr]:
    """Return the right rows that can be found, their keys with what they are ordered by, and their numbers."""
    made = {c: new_column(c.name, c.type) for c in common.plan.columns}
    scan = CommonScan(common, tuple(made.values()), tuple(made))

    def here(expr: Expr) -> Expr:
        return substitute(expr, lambda c: ColumnRef(made[renamed.get(c, c)]))

    keys = tuple(map(here, (*match.right_keys, match.right_order)))
    known = conjunction([infer.call("is_not_null", [key]) for key in keys])
    return Filter(scan, infer.condition(known)), keys, here(ColumnRef(number))


def _last_before(
    left: Logical, candidates: tuple[Logical, tuple[Expr, ...], Expr], match: _Match
) -> tuple[Logical, Column]:
    """Return the left rows with one more column: the number of the right row that each finds."""
    right, right_keys, number = candidates
    left_keys = (*match.left_keys, match.left_order)
    # Which of a left and a right row with one key comes first: the right one where it is found by an equal key
    side = Literal(1 if "=" in SCALAR[match.comparison].signature else -1, BIGINT)
    columns = left.columns
    made = tuple(new_column(e.type.kind.name, e.type) for e in left_keys)
    from_left = [*left_keys, side, Literal(None, BIGINT), *map(ColumnRef, columns)]
    zero = Literal(0, BIGINT)
    from_right = [*right_keys, zero, number, *(Literal(None, c.type) for c in columns)]
    place, known = new_column("side", BIGINT), new_column("number", BIGINT)
    passed = tuple(new_column(c.name, c.type) for c in columns)
    both = SetOperation(
        _projected(right, from_right),
        _projected(left, from_left),
        "union",
        True,
        (*made, place, known, *passed),
    )
    backwards = SCALAR[match.comparison].bound == "upper"
    order = (SortKey(ColumnRef(made[-1]), descending=backwards), SortKey(ColumnRef(place)))
    last = new_column("found", BIGINT)
    call = WindowCall("last_value", (ColumnRef(known),), BIGINT, SO_FAR, ignore_nulls=True)
    partition = tuple(map(ColumnRef, made[:-1]))
    window = Window(both, partition, order, ((last, call),))
    is_left = infer.call("ne", [ColumnRef(place), zero])
    found = new_column("found", BIGINT)
    none = Literal(None, BIGINT)
    value = infer.case([infer.call("is_not_null", [ColumnRef(made[-1])])], [ColumnRef(last)], none)
    items = (*zip(columns, map(ColumnRef, passed), strict=True), (found, value))
    return Project(Filter(window, infer.condition(is_left)), items), found


def _projected(plan: Logical, values: Sequence[Expr]) -> Project:
    return Project(plan, tuple((new_column("value", e.type), e) for e in values))
