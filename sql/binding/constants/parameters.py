"""The values of a statement's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from fuseline.errors import InvalidQuery, NotByRows, Span, suggestion
from fuseline.plan.composed.nested_literals import constant
from fuseline.plan.expr import ColumnRef, Expr, new_column
from fuseline.plan.logical import CatalogTable, Scan
from fuseline.sql.parsing.text_shape import TextSlots

from ....records import dataclass


@dataclass
class Parameters:
    """The values for `?`, `$1` and `$name`; `?` are numbered by their order in the text before binding.

    With `rows` there is a table of values, a column for each parameter: INSERT ... VALUES of one row stores one for each of them.
    """

    given: Sequence[object] | Mapping[str, object]
    rows: CatalogTable | None = None
    slots: TextSlots | None = None
    used: set[int | str] = field(default_factory=set)
    _read: Scan | None = None

    def expression(self, key: int | str, span: Span | None) -> Expr:
        """Return what stands for parameter `key` (from 1, or a name): its value, or inside of `reading_rows` its column.

        Raises `InvalidQuery` when it is missing, and `NotByRows` for rows of values where none are read.
        """
        if self.rows is None:
            value = self.value(key, span)
            slot = None if self.slots is None else self.slots.parameter(key, span)
            if isinstance(value, Expr):  # of EXECUTE
                return value
            return constant(value, span) if slot is None else slot
        self.value(key, span)
        if self._read is None:
            raise NotByRows
        named = isinstance(self.given, Mapping)
        place = [*self.given].index(str(key)) if named else int(key) - 1
        return ColumnRef(self._read.made[place], span)

    @contextmanager
    def reading_rows(self) -> Iterator[Scan]:
        """Let parameters inside stand for columns of this scan of the rows."""
        assert self.rows is not None
        names = tuple(name for name, _ in self.rows.fields)
        made = tuple(new_column(name, data_type) for name, data_type in self.rows.fields)
        self._read = Scan(self.rows, made, names)
        try:
            yield self._read
        finally:
            self._read = None

    def value(self, key: int | str, span: Span | None) -> object:
        """Return the value of parameter `key` (from 1, or a name); raises `InvalidQuery` when it is missing."""
        self.used.add(key)
        shown = f"${key}"
        if isinstance(self.given, Mapping):
            named: Mapping[str, object] = self.given
            if str(key) in named:
                return named[str(key)]
            hint = suggestion(str(key), list(named))
            raise InvalidQuery(
                f"The parameter {shown} has no value: pass it in params.{hint}", span
            )
        if isinstance(key, str):
            raise InvalidQuery(
                f"The parameter {shown} has a name: pass params as a dictionary.", span
            )
        if 1 <= key <= len(self.given):
            return self.given[key - 1]
        given = f"{len(self.given) or 'no'} value{'' if len(self.given) == 1 else 's'}"
        raise InvalidQuery(f"The parameter {shown} has no value: params holds {given}.", span)

    def check_all_used(self) -> None:
        """Raise `InvalidQuery` when a value was passed that no parameter asks for."""
        if isinstance(self.given, Mapping):
            surplus = [f"${name}" for name in self.given if name not in self.used]
        else:
            surplus = [f"${i}" for i in range(1, len(self.given) + 1) if i not in self.used]
        if surplus:
            raise InvalidQuery(
                f"params has a value for {surplus[0]}, which the query does not have."
            )
