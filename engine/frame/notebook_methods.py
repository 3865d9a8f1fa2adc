"""What notebooks ask a frame for, to show it below a cell.

A table of rows as HTML for notebooks: it takes the colours of the page, so that it is right in dark ones too.

All text is escaped.  NULL is set apart from a text that says NULL, and what is too wide or long is left out in the middle.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..fence import fenced
from ..plan.logical import Logical
from ..plan.types import DataType
from .fitted_table import LEFT_OUT, cell, middle

if TYPE_CHECKING:
    from .frame import Frame
    from .python_values import Row


LOOKED_AT = 1000  # rows, of which the last ones are shown too; of more only the first


@fenced
class NotebookMethods:
    """The HTML of a frame's first and last rows, and the text beside it for clients that show none."""

    _plan: Logical

    def _repr_html_(self) -> str:
        from .fitted_table import rows_of

        frame: Frame = self  # type: ignore[assignment]
        table = frame.limit(LOOKED_AT + 1).to_arrow()
        more_than = LOOKED_AT if table.num_rows > LOOKED_AT else None
        types = [column.type for column in self._plan.columns]
        rows = rows_of(table.slice(0, LOOKED_AT), types)
        return html_table(table.column_names, types, rows, more_than)

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return the forms in which a notebook may show the frame, of those that it asks for."""
        made = {"text/plain": self.__repr__, "text/html": self._repr_html_}
        return {
            kind: make()
            for kind, make in made.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }


MOST_COLUMNS = 20
MOST_ROWS = 20
MOST_CHARACTERS = 120  # of a value; its cell's title has more
MOST_IN_TITLE = 3000
NULL = '<td class="null">NULL</td>'
GAP = f'<td class="gap">{LEFT_OUT}</td>'
# Only what is drawn of the text's own colour: a page says which that is
STYLE = """<style>
.fuseline { border-collapse: collapse; font-variant-numeric: tabular-nums; color: inherit; background: transparent; }
.fuseline th, .fuseline td { padding: 0.25em 0.7em; text-align: left; border: 0; background: transparent; color: inherit; white-space: pre-wrap;
  max-width: 40em; overflow-wrap: break-word; vertical-align: top; }
.fuseline thead th { border-bottom: 1px solid color-mix(in srgb, currentColor 45%, transparent); white-space: nowrap; vertical-align: bottom; }
.fuseline tbody tr + tr td { border-top: 1px solid color-mix(in srgb, currentColor 12%, transparent); }
.fuseline .number { text-align: right; white-space: nowrap; }
.fuseline .moment { white-space: nowrap; }
.fuseline th small, .fuseline .null, .fuseline .gap, .fuseline-note { opacity: 0.6; font-weight: normal; }
.fuseline .null { font-style: italic; }
</style>"""


def html_table(
    names: Sequence[str], types: Sequence[DataType], rows: Sequence[Row], more_than: int | None
) -> str:
    """Return rows as an HTML table; `more_than` is the number of rows that are there at least, where not all are known."""
    columns = _chosen(len(names))
    body = "\n".join(_body(types, columns, rows, more_than))
    heads = "".join(
        f'<th class="gap">{LEFT_OUT}</th>' if i is None else _head(names[i], types[i])
        for i in columns
    )
    counts = [_count(len(rows), more_than), f"{len(names):,} column{'s' * (len(names) != 1)}"]
    note = f'<p class="fuseline-note">{" × ".join(counts)}</p>'
    return (
        f'<div style="overflow-x: auto">{STYLE}\n'
        f'<table class="fuseline"><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table>\n{note}</div>'
    )


def _body(
    types: Sequence[DataType],
    columns: Sequence[int | None],
    rows: Sequence[Row],
    more_than: int | None,
) -> Iterable[str]:
    first, last = middle(len(rows), MOST_ROWS)
    if more_than is not None:
        first, last = min(MOST_ROWS, len(rows)), 0
    for row in rows[:first]:
        yield _line(row, types, columns)
    if last or more_than is not None:
        yield f"<tr>{GAP * len(columns)}</tr>"
    for row in rows[len(rows) - last :]:
        yield _line(row, types, columns)


def _count(rows: int, more_than: int | None) -> str:
    if more_than is not None:
        return f"more than {more_than:,} rows"
    return f"{rows:,} row{'s' * (rows != 1)}"


def _chosen(count: int) -> list[int | None]:
    first, last = middle(count, MOST_COLUMNS)
    return [*range(first), *([None] if last else []), *range(count - last, count)]


def _head(name: str, data_type: DataType) -> str:
    kind = ' class="number"' if data_type.is_numeric else ""
    return f"<th{kind}>{escape(name)}<br><small>{escape(str(data_type).lower())}</small></th>"


def _line(row: Row, types: Sequence[DataType], columns: Sequence[int | None]) -> str:
    cells = (GAP if i is None else _cell(row[i], types[i]) for i in columns)
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: object, data_type: DataType) -> str:
    if value is None:
        return NULL
    text = cell(value)
    kind = ' class="number"' if data_type.is_numeric else ""
    if data_type.is_temporal:
        kind = ' class="moment"'
    if len(text) > MOST_CHARACTERS:
        kind += f' title="{escape(text[:MOST_IN_TITLE])}"'
        text = f"{text[:MOST_CHARACTERS]}{LEFT_OUT}"
    return f"<td{kind}>{escape(text)}</td>"
