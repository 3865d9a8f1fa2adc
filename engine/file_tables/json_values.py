"""Values of JSON as Arrow arrays of SQL types: what JSON has is taken as it is, the rest is cast by the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from ..operators.cpu.functions.expressions import evaluate
from ..operators.cpu.table import Table, to_logical, to_physical
from ..plan.arrow.arrow_arrays import array_from
from ..plan.casts import cast
from ..plan.expr import ColumnRef, new_column
from ..plan.json.documents import Digits, LongDouble, digits_text, plain_text, text_of
from ..plan.types import BIGINT, BOOLEAN, DOUBLE, HUGEINT, JSON, DataType, Kind, to_arrow
from ..records import dataclass
from .text_types import Conversion, convert

_NATIVE: Mapping[Kind, frozenset[type]] = {
    Kind.BOOLEAN: frozenset([bool]),
    Kind.BIGINT: frozenset([int]),
    Kind.DOUBLE: frozenset([int, float, LongDouble, Digits]),
}
_REAL = frozenset([float, LongDouble, Digits])
_NUMBERS = _REAL | {int}
_SCALARS = _NUMBERS | {bool, str}
_NOTHING = type(None)


class BadValue(ValueError):
    """A value that is none of its type; the text says what it is, and `column` where it is known."""

    def __init__(self, said: str, column: str = "") -> None:
        super().__init__(said)
        self.column = column


class BadRecord(BadValue):
    """A record that has not the shape of the others; the text says in what."""


@dataclass(frozen=True)
class ValueReader:
    """What becomes of values that are none of their type (NULL where `lenient`), and of fields that no type has.

    `forms` are the formats of texts of DATE and TIMESTAMP, by their type.
    """

    lenient: bool
    strict_fields: bool
    forms: Mapping[DataType, Conversion]

    def array(self, values: Sequence[object], kind: DataType) -> pa.Array:
        """Return values as an array of a type; raises `BadValue` for the first that is none of it."""
        present = set(map(type, values)) - {_NOTHING}
        if kind.kind is Kind.NULL:
            self._only(values, frozenset(), kind)
            return pa.nulls(len(values))
        if kind.kind is Kind.LIST:
            return self._lists(self._only(values, frozenset([list]), kind), kind)
        if kind.kind is Kind.STRUCT:
            return self._structs(self._only(values, frozenset([dict]), kind), kind)
        if kind.kind is Kind.MAP:
            return self._maps(self._only(values, frozenset([dict]), kind), kind)
        if kind == JSON:
            return array_from([None if v is None else text_of(v) for v in values], pa.string())
        if kind.kind is Kind.VARCHAR:
            texts = values if present <= {str} else list(map(_text, values))
            return array_from(texts, pa.string())
        native = _NATIVE.get(kind.kind)
        if native is not None and present <= native:
            if kind == DOUBLE:
                values = [None if v is None else _double(v) for v in values]
            return self._native(values, kind)
        if kind == HUGEINT and present <= {int}:
            return self._native(values, kind)
        if bool in present and len(present) > 1:  # which are cast by themselves, not by way of text
            parts = (
                [v if (type(v) is bool) is alone else None for v in values]
                for alone in (True, False)
            )
            return pc.coalesce(*(self.array(part, kind) for part in parts))
        return self._cast(self._only(values, _SCALARS, kind), kind, present)

    def _native(self, values: Sequence[object], kind: DataType) -> pa.Array:
        try:
            return array_from(values, to_arrow(kind))
        except (pa.ArrowException, OverflowError, ValueError):
            return self._cast(values, kind, set())

    def _cast(self, values: Sequence[object], kind: DataType, present: set[type]) -> pa.Array:
        try:
            if (
                present <= _NUMBERS
                and present & _REAL
                and not (kind.is_decimal and not kind.is_whole)
            ):
                doubles = array_from(
                    [None if v is None else _double(v) for v in values], pa.float64()
                )
                return _converted(doubles, DOUBLE, kind, self.lenient)
            if present == {int} and all(v is None or abs(_whole(v)) < 1 << 63 for v in values):
                return _converted(array_from(values, pa.int64()), BIGINT, kind, self.lenient)
            if present == {bool}:
                return _converted(array_from(values, pa.bool_()), BOOLEAN, kind, self.lenient)
            conversion = self.forms.get(kind, Conversion(kind))
            return convert(
                array_from(list(map(_digits, values)), pa.string()), conversion, self.lenient
            )
        except DataError as error:
            raise BadValue(next((_text(v) or "" for v in values if v is not None), "")) from error

    def _only(
        self, values: Sequence[object], allowed: frozenset[type], kind: DataType
    ) -> Sequence[object]:
        if set(map(type, values)) <= allowed | {_NOTHING}:
            return values
        if not self.lenient:
            wrong = next(v for v in values if v is not None and type(v) not in allowed)
            raise BadValue(_text(wrong) or "")
        return [v if type(v) in allowed else None for v in values]

    def _lists(self, values: Sequence[object], kind: DataType) -> pa.Array:
        lists = [v if isinstance(v, list) else None for v in values]
        if kind.is_array:
            return self._arrays(lists, kind)
        lengths = np.array([len(v or ()) for v in lists], np.int64)
        elements = self.array([e for v in lists if v for e in v], kind.children[0])
        offsets = array_from(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        missing = array_from([v is None for v in lists], pa.bool_())
        return pa.ListArray.from_arrays(offsets, elements, to_arrow(kind), mask=missing)

    def _arrays(self, lists: Sequence[list[object] | None], kind: DataType) -> pa.Array:
        wrong = next((v for v in lists if v is not None and len(v) != kind.precision), None)
        if wrong is not None and not self.lenient:
            raise BadValue(text_of(wrong))
        fitting = [None if v is None or len(v) != kind.precision else v for v in lists]
        missing = [None] * kind.precision
        elements = self.array([e for v in fitting for e in v or missing], kind.children[0])
        mask = array_from([v is None for v in fitting], pa.bool_())
        return pa.FixedSizeListArray.from_arrays(elements, type=to_arrow(kind), mask=mask)

    def _structs(self, values: Sequence[object], kind: DataType) -> pa.Array:
        objects = [v if isinstance(v, dict) else None for v in values]
        self.check_fields(objects, frozenset(kind.names))
        arrays = [
            self.array([None if v is None else v.get(name) for v in objects], child)
            for name, child in zip(kind.names, kind.children, strict=True)
        ]
        missing = array_from([v is None for v in objects], pa.bool_())
        fields = [to_arrow(kind).field(i) for i in range(len(arrays))]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)

    def _maps(self, values: Sequence[object], kind: DataType) -> pa.Array:
        objects = [v if isinstance(v, dict) else None for v in values]
        lengths = np.array([len(v or ()) for v in objects], np.int64)
        pairs = [pair for v in objects if v for pair in v.items()]
        types = kind.children[0].children
        keys, items = (self.array([p[i] for p in pairs], t) for i, t in enumerate(types))
        offsets = array_from(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        missing = array_from([v is None for v in objects], pa.bool_())
        return pa.MapArray.from_arrays(offsets, keys, items, to_arrow(kind), mask=missing)

    def check_fields(
        self, objects: Sequence[dict[str, object] | None], names: frozenset[str]
    ) -> None:
        """Raise `BadValue` for a field that the sample has not."""
        if not self.strict_fields or self.lenient:
            return
        for value in objects:
            if value is not None and not value.keys() <= names:
                unknown = next(name for name in value if name not in names)
                raise BadRecord(f'There is the key "{unknown}", which the first values have not')


def _converted(values: pa.Array, source: DataType, target: DataType, safe: bool) -> pa.Array:
    column = new_column("value", source)
    table = Table({column.id: to_physical(values, source)}, len(values))
    return to_logical(evaluate(cast(ColumnRef(column), target, safe=safe), table, 1), target)


def _double(value: object) -> float:
    if isinstance(value, Digits):
        return float(value.text)
    assert isinstance(value, int | float)
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def _digits(value: object) -> str | None:
    """Return a value as text, of a number all digits that are written."""
    return digits_text(value) if isinstance(value, float) else _text(value)


def _text(value: object) -> str | None:
    """Return a value as text: texts as they are, others as JSON."""
    if value is None or isinstance(value, str):
        return value
    return plain_text(value)
