"""Results for people: a terminal table, an HTML table, and the JSON and CSV of the command line."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..plan.distinct_names import distinct_names
from ..plan.types import DataType
from .cursor import ROWS_AT_A_TIME
from .python_values import Row, has_values_beyond, interval_text, python_values

if TYPE_CHECKING:
    import pyarrow as pa


WIDEST = 1_000_000  # characters of a line that goes to a pipe or file


def print_table(table: pa.Table, types: Sequence[DataType], rows: int | None) -> None:
    """Print names, types and at most `rows` rows; says so when `table` holds more.

    No value is cut: one that is too wide for the terminal goes on in the next line, and a pipe or file gets wide lines.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.ROUNDED, header_style="bold")
    for name, data_type in zip(table.column_names, types, strict=True):
        justify: Any = "right" if data_type.is_numeric else "left"
        grid.add_column(Text(f"{name}\n{str(data_type).lower()}"), justify=justify, overflow="fold")
    shown = table if rows is None else table.slice(0, rows)
    for row in _rows(shown):
        grid.add_row(*(Text(cell(v), style="dim" if v is None else "") for v in row))
    console = Console()
    if not console.is_terminal:
        wide = console.options.update(max_width=WIDEST)
        console.width = max(console.width, Measurement.get(console, wide, grid).maximum)
    console.print(grid)
    if rows is not None and table.num_rows > rows:
        console.print(f"the first {rows} rows; there are more", style="dim")


def html_table(table: pa.Table, types: Sequence[DataType], rows: int) -> str:
    """Return the first `rows` rows as an HTML table, all text escaped."""
    heads = "".join(
        f"<th>{html.escape(n)}<br><small>{html.escape(str(t))}</small></th>"
        for n, t in zip(table.column_names, types, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell(v))}</td>" for v in row) + "</tr>"
        for row in _rows(table.slice(0, rows))
    )
    more = f"<p>the first {rows} rows; there are more</p>" if table.num_rows > rows else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"


def cell(value: object) -> str:
    """Return one value as SQL shows it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return interval_text(*value)
    if isinstance(value, datetime) and value.microsecond:
        return str(value).rstrip("0")
    return str(value)


def json_lines(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Give the lines of a JSON array of objects, one a row; decimals have all their digits, names that repeat a number."""
    keys = [json.dumps(n) for n in distinct_names(list(names))]
    before = "["
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_A_TIME):
            for row in _rows(batch.slice(start, ROWS_AT_A_TIME)):
                pairs = (f"{k}: {_json(v)}" for k, v in zip(keys, row, strict=True))
                yield f"{before}{{{', '.join(pairs)}}}"
                before = ",\n "
    yield "[]\n" if before == "[" else "]\n"


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


def _rows(table: pa.Table | pa.RecordBatch) -> list[Row]:
    return list(zip(*map(python_values, table.columns), strict=True))
