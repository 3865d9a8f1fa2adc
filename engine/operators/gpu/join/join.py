"""Joins: equality joins on libcudf's hash tables, other conditions pair by pair.

The keys decide first and only they are read; columns that the parents want are gathered at the end, by row number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pylibcudf as plc

from ....errors import ExecutionError
from ....plan import physical as p
from ....plan.join_kinds import JoinKind
from ....records import dataclass
from ...context import Context
from .. import table as tables
from ..columns import BOOL, EQUAL, as_key, constant, empty, scalar, select, without_nulls
from ..dictionaries import Coded, Held, joint_codes, plain
from ..few_rows import run_on_host
from ..functions.expressions import selection
from ..late_materialization import together
from ..memory.device import is_out_of_memory, on_device
from ..table import MAX_ROWS, Table, check_rows
from .join_pairs import (
    Pairs,
    all_pairs,
    check_single,
    concat_pairs,
    finish,
    in_a_pair,
    joined,
    marked,
    matching,
    no_pairs,
)

UNEQUAL = plc.types.NullEquality.UNEQUAL

PAIRS_A_BLOCK = 1 << 24  # of a nested loop: 128 MB of row numbers, and the condition's columns
LOPSIDED = 4  # a right side this many times the left one is thinned out before it is hashed


@dataclass(frozen=True)
class Keys:
    """The key columns of both sides, in the form that libcudf compares as SQL does."""

    left: plc.Table
    right: plc.Table
    nulls: plc.types.NullEquality

    def swapped(self) -> Keys:
        return Keys(self.right, self.left, self.nulls)


def _keys(
    left: Sequence[plc.Column], right: Sequence[plc.Column], nulls: plc.types.NullEquality
) -> Keys:
    """Return keys of which none with NULL is a slice: libcudf reads a lone key's mask from its first bit, wherever the slice begins."""
    lefts, rights = (
        [key.copy() if key.offset() and key.null_count() else key for key in side]
        for side in (left, right)
    )
    return Keys(plc.Table(lefts), plc.Table(rights), nulls)


@on_device
def hash_join(node: p.HashJoin, inputs: tuple[Table, ...], context: Context) -> Table:
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    left, right = inputs
    if node.null_aware:
        return _null_aware(node, left, right)
    if not left.num_rows or not right.num_rows:
        return finish(node, left, right, no_pairs())
    keys = join_keys(node, left, right)
    if node.residual is not None:
        return finish(node, left, right, _residual_pairs(node, left, right, keys, context))
    match node.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            rows = filtered(keys, node.kind)
            return tables.gather(left, rows, node.columns)
        case JoinKind.MARK:
            return marked(node, left, in_a_pair(filtered(keys, JoinKind.SEMI), left.num_rows))
        case JoinKind.INNER:
            return joined(node, left, right, inner_pairs(keys))
        case JoinKind.FULL:
            return joined(node, left, right, _pairs(plc.join.full_join, keys))
        case JoinKind.RIGHT:
            pairs = outer_pairs(keys.swapped())
            if pairs is None:
                return finish(node, left, right, inner_pairs(keys))
            return joined(node, left, right, Pairs(pairs.right, pairs.left))
        case JoinKind.LEFT | JoinKind.SINGLE:
            pairs = outer_pairs(keys)
            if pairs is None:
                return finish(node, left, right, inner_pairs(keys))
            if node.kind is JoinKind.SINGLE:
                check_single(node, pairs.count, left.num_rows)
            return joined(node, left, right, pairs)


def join_keys(node: p.HashJoin, left: Table, right: Table) -> Keys:
    """Return the keys, with NULL coded as a column of its own where keys differ in how they treat it."""
    columns = zip(node.left_keys, node.right_keys, strict=True)
    pairs = [_comparable(left.columns[a.id], right.columns[b.id]) for a, b in columns]
    lefts, rights = [a for a, _ in pairs], [b for _, b in pairs]
    # NULL only ever equals NULL: where one side has none, both rules mean the same.
    nullable = [bool(a.null_count() and b.null_count()) for a, b in zip(lefts, rights, strict=True)]
    asked = [equal for equal, both in zip(node.null_equal, nullable, strict=True) if both]
    if all(asked):
        return _keys(lefts, rights, EQUAL if asked else UNEQUAL)
    for i, equal in enumerate(node.null_equal):
        if equal and nullable[i]:
            filler = "" if lefts[i].type().id() == plc.TypeId.STRING else 0
            for side in (lefts, rights):
                side.append(plc.unary.is_null(side[i]))
                side[i] = without_nulls(side[i], filler)
    return _keys(lefts, rights, UNEQUAL)


def _comparable(left: Held, right: Held) -> tuple[plc.Column, plc.Column]:
    """Return two key columns in a form in which equal values have equal bits."""
    coded = joint_codes([left, right])
    if coded is not None:
        return coded[0].codes, coded[1].codes
    return as_key(plain(left)), as_key(plain(right))


def inner_pairs(keys: Keys) -> Pairs:
    return _pairs(plc.join.inner_join, keys)


def outer_pairs(keys: Keys) -> Pairs | None:
    """Return the pairs of a left outer join, or None when an inner join and a search for lone rows is cheaper.

    libcudf hashes the right side of an outer join, whatever its size, and the smaller one of an inner join.
    """
    if keys.right.num_rows() > LOPSIDED * keys.left.num_rows():
        return None
    return _pairs(plc.join.left_join, keys)


def filtered(keys: Keys, kind: JoinKind) -> plc.Column:
    """Return the numbers of the left rows with (semi) or without (anti) a partner.

    libcudf hashes the right side.  When that is the larger one by far, only its rows that do have a partner are hashed:
    finding them hashes the small side, and a probe costs less than an insertion.
    """
    right = keys.right
    if right.num_rows() > LOPSIDED * keys.left.num_rows():
        partners = plc.join.left_semi_join(right, keys.left, keys.nulls)
        right = plc.copying.gather(right, partners, tables.DONT_CHECK)
    if kind is JoinKind.SEMI:
        return plc.join.left_semi_join(keys.left, right, keys.nulls)
    return plc.join.left_anti_join(keys.left, right, keys.nulls)


def _pairs(join: Callable[..., tuple[plc.Column, plc.Column]], keys: Keys) -> Pairs:
    try:
        return Pairs(*join(keys.left, keys.right, keys.nulls))
    except OverflowError as error:
        raise ExecutionError(
            f"The join makes more than {MAX_ROWS:,} rows, the most that a table on the GPU holds: "
            "filter or aggregate earlier, or run the query with device='cpu'."
        ) from error


def _residual_pairs(
    node: p.HashJoin, left: Table, right: Table, keys: Keys, context: Context, start: int = 0
) -> Pairs:
    """Return the pairs with equal keys that the residual accepts; too many candidates are taken in two halves."""
    assert node.residual is not None
    rows = keys.left.num_rows()
    try:
        lefts, rights = plc.join.inner_join(keys.left, keys.right, keys.nulls)
        if start:
            lefts = _shifted(lefts, start)
        return matching(Pairs(lefts, rights), node.residual, left, right)
    except (MemoryError, OverflowError, RuntimeError) as error:
        too_many = isinstance(error, OverflowError) or is_out_of_memory(error)
        if not too_many or rows < 2:
            raise
    context.check()
    parts = []
    for first, part in zip((0, rows // 2), plc.copying.split(keys.left, [rows // 2]), strict=True):
        half = _keys(part.columns(), keys.right.columns(), keys.nulls)
        parts.append(_residual_pairs(node, left, right, half, context, start + first))
    return concat_pairs(parts)


def _shifted(rows: plc.Column, start: int) -> plc.Column:
    by = scalar(start, rows.type())
    return plc.binaryop.binary_operation(rows, by, plc.binaryop.BinaryOperator.ADD, rows.type())


def _null_aware(node: p.HashJoin, left: Table, right: Table) -> Table:
    """NOT IN and IN: a comparison with NULL is unknown, unless there is nothing to compare with."""
    left_key, right_key = left[node.left_keys[0]], right[node.right_keys[0]]
    keys = _keys([as_key(left_key)], [as_key(right_key)], UNEQUAL)
    if not left.num_rows or not right.num_rows:
        return marked(node, left, in_a_pair(no_pairs().left, left.num_rows))
    found = in_a_pair(filtered(keys, JoinKind.SEMI), left.num_rows)
    if right_key.null_count():
        known = found
    elif left_key.null_count():
        known = plc.unary.is_valid(left_key)
    else:
        return marked(node, left, found)
    # NOT of NULL is NULL, so an anti join drops the unknown rows as it does the matching ones.
    return marked(node, left, select(known, found, scalar(None, BOOL)))


@on_device
def nested_loop_join(node: p.NestedLoopJoin, inputs: tuple[Table, ...], context: Context) -> Table:
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    left, right = inputs
    condition = node.condition
    if condition is None:
        return _cross(node, left, right, context)
    if not left.num_rows or not right.num_rows:
        return finish(node, left, right, no_pairs())
    if node.kind is JoinKind.INNER and 1 in (left.num_rows, right.num_rows):
        both = _side_by_side(left, right)
        return tables.keep_rows(both, selection(condition, both), node.columns)
    blocks = all_pairs(left.num_rows, right.num_rows, PAIRS_A_BLOCK, context)
    parts = [matching(block, condition, left, right) for block in blocks]
    return finish(node, left, right, concat_pairs(parts))


def _cross(node: p.NestedLoopJoin, left: Table, right: Table, context: Context) -> Table:
    """A join without a condition: every pair matches."""
    if node.kind.is_membership:
        return marked(node, left, constant(right.num_rows > 0, BOOL, left.num_rows))
    count = left.num_rows * right.num_rows
    check_rows(count, "The cross product")
    if not count:
        return finish(node, left, right, no_pairs())
    if node.kind is JoinKind.SINGLE:
        check_single(node, right.num_rows, 1)
    if 1 in (left.num_rows, right.num_rows):
        both = _side_by_side(left, right)
        return tables.only(both, node.columns)
    pairs = concat_pairs(list(all_pairs(left.num_rows, right.num_rows, count, context)))
    return joined(node, left, right, pairs)


def _side_by_side(left: Table, right: Table) -> Table:
    """The cross product when one side is a single row, whose values are repeated."""
    count = left.num_rows * right.num_rows
    sides: list[Mapping[int, Held]] = []
    for table in (left, right):
        repeats = table.num_rows == 1 and count != 1
        held = table.columns
        sides.append({i: _repeated(h, count) for i, h in held.items()} if repeats else held)
    return Table(together(*sides), count)


def _repeated(held: Held, count: int) -> Held:
    if isinstance(held, Coded):
        return Coded(_repeated(held.codes, count), held.keys)
    column = held
    if not count:
        return empty(column.type())
    return plc.Column.from_scalar(column.to_scalar(), count)
