"""The CUDA target's packed counts: while a kernel runs, the counts of neighbouring groups share words of 32 bits.

Rows that come to the groups of a table at random wait for device memory where the second-level cache does not hold the table: an
H200 adds 34 rows a nanosecond to 60 MB of counts.  In 8 or 16 bits the table is a quarter or half as large; a kernel written by
hand (`group_unpack`) then gives each count the 32 bits that everything else expects.

A count that outgrows its bits carries into its neighbour, or out of the word.  That is found out by one sum: adding a row adds
1 to the sum of all counts, unless there are carries, of which each takes away 2 ** bits and gives 1 at most.  The sum of
all counts of all packed accumulators is therefore the number of rows added if no count has outgrown its bits, and smaller
if any has: no carry adds to it, so nothing makes up for a loss.  Several rows of a group that are added in one operation
are no more than as many operations.

All of TPC-H SF100, hot on an H200, takes 2.4 % longer without it, Q13 27 % (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..groups.accumulate import Accumulator
from ..loop import Convert, Machine, Number, Select, Term
from ..program import WHOLE_COUNT, Program

if TYPE_CHECKING:
    from .accumulator_layout import Cell

CACHED_BYTES = 24 << 20  # of counts, which the second-level cache holds beside what rows are read
ROOM = 8  # times the rows that a group has on average
LEAST_ROWS = 2  # that reach a slot on average: fewer gain less than it takes to unpack it
BITS = (8, 16)


def count_bits(program: Program, groups: float, least: int) -> int:
    """Choose the bits of a count, `least` or more, where `groups` groups are expected and are addressed directly."""
    grouping, arriving = program.grouping, program.relations[0].rows * program.reach
    if grouping is None or grouping.hashed or grouping.row is not None or program.repeats:
        return WHOLE_COUNT
    slots = grouping.groups
    size = slots * WHOLE_COUNT // 8
    if size <= CACHED_BYTES or arriving < LEAST_ROWS * slots:
        return WHOLE_COUNT
    average = arriving / max(min(groups, slots), 1.0)
    fitting = [bits for bits in BITS if bits >= least and ROOM * average < 1 << bits]
    return fitting[0] if fitting else WHOLE_COUNT


def counts(accumulator: Accumulator) -> bool:
    """Whether each row adds 0 or 1."""
    return accumulator.fold == "add" and _zero_or_one(accumulator.term)


def _zero_or_one(term: Term) -> bool:
    match term:
        case Number(value):
            return value in (0, 1)
        case Select(_, yes, no):
            return _zero_or_one(yes) and _zero_or_one(no)
        case Convert(operand):
            return operand.type is Machine.BOOL or _zero_or_one(operand)
    return False


def packed_words(slots: int, bits: int) -> int:
    """How many words the counts of so many slots take."""
    return -(-slots * bits // WHOLE_COUNT)


def begin_added(cells: Sequence[Cell]) -> list[str]:
    """What a thread has added to packed counts: nothing."""
    return ["added = np.int32(0)"] if any(c.packed for c in cells) else []


def fold_packed(cell: Cell, groups: int, value: str) -> list[str]:
    """Add to a count among others of a word, and to what the thread has added."""
    bits, a_word = cell.packed, WHOLE_COUNT // cell.packed
    first = cell.outs[0] * packed_words(groups, bits)
    shift = f"np.int32(np.int32(slot & {a_word - 1}) * np.int32({bits}))"
    return [
        f"more_rows = np.int32({value})",
        f"packed_at = np.uint64(slot) // np.uint64({a_word}) + np.uint64({first})",
        f"cuda.atomic.add(packed, packed_at, np.int32(more_rows << {shift}))",
        "added = np.int32(added + more_rows)",
    ]


def report_added(cells: Sequence[Cell]) -> list[str]:
    """Bring together what the threads of a warp have added; `group_unpack` takes away from it what it finds."""
    if not any(c.packed for c in cells):
        return []
    return [
        "all_added = np.int64(added)",
        "offset = 16",
        "while offset > 0:",
        "    all_added = all_added + cuda.shfl_down_sync(0xFFFFFFFF, all_added, offset)",
        "    offset >>= 1",
        "if cuda.laneid == 0 and all_added != np.int64(0):",
        "    cuda.atomic.add(lost, np.uint32(0), all_added)",
    ]
