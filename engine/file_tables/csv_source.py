"""CSV files as a table: fields are split as text by Arrow, and converted by the engine's own casts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConversionError, DataError, FileError, FuselineError, InvalidQuery, Unsupported
from ..plan.coercion import common, parse_type
from ..plan.distinct_names import distinct_names
from ..plan.types import VARCHAR, DataType, to_arrow
from ..storage.file_identity import FileIdentity
from ..storage.tables.access import AccessRules
from ..storage.tables.files import find_files
from .csv_dialect import DialectSample, names_of, sniff
from .csv_fields import CsvFile, Options, head_of, line_of, null_texts, split_fields
from .text_types import NOT_KEPT, Conversion, convert, first_bad, fits, type_of_texts

SNIFFED_ROWS = 20_480  # as DuckDB's
SAMPLE_BYTES = (
    1 << 22
)  # of one file, at first; four times as many where it has fewer rows than that


@dataclass(frozen=True)
class CsvSource:
    """CSV files that are read as one table."""

    name: str
    patterns: tuple[str, ...]
    options: Options
    rules: AccessRules
    parts: tuple[CsvFile, ...]
    columns: tuple[tuple[str, Conversion], ...]
    constant: str | None  # the name of the column of paths

    @classmethod
    def open(cls, patterns: Sequence[str], options: Options, rules: AccessRules) -> CsvSource:
        """Find the files and sniff each; raises `FileError` and `AccessDenied`."""
        parts = tuple(_sniffed(f.path, f.identity, options) for f in find_files(patterns, rules))
        columns = _columns(parts, bool(options.get("union_by_name")))
        wanted = options.get("filename")
        constant = "filename" if wanted is True else wanted if isinstance(wanted, str) else None
        return cls(
            parts[0].path, tuple(patterns), options, rules, parts, tuple(columns.items()), constant
        )

    @property
    def files(self) -> tuple[FileIdentity, ...]:
        return tuple(part.identity for part in self.parts)

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        constant = [(self.constant, VARCHAR)] if self.constant else []
        return (*((name, c.type) for name, c in self.columns), *constant)

    @property
    def unsupported(self) -> Mapping[str, DataType]:
        return {}

    def anew(self, rules: AccessRules) -> CsvSource:
        return CsvSource.open(self.patterns, self.options, rules)

    def tables(self) -> Iterator[pa.Table]:
        schema = pa.schema([(name, to_arrow(t)) for name, t in self.fields])
        for part in self.parts:
            where = {name.lower(): number for number, name in enumerate(part.names)}
            before = 0
            for texts in split_fields(part, self.options):
                wanted = [
                    (where.get(name.lower()), conversion) for name, conversion in self.columns
                ]
                arrays, kept = self._converted(part, texts, wanted, before)
                rows = texts.num_rows if kept is None else pc.sum(kept).as_py() or 0
                if self.constant:
                    arrays.append(pa.repeat(part.path, rows))
                yield pa.table(arrays, schema=schema)
                before += texts.num_rows

    def _converted(
        self,
        part: CsvFile,
        texts: pa.Table,
        wanted: Sequence[tuple[int | None, Conversion]],
        before: int,
    ) -> tuple[list[pa.Array], pa.Array | None]:
        lenient = bool(self.options.get("ignore_errors"))
        arrays: list[pa.Array] = []
        kept: pa.Array | None = None
        for place, conversion in wanted:
            if place is None:
                arrays.append(pa.nulls(texts.num_rows, to_arrow(conversion.type)))
                continue
            column = _with_nulls(texts.column(place).combine_chunks(), self.options)
            try:
                values = convert(column, conversion, safe=lenient)
            except DataError as error:
                raise self._refused(part, column, place, conversion, before, error) from error
            arrays.append(values)
            if lenient and values.null_count > column.null_count:
                good = pc.or_(pc.is_valid(values), pc.is_null(column))
                kept = good if kept is None else pc.and_(kept, good)
        return (arrays, None) if kept is None else ([a.filter(kept) for a in arrays], kept)

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


def _sniffed(path: str, identity: FileIdentity, options: Options) -> CsvFile:
    given = {k: str(options[k]) for k in ("delim", "quote", "escape") if k in options}
    asked = options.get("columns")
    expected = asked if isinstance(asked, dict) else {}
    if options.get("auto_detect") is False:
        if not expected:
            raise InvalidQuery("auto_detect = false needs columns = {'name': 'TYPE', ...}.")
        given = {"delim": ",", "quote": '"', "escape": '"', **given}
    size = options.get("sample_size", SNIFFED_ROWS)
    most = size if isinstance(size, int) and size >= 0 else 1 << 62
    skip = options.get("skip", 0)
    assert isinstance(skip, int)
    text, is_whole, bytes_read = "", False, SAMPLE_BYTES
    sample: DialectSample | None = None
    while not is_whole and (sample is None or len(sample.rows) < most):
        text, is_whole = head_of(path, identity, options, bytes_read)
        sample = sniff(
            text,
            is_whole,
            given,
            skip,
            max(most, 1) + 1,
            len(expected) or None,
            bool(options.get("ignore_errors")),
        )
        bytes_read *= 4
    if sample is None:
        raise FileError(
            f'The file "{path}" is no CSV with the same number of columns in each row{_asked(given, expected)}: '
            "check delim, quote and skip, or read ragged rows with ignore_errors = true and columns = {...}."
        )
    return _typed(path, identity, sample, options, expected)


def _asked(given: Mapping[str, str], expected: Mapping[str, str | DataType]) -> str:
    said = [f"{name} = {value!r}" for name, value in given.items()]
    said += [f"{len(expected)} columns"] if expected else []
    return f" for {', '.join(said)}" if said else ""


def _typed(
    path: str,
    identity: FileIdentity,
    sample: DialectSample,
    options: Options,
    expected: Mapping[str, str | DataType],
) -> CsvFile:
    """Decide on the header and the types of a file."""
    rows, count = sample.rows, sample.dialect.columns
    data = rows[1:] if len(rows) > 1 else rows
    columns = [_values(data, i, options) for i in range(count)]
    conversions = [_conversion(values, options) for values in columns]
    if expected:
        conversions = [_as_type(kind, options) for kind in expected.values()]
    header = options.get("header")
    if header is None:
        header = options.get("auto_detect") is not False and _is_header(rows, conversions, options)
    if len(rows) == 1 and header and not expected:
        conversions = [Conversion(VARCHAR)] * count
    elif not header and rows and not expected:
        conversions = [_conversion(_values(rows, i, options), options) for i in range(count)]
    names = names_of(rows[0]) if header and rows else [f"column{i}" for i in range(count)]
    given = options.get("names", ())
    assert isinstance(given, tuple)
    if expected:
        names = list(expected)
    elif len(given) > count:
        raise InvalidQuery(f'names has {len(given)} names, and the file "{path}" {count} columns.')
    names = distinct_names([*given, *names[len(given) :]])
    skip = options.get("skip", 0)
    assert isinstance(skip, int)
    first = skip + sample.ends[0] if header and rows else sample.dialect.skipped
    _apply_types(names, conversions, options, path)
    return CsvFile(path, identity, sample.dialect, first, tuple(names), tuple(conversions))


def _apply_types(
    names: list[str], conversions: list[Conversion], options: Options, path: str
) -> None:
    asked = options.get("types", ())
    if isinstance(asked, tuple):
        if len(asked) > len(names):
            raise InvalidQuery(
                f'types has {len(asked)} types, and the file "{path}" {len(names)} columns.'
            )
        asked = dict(zip(names, asked, strict=False))
    assert isinstance(asked, dict)
    lower = [name.lower() for name in names]
    for name, kind in asked.items():
        if name.lower() not in lower:
            raise InvalidQuery(f'types names the column "{name}", which the file "{path}" has not.')
        conversions[lower.index(name.lower())] = _as_type(kind, options)


def _as_type(asked: str | DataType, options: Options) -> Conversion:
    found = parse_type(asked) if isinstance(asked, str) else asked
    if found.kind in NOT_KEPT or found.is_nested:
        raise Unsupported(f"read_csv makes no columns of {found}: read VARCHAR and cast it.")
    moment = found.is_temporal and str(found).startswith("TIMESTAMP")
    form = options.get("timestampformat" if moment else "dateformat")
    dated = moment or str(found) == "DATE"
    return Conversion(
        found, str(form) if form and dated else None, options.get("decimal_separator") == ","
    )


def _conversion(values: Sequence[str | None], options: Options) -> Conversion:
    if options.get("all_varchar"):
        return Conversion(VARCHAR)
    forms = [options.get(name) for name in ("dateformat", "timestampformat")]
    dates, moments = (form if isinstance(form, str) else None for form in forms)
    return type_of_texts(values, dates, moments, options.get("decimal_separator") == ",")


def _is_header(
    rows: Sequence[Sequence[str]], conversions: Sequence[Conversion], options: Options
) -> bool:
    """Whether the first row names the columns: it has what is no value of their types, nothing, or nothing but text."""
    if not rows:
        return False
    first = [_values(rows[:1], i, options)[0] for i in range(len(conversions))]
    if all(value is None for value in first):
        return True
    if all(c.type == VARCHAR for c in conversions):
        return True
    return any(
        value is not None and not fits(pa.array([value]), conversion)
        for value, conversion in zip(first, conversions, strict=True)
    )


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
            known = found[key][1]
            both = known if known == conversion else _both(known, conversion)
            if both != known and not by_name:
                raise FileError(
                    f'The column "{name}" is {conversion.type} in the file "{part.path}" and {known.type} in "{first.path}": '
                    "files that are read as one table need the same types; give them with types, or add union_by_name."
                )
            found[key] = found[key][0], both
        missing = [] if by_name else [n for k, (n, _) in found.items() if k not in own]
        if missing:
            raise FileError(
                f'The file "{part.path}" has no column "{missing[0]}", which "{first.path}" has: '
                "files that are read as one table need the same columns, or union_by_name = true."
            )
    return dict(found.values())


def _both(one: Conversion, other: Conversion) -> Conversion:
    if one.format == other.format and VARCHAR not in (one.type, other.type):
        shared = common([one.type, other.type])
        if shared is not None:
            return replace(one, type=shared)
    return Conversion(VARCHAR)


def _values(rows: Sequence[Sequence[str]], number: int, options: Options) -> list[str | None]:
    """Return the distinct values of a column."""
    nulls = null_texts(options)
    return [None if v in nulls else v for v in dict.fromkeys(row[number] for row in rows)]


def _with_nulls(texts: pa.Array, options: Options) -> pa.Array:
    if options.get("allow_quoted_nulls") is False:
        return texts  # they were found as the fields were split
    for null in dict.fromkeys(null_texts(options)):
        texts = pc.if_else(pc.equal(texts, null), pa.scalar(None, texts.type), texts)
    return texts
