"""Which columns a CSV file has: their names, and their types from the first rows and what the user says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter

from ..errors import FileError, InvalidQuery, Unsupported
from ..plan.coercion import parse_type
from ..plan.text.quoted_name import distinct_names, normalized_name
from ..plan.types import DATE, TIMESTAMP, VARCHAR, DataType
from ..storage.file_identity import FileIdentity
from .csv_candidates import Wishes
from .csv_dialect import DialectSample, names_of, numbered, skipped_lines, sniff
from .csv_fields import CsvFile, Options, head_of, malformed, null_texts, skips_errors, switched
from .csv_rows import CsvRow, Dialect, end_of_lines, fitted_row, rows_of
from .text_types import CAST, NOT_KEPT, Conversion, is_written_as, type_of_texts

CHUNK_ROWS = 2048  # DuckDB's samples are of whole chunks, in which a header counts
SNIFFED_ROWS = 10 * CHUNK_ROWS
SAMPLE_BYTES = (
    1 << 22
)  # of one file, at first; four times as many where it has fewer rows than that
UNTYPED_ROWS = CHUNK_ROWS  # of a sample that have to be text where no type is looked for
_FORMATS = {DATE: "dateformat", TIMESTAMP: "timestampformat"}
SIGNS = ("delim", "quote", "escape", "comment", "new_line")
TOLD = {"delim": ",", "quote": '"', "escape": '"', "comment": ""}  # where nothing is sniffed


def sniffed_file(path: str, identity: FileIdentity, options: Options) -> CsvFile:
    """Look at the first rows of a file; raises `FileError` where no dialect fits them, and `InvalidQuery`."""
    given = {k: str(options[k]) for k in SIGNS if k in options}
    asked = options.get("columns")
    expected = asked if isinstance(asked, dict) else {}
    told = options.get("auto_detect") is False
    for other in ("names", "types"):
        if expected and other in options:
            raise InvalidQuery(f"columns has all names and types: leave out {other}.")
    if told and not expected:
        raise InvalidQuery("auto_detect = false needs columns = {'name': 'TYPE', ...}.")
    _check_signs(TOLD | given, options)
    wishes = _wishes(TOLD | given if told else given, options, len(expected) or None)
    size = options.get("sample_size", SNIFFED_ROWS)
    most = -(-size // CHUNK_ROWS) * CHUNK_ROWS if isinstance(size, int) and size > 0 else 1 << 62
    find = partial(_as_told if told else sniff, wishes=wishes, most_rows=most)
    text, is_whole, bytes_read = "", False, SAMPLE_BYTES
    sample: DialectSample | None = None
    while not is_whole and (sample is None or len(sample.rows) < most):
        text, is_whole = head_of(path, identity, options, bytes_read)
        sample = find(text, is_whole)
        bytes_read *= 4
    if sample is None:
        raise FileError(
            f'The file "{path}" is no CSV with the same number of columns in each row{_asked(given, expected)}: '
            "check delim, quote, new_line and skip, or read ragged rows with null_padding = true, or with ignore_errors = true."
        )
    return _typed(path, identity, sample, options, expected)


def _check_signs(given: Mapping[str, str], options: Options) -> None:
    """Raise `InvalidQuery` where a sign would mean two things."""
    signs = [(name, given[name]) for name in ("delim", "quote", "escape", "comment") if given[name]]
    for number, (name, sign) in enumerate(signs):
        for other, same in signs[number + 1 :]:
            if (name, other) != ("quote", "escape") and same in sign:
                raise InvalidQuery(f'{other} and {name} cannot both have the sign "{same}".')
    thousands = options.get("thousands")
    if thousands and thousands == options.get("decimal_separator", "."):
        raise InvalidQuery(f'thousands and decimal_separator cannot both be "{thousands}".')


def _wishes(given: Mapping[str, str], options: Options, columns: int | None) -> Wishes:
    skip, longest = options.get("skip"), options.get("max_line_size")
    return Wishes(
        given,
        skip if isinstance(skip, int) else None,
        columns,
        skips_errors(options),
        switched(options, "null_padding"),
        options.get("strict_mode") is not False,
        null_texts(options),
        longest if isinstance(longest, int) else None,
    )


def _as_told(text: str, is_whole: bool, wishes: Wishes, most_rows: int) -> DialectSample:
    """Return the rows of a dialect that the user knows; those that do not fit are found when they are read."""
    given = dict(wishes.given)
    newline = given.pop("new_line", end_of_lines(text))
    dialect = Dialect(**given, newline=newline, strict=wishes.strict)
    columns = wishes.columns or 1
    kept: list[CsvRow] = []
    regular = True
    for row in rows_of(dialect, [text], skipped_lines(text, is_whole, wishes) or 0):
        if len(kept) >= most_rows:
            break
        fitted = fitted_row(row, columns, wishes.pads, wishes.nulls)
        regular = regular and fitted is row and not (row.comment or row.spaced)
        if row.comment != "line" and row.text:
            kept.append(fitted or row)
    return DialectSample(dialect, columns, tuple(kept if is_whole else kept[:-1]), regular)


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
    rows, count = [row.fields for row in sample.rows], sample.columns
    auto = options.get("auto_detect") is not False
    data = rows[1:] if len(rows) > 1 else rows
    conversions = [_as_type(kind, options) for kind in expected.values()]
    if not expected:
        conversions = _conversions(data, count, options)
    said = options.get("header") if auto else options.get("header", False)
    header = _is_header(rows, conversions, options, bool(expected)) if said is None else said
    if len(rows) == 1 and header and not expected:
        conversions = [Conversion(VARCHAR, is_seen=False)] * count
    elif options.get("all_varchar") and not expected:  # by what the values are, a row was a header
        conversions = [Conversion(VARCHAR)] * count
    elif said is False and rows and not expected:
        conversions = _conversions(rows, count, options)
    for i, told in enumerate(conversions[:count] if expected and auto else ()):
        values = _values(rows[1:] if header else rows, i, options)
        conversions[i] = _as_seen(told, partial(_conversion, values, options))
    nulls = null_texts(options)
    above = [None if v in nulls else v for v in rows[0]] if header and rows else None
    names = _names(above, count, options, expected, path)
    conversions += [Conversion(VARCHAR)] * (len(names) - len(conversions))
    skipped = sample.rows[0].line - 1 if sample.rows else _skip(options)
    first = sample.rows[0].end_line if header and rows else skipped
    _apply_types(names, conversions, options, path)
    _check_not_null(names, options, path)
    dialect = sample.dialect
    plain = dialect.strict and not dialect.comment and dialect.escape in ("", dialect.quote)
    regular = sample.is_regular and plain and len(dialect.delim.encode()) == 1
    part = CsvFile(
        path,
        identity,
        dialect,
        first,
        tuple(names),
        tuple(conversions),
        regular,
        bool(header),
        skipped,
    )
    if sample.no_text is not None and not skips_errors(options):
        before, row = sample.no_text
        if before < UNTYPED_ROWS or not options.get("all_varchar"):
            raise malformed(part, row, range(count))
    return part


def _skip(options: Options) -> int:
    skip = options.get("skip", 0)
    return skip if isinstance(skip, int) else 0


def _names(
    header: Sequence[str | None] | None,
    count: int,
    options: Options,
    expected: Mapping[str, object],
    path: str,
) -> list[str]:
    if expected:
        return list(expected)
    names = [numbered(i, count) for i in range(count)] if header is None else names_of(header)
    if header is not None and switched(options, "normalize_names"):
        names = [normalized_name(name) for name in names]
    given = options.get("names", ())
    assert isinstance(given, tuple)
    if len(given) > count and not switched(options, "null_padding"):
        raise InvalidQuery(f'names has {len(given)} names, and the file "{path}" {count} columns.')
    return distinct_names([*given, *names[len(given) :]])


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
        if name.lower() in lower:
            place = lower.index(name.lower())
            seen = partial(conversions.__getitem__, place)
            conversions[place] = _as_seen(_as_type(kind, options), seen)
        elif not skips_errors(options) and not switched(options, "union_by_name"):
            raise InvalidQuery(f'types names the column "{name}", which the file "{path}" has not.')


def _check_not_null(names: Sequence[str], options: Options, path: str) -> None:
    asked = options.get("force_not_null", ())
    assert isinstance(asked, tuple)
    known = {name.lower() for name in names}
    for name in asked:
        if name.lower() not in known:
            raise InvalidQuery(
                f'force_not_null names the column "{name}", which the file "{path}" has not.'
            )


def _as_seen(told: Conversion, seen: Callable[[], Conversion]) -> Conversion:
    """Read days and moments, of which no format was told, in the one that the values have, where casts do not take it."""
    if told.type not in (DATE, TIMESTAMP) or told.format:
        return told
    found = seen()
    is_cast = found.type != told.type or (found.format or "%Y").startswith("%Y")
    return told if is_cast else found


def _as_type(asked: str | DataType, options: Options) -> Conversion:
    found = parse_type(asked) if isinstance(asked, str) else asked
    if found.kind in NOT_KEPT or found.is_nested:
        raise Unsupported(f"read_csv makes no columns of {found}: read VARCHAR and cast it.")
    moment = found.is_temporal and str(found).startswith("TIMESTAMP")
    form = options.get("timestampformat" if moment else "dateformat")
    dated = moment or str(found) == "DATE"
    comma, thousands = _number_signs(options)
    return Conversion(found, str(form) if form and dated else None, comma, thousands)


def _number_signs(options: Options) -> tuple[bool, str]:
    return options.get("decimal_separator") == ",", str(options.get("thousands", ""))


def _conversions(
    rows: Sequence[Sequence[str | None]], count: int, options: Options
) -> list[Conversion]:
    """Return how columns are converted: the form of the first one of days is that of all, and so is that of moments."""
    known: dict[str, object] = dict(options)
    found = []
    for i in range(count):
        found.append(_conversion(_values(rows, i, options), known))
        if (name := _FORMATS.get(found[-1].type)) is not None:
            known[name] = found[-1].format or CAST
    return found


def _conversion(values: Sequence[str | None], options: Options) -> Conversion:
    forms = [options.get(name) for name in _FORMATS.values()]
    dates, moments = (str(form) if form not in (None, "auto") else None for form in forms)
    return type_of_texts(values, dates, moments, *_number_signs(options))


def _is_header(
    rows: Sequence[Sequence[str | None]],
    conversions: Sequence[Conversion],
    options: Options,
    are_told: bool,
) -> bool:
    """Whether the first row names the columns: it has what is no value of their types, nothing where no types are told, or nothing but text."""
    if not rows:
        return False
    first = [_values(rows[:1], i, options)[0] for i in range(len(conversions))]
    if all(value is None for value in first):
        return not are_told
    if all(c.type == VARCHAR and c.is_seen for c in conversions):
        return True
    return any(
        value is not None and not is_written_as(value, conversion)
        for value, conversion in zip(first, conversions, strict=True)
    )


def _values(
    rows: Sequence[Sequence[str | None]], number: int, options: Options
) -> list[str | None]:
    """Return the distinct values of a column."""
    nulls = null_texts(options)
    distinct = dict.fromkeys(map(itemgetter(number), rows))
    return [None if v in nulls else v for v in distinct]
