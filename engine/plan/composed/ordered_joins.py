"""ASOF and POSITIONAL joins, which pair rows by their order, as windows that number rows and joins of the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidQuery, Span, Unsupported
from ...records import dataclass
from .. import expr as ex, infer, logical as rel
from ..copies import fresh
from ..functions import MIRRORED, SCALAR
from ..join_kinds import JoinKind
from ..types import BIGINT
from ..window.window_call import SO_FAR, Window, WindowCall

_TAKES = "An ASOF join takes equalities and one comparison by <, <=, > or >= of the two tables, combined by AND"


@dataclass(frozen=True)
class _Match:
    """What an ASOF join compares: expressions that are equal, and two of which the left one stands before the right one or behind it."""

    left_keys: tuple[ex.Expr, ...]
    right_keys: tuple[ex.Expr, ...]
    left_order: ex.Expr
    right_order: ex.Expr
    comparison: str


def positional_join(left: rel.Logical, right: rel.Logical) -> rel.Logical:
    """Pair the rows of two tables by their places; of the longer one the rest stands alone."""
    first, mine = _numbered(left)
    second, theirs = _numbered(right)
    pairs = infer.call("eq", [ex.ColumnRef(mine), ex.ColumnRef(theirs)])
    place = infer.call("coalesce", [ex.ColumnRef(mine), ex.ColumnRef(theirs)])
    return rel.Sort(rel.Join(first, second, JoinKind.FULL, pairs), (ex.SortKey(place),))


def _numbered(plan: rel.Logical) -> tuple[rel.Logical, ex.Column]:
    number = ex.new_column("row_number", BIGINT)
    return Window(plan, (), (), ((number, WindowCall("row_number", (), BIGINT)),)), number


def asof_join(
    left: rel.Logical, right: rel.Logical, kind: JoinKind, condition: ex.Expr, span: Span | None
) -> rel.Logical:
    """Pair each left row with the right row that is nearest before it (`>=`, `>`) or behind it (`<=`, `<`), among those of equal keys.

    Rows of both sides are sorted together once, and each left row takes the number of the last right row: one merge, by whatever sorts here.
    """
    if rel.free_columns(right) & set(left.columns):
        raise Unsupported("The right side of an ASOF join cannot be LATERAL.", span)
    match = _match(condition, left, right, span)
    numbered, number = _numbered(right)
    # The right side is read twice, for its order and for its rows, and its numbers have to be the same
    plan, renamed = fresh(numbered)
    common = rel.Common("asof", plan)
    candidates = _candidates(common, match, renamed, number)
    passed, found = _last_before(left, candidates, match)
    if kind.is_filter:
        test = "is_not_null" if kind is JoinKind.SEMI else "is_null"
        kept = rel.Filter(passed, infer.call(test, [ex.ColumnRef(found)]))
        return rel.Project(kept, tuple((c, ex.ColumnRef(c)) for c in left.columns))
    rows = rel.CommonScan(
        common, numbered.columns, tuple(renamed.get(c, c) for c in numbered.columns)
    )
    pairs = infer.call("eq", [ex.ColumnRef(found), ex.ColumnRef(number)])
    return rel.Join(passed, rows, kind, pairs)


def _match(condition: ex.Expr, left: rel.Logical, right: rel.Logical, span: Span | None) -> _Match:
    mine, theirs = set(left.columns), set(right.columns)
    keys: list[tuple[ex.Expr, ex.Expr]] = []
    orders: list[tuple[ex.Expr, ex.Expr, str]] = []
    for part in ex.conjuncts(condition):
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


def _sides(
    part: ex.Expr, mine: set[ex.Column], theirs: set[ex.Column]
) -> tuple[ex.Expr, ex.Expr, str] | None:
    """Return the left side's expression, the right side's, and how the first compares to the second."""
    if not isinstance(part, ex.Call) or len(part.args) != 2 or part.function not in MIRRORED:
        return None
    first, second = part.args
    if ex.columns_of(first) <= mine and ex.columns_of(second) <= theirs:
        return first, second, part.function
    if ex.columns_of(first) <= theirs and ex.columns_of(second) <= mine:
        return second, first, MIRRORED[part.function]
    return None


def _candidates(
    common: rel.Common, match: _Match, renamed: dict[ex.Column, ex.Column], number: ex.Column
) -> tuple[rel.Logical, tuple[ex.Expr, ...], ex.Expr]:
    """Return the right rows that can be found, their keys with what they are ordered by, and their numbers."""
    made = {c: ex.new_column(c.name, c.type) for c in common.plan.columns}
    scan = rel.CommonScan(common, tuple(made.values()), tuple(made))

    def here(expr: ex.Expr) -> ex.Expr:
        return ex.substitute(expr, lambda c: ex.ColumnRef(made[renamed.get(c, c)]))

    keys = tuple(map(here, (*match.right_keys, match.right_order)))
    known = ex.conjunction([infer.call("is_not_null", [key]) for key in keys])
    return rel.Filter(scan, infer.condition(known)), keys, here(ex.ColumnRef(number))


def _last_before(
    left: rel.Logical, candidates: tuple[rel.Logical, tuple[ex.Expr, ...], ex.Expr], match: _Match
) -> tuple[rel.Logical, ex.Column]:
    """Return the left rows with one more column: the number of the right row that each finds."""
    right, right_keys, number = candidates
    left_keys = (*match.left_keys, match.left_order)
    # Which of a left and a right row with one key comes first: the right one where it is found by an equal key
    side = ex.Literal(1 if "=" in SCALAR[match.comparison].signature else -1, BIGINT)
    columns = left.columns
    made = tuple(ex.new_column(e.type.kind.name, e.type) for e in left_keys)
    from_left = [*left_keys, side, ex.Literal(None, BIGINT), *map(ex.ColumnRef, columns)]
    zero = ex.Literal(0, BIGINT)
    from_right = [*right_keys, zero, number, *(ex.Literal(None, c.type) for c in columns)]
    place, known = ex.new_column("side", BIGINT), ex.new_column("number", BIGINT)
    passed = tuple(ex.new_column(c.name, c.type) for c in columns)
    both = rel.SetOperation(
        _projected(right, from_right),
        _projected(left, from_left),
        "union",
        True,
        (*made, place, known, *passed),
    )
    backwards = SCALAR[match.comparison].bound == "upper"
    order = (
        ex.SortKey(ex.ColumnRef(made[-1]), descending=backwards),
        ex.SortKey(ex.ColumnRef(place)),
    )
    last = ex.new_column("found", BIGINT)
    call = WindowCall("last_value", (ex.ColumnRef(known),), BIGINT, SO_FAR, ignore_nulls=True)
    partition = tuple(map(ex.ColumnRef, made[:-1]))
    window = Window(both, partition, order, ((last, call),))
    is_left = infer.call("ne", [ex.ColumnRef(place), zero])
    found = ex.new_column("found", BIGINT)
    none = ex.Literal(None, BIGINT)
    value = infer.case(
        [infer.call("is_not_null", [ex.ColumnRef(made[-1])])], [ex.ColumnRef(last)], none
    )
    items = (*zip(columns, map(ex.ColumnRef, passed), strict=True), (found, value))
    return rel.Project(rel.Filter(window, infer.condition(is_left)), items), found


def _projected(plan: rel.Logical, values: Sequence[ex.Expr]) -> rel.Project:
    return rel.Project(plan, tuple((ex.new_column("value", e.type), e) for e in values))
