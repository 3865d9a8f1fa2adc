"""Aggregates over ranges of places on the device: integers by differences of prefix sums, all else by blocks of powers of two.

A difference of floating-point prefix sums would cancel, and be NaN behind an infinite value; a frame is put together of at most two
blocks of each size instead, as in a segment tree of which one level is there at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import pylibcudf as plc

from .... import stopping
from ....codegen.handwritten import window_kernels as kernels
from ....plan.expr import Column
from ....plan.window.window_call import WindowCall
from ...windows.frames import Ints, Ranges, frame_of, places_before
from ...windows.wavelet import State
from .. import columns as col
from ..aggregate.aggregate_values import ordered_places
from ..aggregate.groups import INCLUDE, Groups, Question, pick
from ..dictionaries import Held
from ..join.join_pairs import UNMATCHED
from ..late_materialization import Bounds, bounds_of
from .device_array import as_array, as_rows, column_of, prefix_sums
from .places import DeviceRows

Op = plc.binaryop.BinaryOperator
Combine = Callable[[State, State], State]

_EXTREMES = {"min": Op.NULL_MIN, "max": Op.NULL_MAX}
# How libcudf and how a kernel of ours scans
_SCANS = {
    "sum": (plc.aggregation.sum, kernels.ADDED),
    "min": (plc.aggregation.min, kernels.LEAST),
    "max": (plc.aggregation.max, kernels.GREATEST),
}
# The smallest and the largest value of types of which libcudf scans extremes
_LIMITS: dict[plc.TypeId, tuple[float, float]] = {
    plc.TypeId.INT32: (-(1 << 31), (1 << 31) - 1),
    plc.TypeId.INT64: (-(1 << 63), (1 << 63) - 1),
    plc.TypeId.FLOAT64: (-np.inf, np.inf),
}
_BITS = {"bit_and": Op.BITWISE_AND, "bit_or": Op.BITWISE_OR, "bit_xor": Op.BITWISE_XOR}


class FrameGroups(Groups):
    """Frames as groups without keys: a question has an answer for each frame.  `columns` are in the order of the window."""

    def __init__(self, call: WindowCall, rows: DeviceRows, columns: Mapping[int, Held]) -> None:
        super().__init__([], rows.places.rows, columns)
        self.call, self.window, self.places = call, rows, rows.places
        self.count = rows.places.rows

    def bounds(self, column: Column) -> Bounds | None:
        return bounds_of(self.window.table.columns, column.id)

    @cached_property
    def ranges(self) -> Ranges:
        return frame_of(self.call, self.window)

    @property
    def is_running(self) -> bool:
        """Whether frames begin with the partition."""
        frame = self.call.frame
        return frame.start == "unbounded preceding" and frame.exclude == "no others"

    @property
    def has_own_row(self) -> bool:
        """Whether each frame that begins with the partition holds the row itself."""
        return self.is_running and self.call.frame.end in ("current row", "unbounded following")

    def _reduce(self, question: Question) -> plc.Column:
        stopping.check()
        column, aggregation = question.argument.column, question.aggregation
        if aggregation == "count_all":
            return column_of(self.ranges.sizes)
        if aggregation == "count":
            return column_of(self._counts(question))
        if aggregation in _EXTREMES:
            return self._extreme(question, column)
        if aggregation == "sum" and column.type().id() != plc.TypeId.FLOAT64:
            answer = self._difference(column)
        else:
            answer = self._combined(column, aggregation)
        return self._where_some(answer, question)

    def _where_some(self, answer: plc.Column, question: Question) -> plc.Column:
        """NULL where a frame has no value."""
        if self.has_own_row and not question.argument.column.null_count():
            return answer
        return col.where_true(answer, column_of(self._counts(question) > 0))

    def _counts(self, question: Question) -> Ints:
        """How many values of each frame are not NULL."""
        column = question.argument.column
        if not column.null_count():
            return self.ranges.sizes

        def count() -> Ints:
            ranges = self.ranges.renumbered(places_before(as_array(plc.unary.is_valid(column))))
            return ranges.sizes

        found: Ints = self.once(("counts", question.argument.key), count)
        return found

    def _difference(self, column: plc.Column) -> plc.Column:
        """Sums of integers, of which the caller knows that prefix sums over all rows do not overflow."""
        wide = column.type().id() == plc.TypeId.DECIMAL128
        numbers = col.without_nulls(column if wide else col.cast(column, col.INT64), 0)
        running = self._scanned(numbers, "sum") if self.has_own_row else None
        if running is not None:
            return running
        zero = plc.Column.from_scalar(col.scalar(0, numbers.type()), 1)
        before = as_array(plc.concatenate.concatenate([zero, prefix_sums(numbers)]))
        return column_of(self.ranges.renumbered(before).sizes)

    def _extreme(self, question: Question, column: plc.Column) -> plc.Column:
        """NULL where a frame has no value, since the extreme of NULL and a value is that value."""
        kind, aggregation = column.type(), question.aggregation
        if kind.id() == plc.TypeId.STRING:
            return self._extreme_string(question, column)
        if kind.id() == plc.TypeId.BOOL8:
            found = self._extreme(question, col.cast(column, col.INT32))
            return col.cast(found, col.BOOL)
        numbers, operator = col.as_integers(column), _EXTREMES[aggregation]
        if kind.id() in (plc.TypeId.FLOAT32, plc.TypeId.FLOAT64):
            numbers = column
        own = numbers.type()
        if own.id() in _LIMITS:
            start = _LIMITS[own.id()][aggregation == "min"]
            running = self._running(numbers, aggregation, start)
            if running is not None:
                running = self._where_some(running, question)
                return running if own.id() == kind.id() else col.reinterpret(running, kind)

        def combine(left: plc.Column, right: plc.Column) -> plc.Column:
            return col.binary(left, right, operator, own)

        found = overlapping(numbers, combine, self.ranges)
        return found if own.id() == kind.id() else col.reinterpret(found, kind)

    def _extreme_string(self, question: Question, column: plc.Column) -> plc.Column:
        places = ordered_places("strings", [column], [(False, False)])
        valid = plc.unary.is_valid(column)
        found = self._extreme(question, col.where_true(places.argument.column, valid))
        assert places.rows is not None
        rows = pick(places.rows, col.without_nulls(found, UNMATCHED), nullify=True)
        return pick(column, col.without_nulls(rows, UNMATCHED), nullify=True)

    def _combined(self, column: plc.Column, aggregation: str) -> plc.Column:
        """Sums and products of floats, and bits of integers, in blocks."""
        kind = column.type()
        start: float
        if aggregation in _BITS:
            operator, start = _BITS[aggregation], -1 if aggregation == "bit_and" else 0
            numbers = (
                col.cast(column, col.INT64) if kind.id() != plc.TypeId.UINT64 else as_signed(column)
            )
        else:
            operator = Op.ADD if aggregation == "sum" else Op.MUL
            numbers, start = col.cast(column, col.FLOAT64), 0.0 if aggregation == "sum" else 1.0
            running = self._running(numbers, aggregation, start)
            if running is not None:
                return running
        values = as_array(col.without_nulls(numbers, start))

        def combine(left: State, right: State) -> State:
            pair = column_of(left[0]), column_of(right[0])
            return (as_array(col.binary(*pair, operator, numbers.type())),)

        nothing = as_array(col.constant(start, numbers.type(), self.count))
        (found,) = folded((values,), combine, self.ranges, (nothing,))
        if aggregation not in _BITS:
            return column_of(found)
        if kind.id() == plc.TypeId.UINT64:
            return col.reinterpret(column_of(found), kind)
        return col.cast(column_of(found), kind)

    def _running(self, column: plc.Column, aggregation: str, start: float) -> plc.Column | None:
        """Scan each partition, where frames begin with it; `start` stands for NULL.  None for other frames."""
        if not self.is_running or aggregation not in _SCANS:
            return None
        if self.has_own_row:
            scanned = self._scanned(col.without_nulls(column, start), aggregation)
            if scanned is not None:
                return scanned
        ((_, end),) = self.ranges.parts
        partition = plc.Table([col.cast(column_of(self.places.partition_numbers), col.INT32)])
        values = col.without_nulls(column, start)
        request = plc.groupby.GroupByRequest(values, [_SCANS[aggregation][0]()])
        grouped = plc.groupby.GroupBy(partition, INCLUDE, plc.types.Sorted.YES)
        _, (scanned,) = grouped.scan([request])
        return pick(scanned.columns()[0], as_rows(np.maximum(end - 1, 0)))

    def _scanned(self, values: plc.Column, aggregation: str) -> plc.Column | None:
        """Return what values without NULL make up to the end of each frame, which has a row; None where no kernel knows."""
        frame, places = self.call.frame, self.places
        stops = None
        if frame.end != "current row":
            stops = lambda: places.stop  # noqa: E731 - made where a kernel asks
        elif frame.unit != "rows":
            stops = lambda: places.peer_stop  # noqa: E731
        return places.running(values, _SCANS[aggregation][1], stops)


def as_signed(column: plc.Column) -> plc.Column:
    return col.reinterpret(column, col.INT64)


def folded(state: State, combine: Combine, ranges: Ranges, result: State) -> State:
    """Combine the states of each row's ranges into `result`, in some order."""
    waiting = [(begin, end - begin) for begin, end in ranges.parts]
    most = max((int(size.max()) for _, size in waiting), default=0)
    width = 1
    while width <= most:
        stopping.check()
        for i, (place, size) in enumerate(waiting):
            hit = (size & width) > 0
            here = np.where(hit, place, 0)
            made = combine(result, tuple(s[here] for s in state))
            result = tuple(np.where(hit, m, r) for m, r in zip(made, result, strict=True))
            waiting[i] = place + (size & width), size
        if 2 * width <= most:
            state = combine(tuple(s[:-width] for s in state), tuple(s[width:] for s in state))
        width *= 2
    return result


def overlapping(
    column: plc.Column, combine: Callable[[plc.Column, plc.Column], plc.Column], ranges: Ranges
) -> plc.Column:
    """As `folded` for extremes, where NULL gives way to values: two blocks, which may overlap, are enough for each range."""
    sizes = [end - begin for begin, end in ranges.parts]
    bounds = [(int(size.min()), int(size.max())) for size in sizes]
    most = max((largest for _, largest in bounds), default=0)
    result = None
    width = 1
    while width <= most:
        stopping.check()
        for (begin, end), size, (least, largest) in zip(ranges.parts, sizes, bounds, strict=True):
            if largest < width or least >= 2 * width:
                continue
            hit = (size >= width) & (size < 2 * width)
            for places in (begin, end - width):
                rows = as_rows(np.where(hit, places, UNMATCHED))
                found = pick(column, rows, nullify=True)
                result = found if result is None else combine(result, found)
        if 2 * width <= most:
            length = column.size()
            halves = ([0, length - width], [width, length])
            column = combine(*(plc.copying.slice(column, half)[0] for half in halves))
        width *= 2
    return col.null_column(len(ranges), column.type()) if result is None else result
