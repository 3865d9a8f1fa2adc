"""CSV files as a table: fields are split as text, and converted by the engine's own casts.

sniff_csv: what is found out about a CSV file, as one row with the call that reads it so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConversionError, DataError, FileError, FuselineError, InvalidQuery, Unsupported
from ..plan.arrow.arrow_arrays import array_from, scalar_from
from ..plan.arrow.arrow_types import arrow_table
from ..plan.coercion import common
from ..plan.types import BOOLEAN, UBIGINT, VARCHAR, DataType, Kind, list_of, struct_of, to_arrow
from ..records import dataclass
from ..storage.tables.access import AccessRules
from ..storage.tables.files import find_files
from .csv_columns import sniffed_file
from .csv_fields import CsvFile, Fields, Options, line_of, null_texts, skips_errors, split_fields
from .csv_rejects import (
    LINES,
    Rejects,
    check_names,
    literal,
    shown_sign,
    user_arguments,
    wrong_values,
)
from .csv_rows import CsvRow, is_text
from .file_source import FormatSource, PathColumn, path_columns, schema_of
from .text_types import Conversion, convert, first_bad

Wanted = tuple[int | None, Conversion | PathColumn]  # a column, and which value of a row it has


@dataclass(frozen=True)
class CsvSource(FormatSource):
    """CSV files that are read as one table."""

    parts: tuple[CsvFile, ...]
    columns: tuple[tuple[str, Conversion | PathColumn], ...]

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> Self:
        """Find the files and sniff each; raises `FileError`, `InvalidQuery` and `AccessDenied`."""
        check_names(options)
        parts = tuple(
            sniffed_file(f.path, f.identity, options) for f in find_files(patterns, rules)
        )
        columns = _columns(parts, bool(options.get("union_by_name")))
        of_paths = path_columns([part.path for part in parts], options, list(columns))
        instead = {column.name.lower(): column for column in of_paths}
        found = {name: instead.pop(name.lower(), column) for name, column in columns.items()}
        found |= {column.name: column for column in instead.values()}
        return cls(parts[0].path, tuple(patterns), options, rules, parts, tuple(found.items()))

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        return tuple((name, column.type) for name, column in self.columns)

    def selected(self, columns: frozenset[str]) -> frozenset[str]:
        return columns

    @property
    def leaves_out_rows(self) -> bool:
        return skips_errors(self.options)

    @cached_property
    def rejects(self) -> Rejects | None:
        """What reading leaves out, where it is to be kept."""
        return Rejects(self.options) if self.options.get("store_rejects") else None

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
        schema = schema_of(self, columns)
        if self.rejects is not None:
            self.rejects.begin()
        for number, part in enumerate(self.parts):
            if self.rejects is not None:
                self.rejects.add_file(number, part)
            where = {name.lower(): place for place, name in enumerate(part.names)}
            wanted = [(where.get(n.lower()), c) for n, c in self.columns if n in columns]
            places = [i for i, c in wanted if i is not None and not isinstance(c, PathColumn)]
            before = 0
            # DuckDB looks at the first values where it only counts rows
            for fields in split_fields(part, self.options, places or [0]):
                arrays = self._converted(number, fields, wanted, before)
                yield pa.table(arrays or [pa.nulls(fields.count, pa.bool_())], schema=schema)
                before += fields.count

    def _converted(
        self,
        number: int,
        fields: Fields,
        wanted: Sequence[Wanted],
        before: int,
    ) -> list[pa.Array]:
        """Return the columns of some rows without those that have values of other types."""
        part, texts, lenient = self.parts[number], fields.texts, skips_errors(self.options)
        arrays: list[pa.Array] = []
        bad: dict[int, pa.Array] = {}
        for place, conversion in wanted:
            if isinstance(conversion, PathColumn):
                arrays.append(conversion.array(number, fields.count))
                continue
            if place is None:
                arrays.append(pa.nulls(fields.count, to_arrow(conversion.type)))
                continue
            column = self._with_nulls(part, place, texts.column(str(place)).combine_chunks())
            try:
                values = convert(column, conversion, safe=lenient)
            except DataError as error:
                raise self._refused(part, column, place, conversion, before, error) from error
            arrays.append(values)
            if lenient and values.null_count > column.null_count:
                bad[place] = pc.and_(pc.is_null(values), pc.is_valid(column))
        if self.rejects is not None:
            self.rejects.add_rows(number, part, self._rejected(number, fields, wanted, bad))
        if not bad:
            return arrays
        wrong = array_from([False] * fields.count)
        for flags in bad.values():
            wrong = pc.or_(wrong, flags)
        kept = pc.invert(wrong)
        return [a.filter(kept) for a in arrays]

    def _rejected(
        self,
        number: int,
        fields: Fields,
        wanted: Sequence[Wanted],
        bad: Mapping[int, pa.Array],
    ) -> Iterator[tuple[object, ...]]:
        """Yield what is wrong with some rows, in their order."""
        part = self.parts[number]
        known = {p: c for p, c in wanted if p is not None and isinstance(c, Conversion)}
        found: list[tuple[CsvRow, dict[int, Conversion]]] = [
            (row, self._bad_values(part, row, known)) for row in fields.wrong
        ]
        for at, row in enumerate(fields.rows if bad else ()):
            places = {p: known[p] for p in sorted(bad) if bad[p][at].as_py()}
            if places:
                found.append((row, places))
        for row, places in sorted(found, key=lambda pair: pair[0].start):
            yield from wrong_values(row, part, self.options, places, sorted(known) or [0])

    def _bad_values(
        self, part: CsvFile, row: CsvRow, known: Mapping[int, Conversion]
    ) -> dict[int, Conversion]:
        if row.fault:
            return {}
        bad = {}
        for place, conversion in sorted(known.items()):
            found = row.fields[place] if place < len(row.fields) else None
            is_null = found in null_texts(self.options) and place not in row.quoted
            if found is not None and is_text(found) and not is_null:
                text = self._with_nulls(part, place, array_from([row.fields[place]], pa.string()))
                if convert(text, conversion, safe=True).null_count > text.null_count:
                    bad[place] = conversion
        return bad

    def _with_nulls(self, part: CsvFile, place: int, texts: pa.Array) -> pa.Array:
        """Return texts with NULL for what stands for it; where that is forbidden it is an empty text."""
        asked = self.options.get("force_not_null", ())
        assert isinstance(asked, tuple)
        forced = part.names[place].lower() in {name.lower() for name in asked}
        instead = scalar_from("" if forced else None, texts.type)
        if self.options.get("allow_quoted_nulls") is False:  # found as the fields were split
            return texts.fill_null("") if forced else texts
        for null in dict.fromkeys(null_texts(self.options)):
            texts = pc.if_else(pc.equal(texts, null), instead, texts)
        return texts

    def _refused(
        self,
        part: CsvFile,
        texts: pa.Array,
        place: int,
        conversion: Conversion,
        before: int,
        error: DataError,
    ) -> FuselineError:
        bad = first_bad(texts, conversion)
        if bad is None:
            return error
        line = line_of(part, self.options, before + bad)
        return ConversionError(
            f'"{texts[bad].as_py()}" is no {conversion.type}: file "{part.path}", line {line}, column "{part.names[place]}". '
            f"{self._ways_out(part.names[place])}"
        )

    def _ways_out(self, column: str) -> str:
        if "columns" in self.options:
            return "Give nullstr, header, or ignore_errors = true."
        return f"Give its type (types = {{'{column}': 'VARCHAR'}}), a larger sample_size, nullstr, or ignore_errors = true."


def _columns(parts: Sequence[CsvFile], by_name: bool) -> dict[str, Conversion]:
    """Return the columns of several files: those of the first, or of all together."""
    first = parts[0]
    found = {n.lower(): (n, c) for n, c in zip(first.names, first.conversions, strict=True)}
    for part in parts[1:]:
        own = {n.lower(): (n, c) for n, c in zip(part.names, part.conversions, strict=True)}
        for key, (name, conversion) in own.items():
            if key not in found:
                if by_name:
                    found[key] = name, conversion
                continue
            spelled, known = found[key]
            both = _both(known, conversion, by_name)
            if both != known and not (by_name or list(own)[: len(found)] == list(found)):
                raise FileError(
                    f'The column "{name}" is {conversion.type} in the file "{part.path}" and {known.type} in "{first.path}", where columns '
                    "stand in another order: give their types with types, or add union_by_name."
                )
            found[key] = spelled, both
        missing = [] if by_name else [n for k, (n, _) in found.items() if k not in own]
        if missing:
            raise FileError(
                f'The file "{part.path}" has no column "{missing[0]}", which "{first.path}" has: '
                "files that are read as one table need the same columns, or union_by_name = true."
            )
    return dict(found.values())


def _both(one: Conversion, other: Conversion, by_name: bool) -> Conversion:
    """Return the type of the values of two files: where neither has another the text, but for numbers and, by name, moments."""
    if one == other or not (one.is_seen and other.is_seen):
        return one if one.is_seen else other
    types = [one.type, other.type]
    fits = VARCHAR not in types if by_name else all(t.is_numeric for t in types)
    if one.format == other.format and fits:
        shared = common(types)
        if shared is not None:
            return replace(one, type=shared)
    return Conversion(VARCHAR)


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

    def tables(self, columns: frozenset[str]) -> Iterator[pa.Table]:
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
