"""Which type the texts of a column have, decided on a sample as DuckDB does: the first candidate that all of them are values of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc

from ..operators.cpu.functions.expressions import evaluate
from ..operators.cpu.table import Table, to_logical, to_physical
from ..plan import infer, types as ty
from ..plan.arrow.arrow_arrays import array_from
from ..plan.casts import cast
from ..plan.expr import ColumnRef, Expr, Literal, new_column
from ..records import dataclass

# Types of columns that no file of text has: Parquet files, which keep the rows, lack them
NOT_KEPT = (
    ty.Kind.INTERVAL,
    ty.Kind.TIMESTAMP_S,
    ty.Kind.TIMESTAMP_MS,
    ty.Kind.TIMESTAMP_NS,
    ty.Kind.NULL,
)
_WHOLE = r"\s*-?(0|[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[bB][01][01_]*)\s*"
_NUMBER = r"\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
CLOCK = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
_DAY = r"[0-9]{4}([-/. ])[0-9]{1,2}\1[0-9]{1,2}"
_ZONE = r"\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_CAST_DAY = r"\s*[0-9]+([-/. ])[0-9]{1,2}\1[0-9]{1,2}\s*"
_WORD = r"\s*(?i:-?inf(?:inity)?|epoch)"
_CANDIDATES: tuple[tuple[ty.DataType, str], ...] = (
    (ty.BOOLEAN, r"(?i:true|false|t|f|yes|no)"),
    (ty.TIME, CLOCK),
    (ty.DATE, f"{_DAY}|{_WORD}"),
    (ty.TIMESTAMP, rf"{_DAY}(?:[ T]{CLOCK})?"),
    (ty.TIMESTAMPTZ, rf"{_DAY}(?:[ T]{CLOCK}(?:{_ZONE})?)?|{_WORD}"),
    (ty.BIGINT, _WHOLE),
    (ty.HUGEINT, _WHOLE),
    (ty.DOUBLE, rf"{_NUMBER}|\s*(?i:-?(?:nan|inf(?:inity)?))"),
)
# How a first row is written that is no header above values of these types, whose casts take other texts, too
_WRITTEN = {kind: written for kind, written in _CANDIDATES if kind != ty.TIMESTAMPTZ}
_WRITTEN[ty.TIMESTAMP] = f"{_DAY}.*"
CAST = ""  # in the place of a format: as casts read texts that are written so
_CAST = {
    ty.DATE: re.compile(f"{_CAST_DAY}|{_WORD}"),
    ty.TIMESTAMP: re.compile(rf"{_CAST_DAY}(?:[ T]{CLOCK})?\s*"),
}
_COMMA = str.maketrans(",.", ".,")
_SIGNS = ("-", "/", ".", " ")
# The clock behind a day, and the orders of days that DuckDB tries with it
_FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("%y{}%m{}%d", "%d{}%m{}%Y", "%d{}%m{}%y", "%m{}%d{}%Y", "%m{}%d{}%y")),
    (" %H:%M:%S", ("%Y{}%m{}%d", "%y{}%m{}%d", "%d{}%m{}%Y", "%d{}%m{}%y")),
    (" %I:%M:%S %p", ("%m{}%d{}%Y", "%m{}%d{}%y")),
)


@dataclass(frozen=True)
class Conversion:
    """How the texts of a column become values of a type: by a cast, or in a format."""

    type: ty.DataType
    format: str | None = None
    decimal_comma: bool = False
    thousands: str = ""  # what may stand between digits
    is_seen: bool = field(default=True, compare=False)  # False where no value said what they are

    def of(self, text: Expr, safe: bool) -> Expr:
        """Return the expression that converts, to NULL where `safe` and the text is no value."""
        if self.type.kind is ty.Kind.VARCHAR:
            return text
        if self.thousands and self.type.is_numeric:
            text = infer.call(
                "replace", [text, Literal(self.thousands, ty.VARCHAR), Literal("", ty.VARCHAR)]
            )
        if self.decimal_comma and (self.type.is_float or self.type.is_decimal):
            signs = [Literal(",", ty.VARCHAR), Literal(".", ty.VARCHAR)]
            text = infer.call("replace", [text, *signs])
        if self.format is not None:
            name = "try_strptime" if safe else "strptime"
            moment = infer.call(name, [text, Literal(self.format, ty.VARCHAR)])
            return cast(moment, self.type, safe=safe)
        return cast(text, self.type, safe=safe)


def convert(texts: pa.Array, conversion: Conversion, safe: bool = False) -> pa.Array:
    """Return the values of texts, as results have them; raises `ConversionError` unless `safe`."""
    column = new_column("text", ty.VARCHAR)
    table = Table({column.id: to_physical(texts, ty.VARCHAR)}, len(texts))
    made = evaluate(conversion.of(ColumnRef(column), safe), table, 1)
    return to_logical(made, conversion.type)


def fits(texts: pa.Array, conversion: Conversion) -> bool:
    return convert(texts, conversion, safe=True).null_count == 0


def is_written_as(text: str, conversion: Conversion) -> bool:
    """Whether a text is no header above values of a type: it is written as they are, where a cast takes 1.5 for a BIGINT."""
    written = _WRITTEN.get(conversion.type, "")
    digits = text.replace(conversion.thousands, "") if conversion.thousands else text
    if conversion.decimal_comma:
        digits = digits.translate(_COMMA)
    if written and conversion.format is None and re.fullmatch(written, digits) is None:
        return False
    return conversion.is_seen and fits(array_from([text], pa.string()), conversion)


def type_of_texts(
    values: Sequence[str | None],
    dates: str | None,
    moments: str | None,
    comma: bool,
    thousands: str = "",
) -> Conversion:
    """Return what all values of a sample are, which are distinct; VARCHAR where there are none."""
    known = [v for v in values if v is not None]
    texts = array_from(known, pa.string())
    for candidate in _candidates(known, dates, moments, comma, thousands) if known else ():
        if fits(texts, candidate):
            return candidate
    return Conversion(ty.VARCHAR, is_seen=bool(known))


def _candidates(
    known: Sequence[str], dates: str | None, moments: str | None, comma: bool, thousands: str
) -> Iterator[Conversion]:
    """Yield types in DuckDB's order; a format that is given is the only one of its type, and what it is none of may be the next type."""
    told = {ty.DATE: dates, ty.TIMESTAMP: moments}
    if re.fullmatch(_WORD, known[0]):  # which DuckDB takes for a day where it comes first
        if all(map(re.compile(_WRITTEN[ty.DATE]).fullmatch, known)):
            yield Conversion(ty.DATE, dates or None)
        return
    digits = [v.replace(thousands, "") for v in known] if thousands else known
    whole = all(map(re.compile(_WHOLE).fullmatch, digits))
    for data_type, written in _CANDIDATES:
        if whole and data_type == ty.DOUBLE:  # which would lose digits
            return
        if data_type == ty.TIMESTAMP and _is_day(known[0], dates):
            return  # the first text was a day, and a later one was none
        if (form := told.get(data_type)) is not None:
            if form != CAST or all(map(_CAST[data_type].fullmatch, known)):
                yield Conversion(data_type, form or None)
            continue
        pattern = written.replace(r"\.", ",") if comma and data_type == ty.DOUBLE else written
        texts = digits if data_type.is_numeric else known
        if all(map(re.compile(pattern).fullmatch, texts)):
            sign = re.search(r"[0-9]{4}([/. ])", known[0]) if data_type.is_temporal else None
            if sign is None or data_type.kind is ty.Kind.TIME or data_type == ty.TIMESTAMPTZ:
                yield Conversion(data_type, None, comma, thousands)
            elif data_type == ty.DATE:
                yield Conversion(ty.DATE, "%Y{}%m{}%d".replace("{}", sign[1]))
            elif all(map(re.compile(_DAY).fullmatch, texts)):
                yield Conversion(data_type)
        yield from _in_forms(known, data_type)


def _is_day(text: str, form: str | None) -> bool:
    if form is None:
        return re.fullmatch(_DAY, text) is not None
    if form == CAST:
        return _CAST[ty.DATE].fullmatch(text) is not None
    return fits(array_from([text], pa.string()), Conversion(ty.DATE, form))


def _in_forms(known: Sequence[str], data_type: ty.DataType) -> Iterator[Conversion]:
    """Yield the formats of days, or of days and clocks, that DuckDB tries where each text is written in their signs."""
    wanted = {ty.DATE: _FORMS[:1], ty.TIMESTAMP: _FORMS[1:]}.get(data_type, ())
    for sign_of in _SIGNS if wanted else ():
        day = rf"[0-9]{{1,4}}\{sign_of}[0-9]{{1,2}}\{sign_of}[0-9]{{1,4}}"
        for clock, orders in wanted:
            pattern = rf"{day} {CLOCK}( [AaPp][Mm])?" if clock else day
            if all(map(re.compile(pattern).fullmatch, known)):
                for order in orders:
                    yield Conversion(data_type, order.replace("{}", sign_of) + clock)


def first_bad(texts: pa.Array, conversion: Conversion) -> int | None:
    """Return the number of the first text that is no value of the type."""
    made = convert(texts, conversion, safe=True)
    wrong = pc.and_(pc.is_null(made), pc.is_valid(texts))
    place = pc.index(wrong, True).as_py()
    return None if place < 0 else int(place)
