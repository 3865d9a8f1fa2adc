"""Results for people: a terminal table, and the JSON and CSV of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from ..plan.distinct_names import distinct_names
from ..plan.types import DataType
from .cursor import ROWS_AT_A_TIME
from .fitted_table import cell
from .python_values import Row, has_values_beyond, python_values, shown_values

if TYPE_CHECKING:
    import pyarrow as pa


WIDEST = 1_000_000  # characters of a line that goes to a pipe or file


def print_table(table: pa.Table, types: Sequence[DataType], rows: int | None) -> None:
    """Print names, types and at most `rows` rows; says so when `table` holds more.

    In a terminal what does not fit is left out in the middle; a pipe or file gets wide lines, with whole values.
    """
    from rich.console import Console

    from .fitted_table import TableLayout, fitted

    console = Console()
    shown = table if rows is None else table.slice(0, rows)
    note = None
    if rows is not None and table.num_rows > rows:
        note = f"the first {rows} rows; there are more"
    layout = TableLayout(console.width if console.is_terminal else None)
    if not console.is_terminal:
        console.width = WIDEST
    console.print(fitted(table.column_names, types, rows_of(shown, types), layout, note))


def json_objects(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Give each row as an object of JSON in one line."""
    keys = [json.dumps(n) for n in distinct_names(list(names))]
    for row in rows:
        pairs = (f"{k}: {_json(v)}" for k, v in zip(keys, row, strict=True))
        yield f"{{{', '.join(pairs)}}}"


def rows_of_batches(batches: Iterable[pa.RecordBatch], types: Sequence[DataType]) -> Iterator[Row]:
    """Give the rows of batches as Python values, some at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_A_TIME):
            yield from rows_of(batch.slice(start, ROWS_AT_A_TIME), types)


def _json(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    if value is None or isinstance(value, bool | int | str):
        return json.dumps(value)
    if isinstance(value, float):
        # JSON has no NaN or infinity; null would lose which one it was
        return json.dumps(value if value - value == 0 else str(value))
    return json.dumps(cell(value))


def csv_columns(table: pa.Table) -> pa.Table:
    """Return the table with intervals, and dates that Python has no value for, as text: Arrow's CSV writer takes neither."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_interval(field.type) or has_values_beyond(column):
            texts = [None if v is None else cell(v) for v in python_values(column)]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
    return table


def rows_of(table: pa.Table | pa.RecordBatch, types: Sequence[DataType]) -> list[Row]:
    return list(zip(*map(shown_values, table.columns, types), strict=True))
