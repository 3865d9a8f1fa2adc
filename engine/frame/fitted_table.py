"""Results for people: a table of text that fits a terminal, and the JSON and CSV of the command line.

Texts that are too long for all columns of a table to fit are cut first, down to 20 characters; then middle columns go, and a note below says so.
Where there is no width to keep to, as in a pipe, nothing is cut.

One value as SQL shows it: values of Python inside lists and structs too, as DuckDB writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..plan.arrow.arrow_arrays import array_from
from ..plan.calendar import interval_text
from ..plan.text.quoted_name import distinct_names
from ..plan.types import DataType
from ..records import dataclass
from .cursor import ROWS_AT_A_TIME
from .python_values import Row, has_values_beyond, python_values, shown_values

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType
    from rich.text import Text

    from .python_values import Row


LEAST_WIDTH = 20  # to which long texts are cut before columns are left out
BETWEEN = 3  # characters from one column to the next: blanks and a line
LEFT_OUT = "…"
_ESCAPES = {**{i: f"\\x{i:02x}" for i in (*range(32), 127)}, 9: "\\t", 10: "\\n", 13: "\\r"}
_ESCAPES |= {i: f"\\x{i:02x}" for i in range(128, 160)}


@dataclass(frozen=True)
class TableLayout:
    """How a table is laid out: at most so many characters wide and so many rows long, None for all.

    `null` stands for NULL, `widths` are the most characters of the first columns, 0 for as many as they have.
    """

    width: int | None = None
    rows: int | None = None
    null: str = "NULL"
    widths: tuple[int, ...] = ()


def one_line(text: str) -> str:
    """Return a text in which characters that steer terminals are written as escapes."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def middle(count: int, most: int | None) -> tuple[int, int]:
    """Return how many items are shown at the start and at the end, where at most so many are: all at the start if they fit."""
    if most is None or count <= most:
        return count, 0
    return most - most // 2, most // 2


def fitted(
    names: Sequence[str],
    types: Sequence[DataType],
    rows: Sequence[Row],
    layout: TableLayout,
    note: str | None = None,
) -> RenderableType:
    """Return rich's table of some rows; `note` says what is known of others, below it."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    first, last = middle(len(rows), layout.rows)
    shown = [*rows[:first], *rows[len(rows) - last :]]
    texts = [[_text(v, layout.null) for v in row] for row in shown]
    heads = [(one_line(n), str(t).lower()) for n, t in zip(names, types, strict=True)]
    widths = _widths(heads, texts, layout)
    columns = _chosen(widths, layout.width)
    grid = Table(box=box.ROUNDED, header_style="bold")
    for i in columns:
        head = LEFT_OUT if i is None else "\n".join(heads[i])
        grid.add_column(Text(head), **_column(i, widths, types))
    for number, (row, values) in enumerate(zip(texts, shown, strict=True)):
        if last and number == first:
            grid.add_row(*(Text(LEFT_OUT, style="dim") for _ in columns))
        grid.add_row(*(_cell(i, row, values) for i in columns))
    counts = [note] if note else []
    if last:
        counts.append(f"{len(rows):,} rows, {first + last:,} shown")
    if None in columns:
        counts.append(f"{len(names):,} columns, {len(columns) - 1:,} shown")
    notes = [Text(", ".join(counts), style="dim")] if counts else []
    return Group(grid, *notes)


def _text(value: object, null: str) -> str:
    return null if value is None else one_line(cell(value))


def _column(i: int | None, widths: Sequence[int], types: Sequence[DataType]) -> dict[str, Any]:
    if i is None:
        return {"width": 1}
    justify = "right" if types[i].is_numeric else "left"
    return {"justify": justify, "width": widths[i], "no_wrap": True, "overflow": "ellipsis"}


def _cell(i: int | None, texts: Sequence[str], values: Row) -> Text:
    from rich.text import Text

    if i is None:
        return Text(LEFT_OUT, style="dim")
    return Text(texts[i], style="dim" if values[i] is None else "")


def _widths(
    heads: Sequence[tuple[str, str]], texts: Sequence[Sequence[str]], layout: TableLayout
) -> list[int]:
    """Return the characters of each column: what its texts need, and less where all together are too wide."""
    from rich.cells import cell_len

    widths = [max(1, *map(cell_len, head)) for head in heads]
    for row in texts:
        widths = [max(w, cell_len(text)) for w, text in zip(widths, row, strict=True)]
    for i, most in enumerate(layout.widths[: len(widths)]):
        widths[i] = most or widths[i]
    if layout.width is None:
        return widths
    over = sum(widths) + BETWEEN * len(widths) + 1 - layout.width
    while over > 0 and max(widths, default=0) > LEAST_WIDTH:
        # The widest column gives until it is as wide as the next one
        widest = max(range(len(widths)), key=widths.__getitem__)
        others = [w for i, w in enumerate(widths) if i != widest]
        least = max(LEAST_WIDTH, min(widths[widest] - 1, max(others, default=0)))
        cut = min(over, widths[widest] - least)
        widths[widest] -= cut
        over -= cut
    return widths


def _chosen(widths: Sequence[int], width: int | None) -> list[int | None]:
    """Return the numbers of the columns that fit, from both ends; None stands for those between."""
    if width is None or sum(widths) + BETWEEN * len(widths) + 1 <= width:
        return list(range(len(widths)))
    left, right = 0, len(widths)
    room = width - 1 - (BETWEEN + 1)
    from_left = True
    while left < right:
        i = left if from_left else right - 1
        room -= widths[i] + BETWEEN
        if room < 0 and left:  # the first one is always there
            break
        left, right = (left + 1, right) if from_left else (left, right - 1)
        from_left = not from_left
    return [*range(left), *([None] if left < right else []), *range(right, len(widths))]


# Texts inside of others that would be read as something else without quotes
_AMBIGUOUS = re.compile(r"""[,'"()\[\]{}=:\\]|^\s|\s$|^null$|^$""", re.IGNORECASE)
_ESCAPED = re.compile(r"['\\]")


def cell(value: object) -> str:
    """Return a value's text; a MAP is written as a STRUCT is."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case bytes():
            return "".join(map(_byte, value))
        case list():
            return f"[{', '.join(map(_inside, value))}]"
        case dict():
            return f"{{{', '.join(f'{_name(k)}: {_inside(v)}' for k, v in value.items())}}}"
        case tuple() if hasattr(value, "nanoseconds"):  # Arrow's interval, and no TUPLE
            return interval_text(*value)
        case tuple():
            return f"({', '.join(map(_inside, value))})"
        case datetime() if value.microsecond:
            return str(value).rstrip("0")
    return str(value)


def _inside(value: object) -> str:
    text = cell(value)
    if isinstance(value, list | dict | tuple) or value is None or not _AMBIGUOUS.search(text):
        return text
    return _quoted(text)


def _name(key: object) -> str:
    return _quoted(key) if isinstance(key, str) else _inside(key)


def _quoted(text: str) -> str:
    return f"'{_ESCAPED.sub(lambda found: chr(92) + found[0], text)}'"


def _byte(value: int) -> str:
    return chr(value) if 32 <= value < 127 and chr(value) not in "\\'\"" else f"\\x{value:02X}"


WIDEST = 1_000_000  # characters of a line that goes to a pipe or file


def print_table(table: pa.Table, types: Sequence[DataType], rows: int | None) -> None:
    """Print names, types and at most `rows` rows; says so when `table` holds more.

    In a terminal what does not fit is left out in the middle; a pipe or file gets wide lines, with whole values.
    """
    from rich.console import Console

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
            table = table.set_column(i, field.name, array_from(texts, pa.string()))
    return table


def rows_of(table: pa.Table | pa.RecordBatch, types: Sequence[DataType]) -> list[Row]:
    return list(zip(*map(shown_values, table.columns, types), strict=True))
