"""sniff_csv: what is found out about a CSV file, as one row with the call that reads it so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ..errors import InvalidQuery, Unsupported
from ..plan.arrow.arrow_types import arrow_table
from ..plan.types import BOOLEAN, UBIGINT, VARCHAR, DataType, Kind, list_of, struct_of, to_arrow
from ..storage.tables.access import AccessRules
from ..storage.tables.files import find_files
from .csv_columns import sniffed_file
from .csv_fields import CsvFile, Options
from .csv_rejects import LINES, literal, shown_sign, user_arguments
from .file_source import FormatSource

FIELDS: tuple[tuple[str, DataType], ...] = (
    *((name, VARCHAR) for name in ("Delimiter", "Quote", "Escape", "NewLineDelimiter", "Comment")),
    ("SkipRows", UBIGINT),
    ("HasHeader", BOOLEAN),
    ("Columns", list_of(struct_of((("name", VARCHAR), ("type", VARCHAR))))),
    *((name, VARCHAR) for name in ("DateFormat", "TimestampFormat", "UserArguments", "Prompt")),
)


@dataclass(frozen=True)
class SniffedSource(FormatSource):
    """What was found out about one file."""

    parts: tuple[CsvFile]

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Look at a file; raises `FileError`, `AccessDenied`, and `InvalidQuery` where `columns` says what it is not."""
        if options.get("auto_detect") is False:
            raise InvalidQuery("sniff_csv finds out what a file is: leave out auto_detect.")
        found = find_files(patterns, rules)
        if len(found) > 1:
            raise Unsupported(f'sniff_csv looks at one file, and "{patterns[0]}" means several.')
        asked = options.get("columns")
        freely = {name: value for name, value in options.items() if name != "columns"}
        part = sniffed_file(found[0].path, found[0].identity, freely)
        if isinstance(asked, dict):
            _check_columns(asked, part)
        return cls(part.path, tuple(patterns), options, rules, (part,))

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        return FIELDS

    def tables(self) -> Iterator[pa.Table]:
        (part,) = self.parts
        dialect = part.dialect
        types = {n: str(c.type) for n, c in zip(part.names, part.conversions, strict=True)}
        dates, moments = (_format(part, kind) for kind in (Kind.DATE, Kind.TIMESTAMP))
        values = (
            *map(shown_sign, (dialect.delim, dialect.quote, dialect.escape)),
            LINES[dialect.newline],
            shown_sign(dialect.comment),
            part.skipped,
            part.has_header,
            [{"name": name, "type": kind} for name, kind in types.items()],
            dates,
            moments,
            user_arguments(self.options),
            _call(part, types, dates, moments, self.options),
        )
        yield arrow_table([values], pa.schema([(name, to_arrow(kind)) for name, kind in FIELDS]))


def _check_columns(asked: Mapping[str, object], part: CsvFile) -> None:
    from ..plan.coercion import parse_type

    if len(asked) != part.columns:
        raise InvalidQuery(
            f'columns has {len(asked)} columns, and the file "{part.path}" {part.columns}.'
        )
    for (name, kind), conversion in zip(asked.items(), part.conversions, strict=True):
        if parse_type(str(kind)) != conversion.type:
            raise InvalidQuery(
                f'columns says that "{name}" is {kind}, and sniffing the file "{part.path}" finds {conversion.type}.'
            )


def _format(part: CsvFile, kind: Kind) -> str | None:
    return next((c.format for c in part.conversions if c.type.kind is kind and c.format), None)


def _call(
    part: CsvFile,
    types: Mapping[str, str],
    dates: str | None,
    moments: str | None,
    options: Options,
) -> str:
    """Return a query that reads the file as it was found to be."""
    dialect = part.dialect
    known: dict[str, object] = {
        "delim": dialect.delim,
        "quote": dialect.quote,
        "escape": dialect.escape,
        "new_line": LINES[dialect.newline],
        "skip": part.skipped,
        "comment": dialect.comment,
        "header": part.has_header,
        "columns": dict(types),
    }
    known |= {"dateformat": dates} if dates else {}
    known |= {"timestampformat": moments} if moments else {}
    said = [
        f"{name}={literal(value)}"
        for name, value in known.items()
        if name == "columns" or name not in options
    ]
    given = user_arguments(options)
    told = ", ".join(["auto_detect=false", *said, *([given] if given else [])])
    return f"FROM read_csv({literal(part.path)}, {told});"
