"""What a query has to give for a file of some format: the texts of CSV and JSON are made by the engine's own casts."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidQuery, Unsupported, suggestion
from ..plan import infer
from ..plan.casts import cast
from ..plan.composed.json_calls import value_of
from ..plan.distinct_names import distinct_names
from ..plan.expr import Column, ColumnRef, Expr, Literal, SortKey, new_column
from ..plan.logical import Logical, Project, Sort
from ..plan.statements import CopyTo
from ..plan.types import INTEGER, JSON, TIMESTAMP, VARCHAR, DataType, Kind

_MOMENTS = (
    Kind.TIMESTAMP,
    Kind.TIMESTAMP_S,
    Kind.TIMESTAMP_MS,
    Kind.TIMESTAMP_NS,
    Kind.TIMESTAMPTZ,
)


class WrittenColumns:
    """The plan of a file's columns: first the texts of partitions, by which its rows are sorted, then what files hold.

    Raises `InvalidQuery` and `Unsupported` for columns that cannot be written so.
    """

    def __init__(self, copy: CopyTo) -> None:
        source = copy.query.plan
        own = list(source.columns)
        self.names = distinct_names([c.name for c in own])
        self.partitions = [self._position(name, copy) for name in _given(copy, "partition_by")]
        kept = list(range(len(own)))
        if self.partitions and not copy.options.get("write_partition_columns"):
            kept = [i for i in kept if i not in self.partitions]
            if not kept:
                raise InvalidQuery(
                    "No column is left to write: name fewer in PARTITION_BY, or add WRITE_PARTITION_COLUMNS."
                )
        self.kept = kept
        self.types = [own[i].type for i in kept]
        self.forced = {self._position(name, copy) for name in _forced(copy, self.names)}
        items = [
            (new_column(self.names[i], VARCHAR), cast(ColumnRef(own[i]), VARCHAR))
            for i in self.partitions
        ]
        keys = tuple(SortKey(ColumnRef(column)) for column, _ in items)
        for i in kept:
            value = _written(own[i], copy)
            items.append((new_column(self.names[i], value.type), value))
        plan: Logical = Project(source, tuple(items))
        self.plan = Sort(plan, keys) if keys else plan

    @property
    def kept_names(self) -> list[str]:
        return [self.names[i] for i in self.kept]

    def _position(self, name: str, copy: CopyTo) -> int:
        lower = [n.lower() for n in self.names]
        if name.lower() not in lower:
            raise InvalidQuery(
                f'There is no column "{name}" to write.{suggestion(name, self.names)}'
            )
        return lower.index(name.lower())


def _given(copy: CopyTo, option: str) -> Sequence[str]:
    found = copy.options.get(option, ())
    assert isinstance(found, tuple)
    return found


def _forced(copy: CopyTo, names: list[str]) -> Sequence[str]:
    found = _given(copy, "force_quote")
    return names if "*" in found else found


def _written(column: Column, copy: CopyTo) -> Expr:
    """Return a column as a format holds it."""
    value, kind = ColumnRef(column), column.type.kind
    as_json = column.type.is_nested or column.type == JSON or column.type.is_float
    if copy.format == "json" and (as_json or kind is Kind.DECIMAL):
        return infer.call("to_json", [value_of(value)])
    if column.type.is_nested and copy.format not in ("parquet", "csv"):
        raise Unsupported(
            f'The column "{column.name}" is a {column.type}, which {copy.format} files are not written with: write Parquet, or cast it to VARCHAR.'
        )
    if copy.format in ("csv", "json"):
        return value if kind is Kind.VARCHAR else _text(value, column.type, copy)
    if kind is Kind.NULL:
        return Literal(None, INTEGER)
    if kind is Kind.INTERVAL and copy.format == "parquet":
        raise Unsupported(
            f'The column "{column.name}" is an INTERVAL, which Parquet files are not written with: cast it to VARCHAR.'
        )
    return value


def _text(value: Expr, data_type: DataType, copy: CopyTo) -> Expr:
    moment = data_type.kind in _MOMENTS
    form = copy.options.get("timestampformat" if moment else "dateformat")
    if form is not None and (moment or data_type.kind is Kind.DATE):
        return infer.call("strftime", [cast(value, TIMESTAMP), Literal(form, VARCHAR)])  # type: ignore[arg-type]
    return cast(value, VARCHAR)
