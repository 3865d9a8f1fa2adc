"""What aggregates ask about groups of rows, answered by libcudf in as few calls as possible.

An aggregate function first asks (`Groups.ask`) and later, when all have asked, turns answers into its result.  Questions are
collected because one call of libcudf builds one hash table, and equal questions are asked once: sum(x), avg(x) and count(x)
share theirs.  libcudf answers a whole call by sorting as soon as one question needs that, so those go into a call of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import pylibcudf as plc

from ....plan.expr import Column
from ....records import dataclass
from .. import columns as col
from ..dictionaries import Coded, Held, plain
from ..distinct_rows import first_of_each, places_of
from ..late_materialization import Bounds, LateColumns, bounds_of, registers_of
from ..sort.packed_keys import PackedKeys

EXCLUDE = plc.types.NullPolicy.EXCLUDE
INCLUDE = plc.types.NullPolicy.INCLUDE

Answer = Callable[[], plc.Column]
# Fewer rows are hashed sooner than the question whether they are sorted is answered.
SORTED_ROWS = 1 << 22

_A = plc.aggregation
_MAKE: dict[str, Callable[..., plc.aggregation.Aggregation]] = {
    "sum": _A.sum,
    "min": _A.min,
    "max": _A.max,
    "product": _A.product,
    "count": lambda: _A.count(EXCLUDE),
    "count_all": lambda: _A.count(INCLUDE),
    "collect": lambda: _A.collect_list(EXCLUDE),
    "bit_and": lambda: _A.bitwise(_A.BitwiseOp.AND),
    "bit_or": lambda: _A.bitwise(_A.BitwiseOp.OR),
    "bit_xor": lambda: _A.bitwise(_A.BitwiseOp.XOR),
}
# libcudf hashes neither lists nor bits.
_SORTED = ("collect", "bit_and", "bit_or", "bit_xor")
_NARROW_INTEGERS = (
    plc.TypeId.BOOL8,
    plc.TypeId.INT8,
    plc.TypeId.INT16,
    plc.TypeId.INT32,
    plc.TypeId.UINT8,
    plc.TypeId.UINT16,
    plc.TypeId.UINT32,
)


@dataclass(frozen=True)
class GroupedArgument:
    """Values to aggregate; arguments with equal keys hold the same values.  `bounds` are known to hold all integers behind them."""

    key: Hashable
    column: plc.Column
    bounds: Bounds | None = None

    def derive(self, step: str, column: plc.Column) -> GroupedArgument:
        return GroupedArgument((self.key, step), column)


@dataclass(frozen=True)
class Question:
    """An aggregation of the values of an argument."""

    argument: GroupedArgument
    aggregation: str
    details: tuple[object, ...]

    def make(self) -> plc.aggregation.Aggregation:
        return _MAKE[self.aggregation](*self.details)

    @property
    def needs_sort(self) -> bool:
        """Whether libcudf has to sort for it, as for extremes without an atomic instruction."""
        wide = self.argument.column.type().id() == plc.TypeId.DECIMAL128
        return self.aggregation in _SORTED or (wide and self.aggregation in ("min", "max"))


class Groups:
    """Rows in groups of equal keys, or in one group without keys; NULL keys are a group.

    `keys` are in the form of `columns.as_key`, `columns` what aggregates read, by column id.  After `run` the groups have
    an order, which all answers share.  With `deterministic` sums of floats must not depend on the order of additions.
    """

    def __init__(
        self,
        keys: list[plc.Column],
        rows: int,
        columns: Mapping[int, Held],
        deterministic: bool = False,
    ) -> None:
        self.keys = keys
        self.rows = rows
        self.columns = columns
        self.deterministic = deterministic
        self.group_keys: list[plc.Column] = []
        self.count = 0 if keys else 1
        self._is_needed = False
        self._questions: dict[Hashable, Question] = {}
        self._answers: dict[Hashable, plc.Column] = {}
        self._memo: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` returned when it was first called for `key`."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def remember(self, key: Hashable, found: object) -> None:
        """Have `once` return this for a key."""
        self._memo[key] = found

    @property
    def of_kernel(self) -> bool:
        """Whether the rows are a kernel's result, and what is made of them is to stay in registers."""
        return type(self.columns) is LateColumns

    @property
    def was_asked(self) -> bool:
        return bool(self._questions) or self._is_needed

    def need(self) -> None:
        """Have the groups found although nothing is asked about them here."""
        self._is_needed = True

    def source(self, column: Column) -> GroupedArgument:
        """Return a column of the rows as an argument."""

        def source() -> GroupedArgument:
            held = plain(self.columns[column.id])
            return GroupedArgument(column.id, held, self.bounds(column))

        return self.once(("source", column.id), source)

    def integers(self, column: Column) -> GroupedArgument:
        """Return a column of the rows as in registers, where that is what it is made of, else as it is."""
        return self.registers(column) or self.source(column)

    def registers(self, column: Column) -> GroupedArgument | None:
        """Return the integers as in registers that a column of the rows is made of, if it is."""

        def registers() -> GroupedArgument | None:
            found = registers_of(self.columns, column.id)
            if found is None:
                return None
            return GroupedArgument(("registers", column.id), found, self.bounds(column))

        return self.once(("registers", column.id), registers)

    def bounds(self, column: Column) -> Bounds | None:
        """Return an interval that holds the integers behind a column of the rows, if one is known."""
        return bounds_of(self.columns, column.id)

    def codes(self, column: Column) -> tuple[GroupedArgument, Coded] | None:
        """Return the codes of a column of strings as an argument, if it has any."""
        held = self.columns[column.id]
        if not isinstance(held, Coded):
            return None
        # Extremes of less than 32 bits have no atomic instruction.
        codes = self.once(("codes", column.id), lambda: col.cast(held.codes, col.INT32))
        return GroupedArgument(("codes", column.id), codes), held

    def key_places(self) -> PackedKeys | None:
        """Return a place for the group of each row; None where there are too many, of few rows, and without keys."""
        return self.once("key places", lambda: places_of(self.keys) if self.keys else None)

    def row_numbers(self) -> plc.Column:
        return self.once("row numbers", lambda: col.sequence(self.rows))

    def ask(self, argument: GroupedArgument, aggregation: str, *details: object) -> Answer:
        """Ask for an aggregation of each group's values that are not NULL; NULL where there are none."""
        key = (argument.key, aggregation, details)
        if key not in self._questions:
            self._questions[key] = Question(argument, aggregation, details)
        return lambda: self._answers[key]

    def ask_rows(self) -> Answer:
        """Ask for the number of rows of each group, as BIGINT."""
        column = self.keys[0] if self.keys else col.empty(col.INT32)
        return as_bigint(self.ask(GroupedArgument("rows", column), "count_all"))

    def ask_count(self, argument: GroupedArgument) -> Answer:
        """Ask for the number of values that are not NULL, as BIGINT."""
        if not argument.column.null_count():
            return self.ask_rows()
        return as_bigint(self.ask(argument, "count"))

    def run(self) -> None:
        """Answer all questions."""
        if not self.keys:
            for key, question in self._questions.items():
                self._answers[key] = self._reduce(question)
            return
        by_sort = {key: q for key, q in self._questions.items() if q.needs_sort}
        by_hash = {key: q for key, q in self._questions.items() if not q.needs_sort}
        if by_hash or not by_sort:
            self.group_keys = self._aggregate(by_hash)
        if by_sort:
            keys = self._aggregate(by_sort, sort=True)
            if not by_hash:
                self.group_keys = keys
            else:
                order = matching_order(self.group_keys, keys)
                for key in by_sort:
                    self._answers[key] = pick(self._answers[key], order)
        self.count = self.group_keys[0].size()

    def _aggregate(
        self, questions: dict[Hashable, Question], sort: bool = False
    ) -> list[plc.Column]:
        """Answer questions in one call and return the groups' keys, in the order of the answers."""
        if not questions:
            rows = first_of_each(plc.Table(self.keys), self._memo.get("key places"))
            return [pick(key, rows) for key in self.keys]
        sorted_ = plc.types.Sorted.YES if not sort and self._lie_in_order() else plc.types.Sorted.NO
        grouped = plc.groupby.GroupBy(plc.Table(self.keys), INCLUDE, sorted_)
        request = plc.groupby.GroupByRequest
        requests = [request(q.argument.column, [q.make()]) for q in questions.values()]
        if sort:  # one question that cannot be hashed makes libcudf sort for all
            requests.append(request(self.keys[0], [_A.nth_element(0)]))
        keys, results = grouped.aggregate(requests)
        for key, result in zip(questions, results, strict=False):
            self._answers[key] = result.columns()[0]
        return list(keys.columns())

    def _lie_in_order(self) -> bool:
        """Whether the rows of each group follow one another, as those of an order in a table of its items do.

        Then libcudf needs no hash table.  The first rows tell most columns that are not sorted.
        """
        key = self.keys[0]
        if len(self.keys) > 1 or self.rows < SORTED_ROWS or key.null_count():
            return False
        if key.type().id() not in (plc.TypeId.INT32, plc.TypeId.INT64):
            return False
        head = plc.copying.slice(key, [0, SORTED_ROWS // 64])[0]
        return is_sorted(head) and is_sorted(key)

    def _reduce(self, question: Question) -> plc.Column:
        """Answer a question about all rows."""
        column, aggregation = question.argument.column, question.aggregation
        if aggregation == "count_all":
            return col.constant(self.rows, col.INT64, 1)
        valid = column.size() - column.null_count()
        if aggregation == "count":
            return col.constant(valid, col.INT64, 1)
        if question.aggregation == "collect":
            return self._collect(question)
        data_type = _reduced_type(column.type(), aggregation)
        if not valid:
            return col.null_column(1, data_type)
        reduced = plc.reduce.reduce(column, question.make(), data_type)
        return plc.Column.from_scalar(reduced, 1)

    def _collect(self, question: Question) -> plc.Column:
        """All values as one list: libcudf has no such reduction, so a group of a constant key gives it."""
        key = plc.Table([col.constant(0, col.INT32, self.rows)])
        request = plc.groupby.GroupByRequest(question.argument.column, [question.make()])
        _, (result,) = plc.groupby.GroupBy(key, INCLUDE).aggregate([request])
        return result.columns()[0]


def is_sorted(key: plc.Column) -> bool:
    """Whether the values of a column without NULL ascend."""
    order, nulls = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
    return bool(plc.sorting.is_sorted(plc.Table([key]), order, nulls))


def _reduced_type(data_type: plc.DataType, aggregation: str) -> plc.DataType:
    if aggregation == "product":
        return col.FLOAT64
    narrow = aggregation == "sum" and data_type.id() in _NARROW_INTEGERS
    return col.INT64 if narrow else data_type


def as_bigint(answer: Answer) -> Answer:
    """Counts of groups come as INT32."""

    def convert() -> plc.Column:
        column = answer()
        return (
            column if column.type().id() == plc.TypeId.INT64 else plc.unary.cast(column, col.INT64)
        )

    return convert


def matching_order(keys: list[plc.Column], others: list[plc.Column]) -> plc.Column:
    """Return for each of `keys` the row of the same key in `others`, out of bounds where there is none.

    Both hold each key once, in different orders.
    """
    left, right = plc.join.left_join(plc.Table(keys), plc.Table(others), col.EQUAL)
    target = plc.Table([col.sequence(left.size())])
    return plc.copying.scatter(plc.Table([right]), left, target).columns()[0]


def pick(column: plc.Column, rows: plc.Column, nullify: bool = False) -> plc.Column:
    """Return the values at `rows`; with `nullify` NULL for a row number out of bounds."""
    policy = plc.copying.OutOfBoundsPolicy
    if nullify and not column.size():
        return col.null_column(rows.size(), column.type())
    how = policy.NULLIFY if nullify else policy.DONT_CHECK
    return plc.copying.gather(plc.Table([column]), rows, how).columns()[0]


def pick_held(held: Held, rows: plc.Column) -> Held:
    """Return the values at `rows`, codes as codes."""
    return Coded(pick(held.codes, rows), held.keys) if isinstance(held, Coded) else pick(held, rows)


def restore(key: plc.Column, data_type: plc.DataType) -> plc.Column:
    """Undo `columns.as_key`."""
    return key if key.type().id() == data_type.id() else col.reinterpret(key, data_type)
