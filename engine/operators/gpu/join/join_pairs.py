"""From pairs of matching rows to the result of any kind of join.

libcudf's joins give row numbers (INT32 columns).  Pairs are what an inner join finds; outer joins add the rows that are in no
pair, semi, anti and mark joins only ask whether a row is in one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pylibcudf as plc

from ....errors import TWO_ROWS, ExecutionError
from ....plan import physical as p
from ....plan.expr import Expr, columns_of
from ....plan.join_kinds import JoinKind
from ....records import dataclass
from ...context import Context
from .. import table as tables
from ..columns import BOOL, INT32, constant, empty, negate, scalar, sequence
from ..functions.expressions import selection
from ..late_materialization import together
from ..table import Table, check_rows, concat_columns, only

Join = p.HashJoin | p.NestedLoopJoin

UNMATCHED = -(1 << 31)  # libcudf's row number for "no row"; gathering it with NULLIFY gives NULL


@dataclass(frozen=True)
class Pairs:
    """Row numbers of both sides, position by position; `UNMATCHED` where a side has no row."""

    left: plc.Column
    right: plc.Column

    @property
    def count(self) -> int:
        return int(self.left.size())


def no_pairs() -> Pairs:
    return Pairs(empty(INT32), empty(INT32))


def concat_pairs(parts: list[Pairs]) -> Pairs:
    if not parts:
        return no_pairs()
    check_rows(sum(part.count for part in parts), "The join")
    return Pairs(concat_columns([x.left for x in parts]), concat_columns([x.right for x in parts]))


def matching(pairs: Pairs, condition: Expr, left: Table, right: Table) -> Pairs:
    """Return the pairs for which a condition over columns of both sides is TRUE."""
    if not pairs.count:
        return pairs
    mask = selection(condition, pair_columns(pairs, condition, left, right))
    kept = plc.stream_compaction.apply_retention_mask(plc.Table([pairs.left, pairs.right]), mask)
    return Pairs(*kept.columns())


def pair_columns(pairs: Pairs, condition: Expr, left: Table, right: Table) -> Table:
    """Return the columns that a condition reads, a row for each pair."""
    read = columns_of(condition)
    from_left = tables.gather(left, pairs.left, [c for c in read if c.id in left.columns])
    from_right = tables.gather(right, pairs.right, [c for c in read if c.id in right.columns])
    return Table(together(from_left.columns, from_right.columns), pairs.count)


def all_pairs(left_rows: int, right_rows: int, block: int, context: Context) -> Iterator[Pairs]:
    """Yield all pairs of row numbers, about `block` at a time."""
    if not left_rows or not right_rows:
        return
    step = max(1, block // right_rows)
    numbers = sequence(right_rows)
    for start in range(0, left_rows, step):
        context.check()
        count = min(step, left_rows - start)
        (lefts,) = plc.filling.repeat(plc.Table([sequence(count, start)]), right_rows).columns()
        (rights,) = plc.reshape.tile(plc.Table([numbers]), count).columns()
        yield Pairs(lefts, rights)


def in_a_pair(rows: plc.Column, count: int) -> plc.Column:
    """Return for each of `count` rows whether its number is among `rows`."""
    flags = constant(False, BOOL, count)
    if not count or not rows.size():
        return flags
    return plc.copying.scatter([scalar(True, BOOL)], rows, plc.Table([flags])).columns()[0]


def unpaired(rows: plc.Column, count: int) -> plc.Column:
    """Return the numbers, of `count` rows, that are not among `rows`."""
    numbers = sequence(count)
    if not count or not rows.size():
        return numbers
    alone = negate(in_a_pair(rows, count))
    kept = plc.stream_compaction.apply_retention_mask(plc.Table([numbers]), alone)
    return kept.columns()[0]


def add_left(pairs: Pairs, alone: plc.Column) -> Pairs:
    """Append left rows that have no partner."""
    return concat_pairs([pairs, Pairs(alone, _no_partner(alone.size()))])


def add_right(pairs: Pairs, alone: plc.Column) -> Pairs:
    """Append right rows that have no partner."""
    return concat_pairs([pairs, Pairs(_no_partner(alone.size()), alone)])


def _no_partner(count: int) -> plc.Column:
    return constant(UNMATCHED, INT32, count)


def finish(node: Join, left: Table, right: Table, pairs: Pairs) -> Table:
    """Return the join's result from the pairs of rows that match."""
    match node.kind:
        case JoinKind.INNER:
            return joined(node, left, right, pairs)
        case JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK:
            return marked(node, left, in_a_pair(pairs.left, left.num_rows))
        case JoinKind.RIGHT:
            alone = unpaired(pairs.right, right.num_rows)
            return joined(node, left, right, add_right(pairs, alone))
        case JoinKind.LEFT | JoinKind.SINGLE:
            alone = unpaired(pairs.left, left.num_rows)
            result = add_left(pairs, alone)
            if node.kind is JoinKind.SINGLE:
                check_single(node, result.count, left.num_rows)
            return joined(node, left, right, result)
        case JoinKind.FULL:
            lone_right = unpaired(pairs.right, right.num_rows)
            result = add_left(pairs, unpaired(pairs.left, left.num_rows))
            return joined(node, left, right, add_right(result, lone_right))


def check_single(node: Join, result_rows: int, left_rows: int) -> None:
    """Raise `ExecutionError` when a left row came out more than once."""
    if result_rows > left_rows:
        raise ExecutionError(TWO_ROWS, node.span)


def joined(node: Join, left: Table, right: Table, pairs: Pairs) -> Table:
    """Gather the columns that the join passes on."""
    left_columns = [c for c in node.columns if c.id in left.columns]
    right_columns = [c for c in node.columns if c.id in right.columns]
    from_left = tables.gather(left, pairs.left, left_columns, node.kind.keeps_right)
    outer = node.kind.nulls_right
    from_right = tables.gather(right, pairs.right, right_columns, outer)
    return Table(together(from_left.columns, from_right.columns), pairs.count)


def marked(node: Join, left: Table, mark: plc.Column) -> Table:
    """Return the result of a semi, anti or mark join from a BOOL8 column: whether each left row has a match."""
    if node.kind is JoinKind.SEMI:
        return tables.keep_rows(left, mark, node.columns)
    if node.kind is JoinKind.ANTI:
        return tables.keep_rows(left, negate(mark), node.columns)
    assert node.mark is not None
    every = Table(together(left.columns, {node.mark.id: mark}), left.num_rows)
    return only(every, node.columns)
