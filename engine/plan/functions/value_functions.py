"""Functions of texts and numbers that are computed once for each distinct value, on the host."""

from __future__ import annotations

from collections.abc import Sequence

from .. import types as ty
from .row import FunctionRow, Resolve, Resolved, fixed, operator, overloads, repeated

_TEXT_OF_TEXT = fixed(ty.VARCHAR, result=ty.VARCHAR)
_TEXT_OF_BYTES = fixed(ty.BLOB, result=ty.VARCHAR)
_BYTES_OF_TEXT = fixed(ty.VARCHAR, result=ty.BLOB)
_PAIR = fixed(ty.VARCHAR, ty.VARCHAR, result=ty.BIGINT)
_SIMILARITY = fixed(ty.VARCHAR, ty.VARCHAR, ty.DOUBLE, result=ty.DOUBLE, optional=1)
_SIZE = fixed(ty.BIGINT, result=ty.VARCHAR)
_PATH = fixed(ty.VARCHAR, ty.VARCHAR, result=ty.VARCHAR, optional=1)

_NAME_OF_PATH = overloads(
    _PATH, fixed(ty.VARCHAR, ty.BOOLEAN, ty.VARCHAR, result=ty.VARCHAR, optional=1)
)


def _hexadecimal(types: Sequence[ty.DataType]) -> Resolved:
    return (
        fixed(ty.BLOB, result=ty.VARCHAR)(types)
        if list(types) == [ty.BLOB]
        else _number_or_text(types)
    )


def _ticks(types: Sequence[ty.DataType]) -> Resolved:
    return (tuple(types), ty.BIGINT) if len(types) == 1 and types[0].is_ticks else None


def _code(types: Sequence[ty.DataType]) -> Resolved:
    return (tuple(types), types[0].codes) if len(types) == 1 and types[0].is_enum else None


def _number_or_text(types: Sequence[ty.DataType]) -> Resolved:
    """A text by its bytes; a whole number by its bits, of which a negative one has 64, or a HUGEINT's 128."""
    if len(types) == 1 and types[0].kind in (ty.Kind.VARCHAR, ty.Kind.NULL):
        return (ty.VARCHAR,), ty.VARCHAR
    if len(types) == 1 and types[0].is_whole:
        return (types[0],), ty.VARCHAR
    return None


def _formatted(types: Sequence[ty.DataType]) -> Resolved:
    """A text and what goes into it: numbers and truth values as they are, but decimals as DOUBLE, the rest as text."""
    if not types or types[0].kind not in (ty.Kind.VARCHAR, ty.Kind.NULL):
        return None

    def target(given: ty.DataType) -> ty.DataType:
        if given.is_whole or given.kind is ty.Kind.BOOLEAN:
            return given
        return ty.DOUBLE if given.is_numeric else ty.VARCHAR

    return (ty.VARCHAR, *map(target, types[1:])), ty.VARCHAR


def _row(
    name: str, resolve: Resolve, parameters: str, *aliases: str, raises: bool = True
) -> FunctionRow:
    return FunctionRow(name, resolve, f"{name}({parameters})", aliases, raises=raises)


def _hashed(types: Sequence[ty.DataType]) -> Resolved:
    """Any values but BIT, whose numbers are not known."""
    return (tuple(types), ty.UBIGINT) if types and not any(map(_holds_bits, types)) else None


def _holds_bits(data_type: ty.DataType) -> bool:
    return data_type == ty.BIT or any(map(_holds_bits, data_type.children))


VALUE_FUNCTIONS = (
    FunctionRow("hash", _hashed, "hash(any, ...)", nulls="never", raises=False),
    # Bytes are compared; hamming and jaccard raise for what is empty, hamming also for other lengths.
    _row("levenshtein", _PAIR, "VARCHAR, VARCHAR", "editdist3"),
    _row("damerau_levenshtein", _PAIR, "VARCHAR, VARCHAR"),
    _row("hamming", _PAIR, "VARCHAR, VARCHAR", "mismatches"),
    _row("jaccard", fixed(ty.VARCHAR, ty.VARCHAR, result=ty.DOUBLE), "VARCHAR, VARCHAR"),
    # Below the third argument: 0.
    _row("jaro_similarity", _SIMILARITY, "VARCHAR, VARCHAR[, DOUBLE]"),
    _row("jaro_winkler_similarity", _SIMILARITY, "VARCHAR, VARCHAR[, DOUBLE]"),
    *(
        _row(name, overloads(_TEXT_OF_TEXT, _TEXT_OF_BYTES), "VARCHAR | BLOB", raises=False)
        for name in ("md5", "sha1", "sha256")
    ),
    _row("encode", fixed(ty.VARCHAR, result=ty.BLOB), "VARCHAR"),
    # Of what is no UTF-8, no base 64, no such digits: ConversionError or ExecutionError.
    _row("decode", fixed(ty.BLOB, ty.VARCHAR, result=ty.VARCHAR, optional=1), "BLOB[, VARCHAR]"),
    _row("to_base64", _TEXT_OF_BYTES, "BLOB", "base64"),
    _row("from_base64", _BYTES_OF_TEXT, "VARCHAR"),
    _row("from_hex", _BYTES_OF_TEXT, "VARCHAR", "unhex"),
    _row("from_binary", _BYTES_OF_TEXT, "VARCHAR", "unbin"),
    *(
        _row(name, _TEXT_OF_TEXT, "VARCHAR")
        for name in ("nfc_normalize", "strip_accents", "regexp_escape")
    ),
    _row("url_encode", _TEXT_OF_TEXT, "VARCHAR", raises=False),
    _row("url_decode", _TEXT_OF_TEXT, "VARCHAR"),
    _row("length_grapheme", fixed(ty.VARCHAR, result=ty.BIGINT), "VARCHAR"),
    *(
        _row(name, fixed(ty.VARCHAR, ty.BIGINT, result=ty.VARCHAR), "VARCHAR, BIGINT")
        for name in ("left_grapheme", "right_grapheme")
    ),
    _row(
        "substring_grapheme",
        fixed(ty.VARCHAR, ty.BIGINT, ty.BIGINT, result=ty.VARCHAR, optional=1),
        "VARCHAR, BIGINT[, BIGINT]",
    ),
    # (number of a row, seed): from 0, and below 1.
    operator(
        "random",
        fixed(ty.BIGINT, ty.BIGINT, result=ty.DOUBLE),
        "BIGINT random BIGINT",
        total=True,
        raises=False,
    ),
    # (number of a row, seed[, milliseconds since 1970])
    operator(
        "random_uuid",
        fixed(ty.BIGINT, ty.BIGINT, result=ty.UUID),
        "BIGINT random_uuid BIGINT",
        total=True,
        raises=False,
    ),
    operator(
        "uuid_of_time",
        fixed(ty.BIGINT, ty.BIGINT, ty.BIGINT, result=ty.UUID),
        "uuid_of_time(BIGINT, BIGINT, BIGINT)",
        total=True,
        raises=False,
    ),
    # Of hours up to 24, minutes below 60, seconds up to 60; of nanoseconds since 1970.
    _row(
        "make_time",
        fixed(ty.BIGINT, ty.BIGINT, ty.DOUBLE, result=ty.TIME),
        "BIGINT, BIGINT, DOUBLE",
    ),
    _row("make_timestamp_ns", fixed(ty.BIGINT, result=ty.TIMESTAMP_NS), "BIGINT"),
    # The integer that a time or a moment is, and the TIME of one.
    operator("ticks", _ticks, "ticks(TIME | TIMESTAMP)", raises=False),
    operator(
        "time_of_ticks", fixed(ty.BIGINT, result=ty.TIME), "time_of_ticks(BIGINT)", raises=False
    ),
    _row("enum_code", _code, "ENUM"),
    _row("uuid_extract_version", fixed(ty.UUID, result=ty.UINTEGER), "UUID"),
    # Of another version than 7: ExecutionError.
    _row("uuid_extract_timestamp", fixed(ty.UUID, result=ty.TIMESTAMPTZ), "UUID"),
    operator(
        "glob", fixed(ty.VARCHAR, ty.VARCHAR, result=ty.BOOLEAN), "VARCHAR GLOB VARCHAR", "~~~"
    ),
    # The separators are those of "forward_slash" or "system", of "backslash", or else both.
    *(
        FunctionRow(name, resolve, f"{name}({parameters})", nulls="own")
        for name, resolve, parameters in (
            ("parse_dirname", _PATH, "VARCHAR[, VARCHAR]"),
            ("parse_dirpath", _PATH, "VARCHAR[, VARCHAR]"),
            (
                "parse_path",
                fixed(ty.VARCHAR, ty.VARCHAR, result=ty.list_of(ty.VARCHAR), optional=1),
                "VARCHAR[, VARCHAR]",
            ),
            ("parse_filename", _NAME_OF_PATH, "VARCHAR[, BOOLEAN[, VARCHAR]]"),
        )
    ),
    # Of an absolute path one that is in those before it: ExecutionError for others
    _row("path_join", repeated(ty.VARCHAR, 1, ty.VARCHAR), "VARCHAR, ..."),
    # (text, what is put in it, from which character on[, instead of how many])
    _row(
        "overlay",
        fixed(ty.VARCHAR, ty.VARCHAR, ty.BIGINT, ty.BIGINT, result=ty.VARCHAR, optional=1),
        "VARCHAR, VARCHAR, BIGINT[, BIGINT]",
    ),
    _row("error", fixed(ty.VARCHAR, result=ty.NULL), "VARCHAR"),
    _row("hex", _hexadecimal, "VARCHAR | BLOB | integer", "to_hex"),
    _row("bin", _number_or_text, "VARCHAR | integer", "to_binary"),
    # (number, radix from 2 to 36[, fewest digits])
    _row(
        "to_base",
        fixed(ty.BIGINT, ty.INTEGER, ty.INTEGER, result=ty.VARCHAR, optional=1),
        "BIGINT, INTEGER[, INTEGER]",
    ),
    _row("format_bytes", _SIZE, "BIGINT", "formatreadablesize"),
    _row("formatreadabledecimalsize", _SIZE, "BIGINT"),
    _row("parse_formatted_bytes", fixed(ty.VARCHAR, result=ty.UBIGINT), "VARCHAR"),
    # (value, low, high[, width])
    _row(
        "bar",
        fixed(ty.DOUBLE, ty.DOUBLE, ty.DOUBLE, ty.DOUBLE, result=ty.VARCHAR, optional=1),
        "DOUBLE, DOUBLE, DOUBLE[, DOUBLE]",
    ),
    _row("format", _formatted, "VARCHAR, any, ..."),
    _row("printf", _formatted, "VARCHAR, any, ..."),
    # Beyond 38 digits: OutOfRange.
    _row("factorial", fixed(ty.INTEGER, result=ty.HUGEINT), "INTEGER"),
    _row("binom", fixed(ty.INTEGER, ty.INTEGER, result=ty.HUGEINT), "INTEGER, INTEGER"),
    _row("gamma", fixed(ty.DOUBLE, result=ty.DOUBLE), "DOUBLE"),
    _row("lgamma", fixed(ty.DOUBLE, result=ty.DOUBLE), "DOUBLE"),
)
