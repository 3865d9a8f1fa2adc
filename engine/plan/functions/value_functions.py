"""Functions of texts and numbers that are computed once for each distinct value, on the host."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import (
    BIGINT,
    BIT,
    BLOB,
    BOOLEAN,
    DOUBLE,
    HUGEINT,
    INTEGER,
    NULL,
    TIME,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UBIGINT,
    UINTEGER,
    UUID,
    VARCHAR,
    DataType,
    Kind,
    list_of,
)
from .row import FunctionRow, Resolve, Resolved, fixed, operator, overloads, repeated

_TEXT_OF_TEXT = fixed(VARCHAR, result=VARCHAR)
_TEXT_OF_BYTES = fixed(BLOB, result=VARCHAR)
_BYTES_OF_TEXT = fixed(VARCHAR, result=BLOB)
_PAIR = fixed(VARCHAR, VARCHAR, result=BIGINT)
_SIMILARITY = fixed(VARCHAR, VARCHAR, DOUBLE, result=DOUBLE, optional=1)
_SIZE = fixed(BIGINT, result=VARCHAR)
_PATH = fixed(VARCHAR, VARCHAR, result=VARCHAR, optional=1)

_NAME_OF_PATH = overloads(_PATH, fixed(VARCHAR, BOOLEAN, VARCHAR, result=VARCHAR, optional=1))


def _hexadecimal(types: Sequence[DataType]) -> Resolved:
    return fixed(BLOB, result=VARCHAR)(types) if list(types) == [BLOB] else _number_or_text(types)


def _ticks(types: Sequence[DataType]) -> Resolved:
    return (tuple(types), BIGINT) if len(types) == 1 and types[0].is_ticks else None


def _code(types: Sequence[DataType]) -> Resolved:
    return (tuple(types), types[0].codes) if len(types) == 1 and types[0].is_enum else None


def _number_or_text(types: Sequence[DataType]) -> Resolved:
    """A text by its bytes; a whole number by its bits, of which a negative one has 64, or a HUGEINT's 128."""
    if len(types) == 1 and types[0].kind in (Kind.VARCHAR, Kind.NULL):
        return (VARCHAR,), VARCHAR
    if len(types) == 1 and types[0].is_whole:
        return (types[0],), VARCHAR
    return None


def _formatted(types: Sequence[DataType]) -> Resolved:
    """A text and what goes into it: numbers and truth values as they are, but decimals as DOUBLE, the rest as text."""
    if not types or types[0].kind not in (Kind.VARCHAR, Kind.NULL):
        return None

    def target(given: DataType) -> DataType:
        if given.is_whole or given.kind is Kind.BOOLEAN:
            return given
        return DOUBLE if given.is_numeric else VARCHAR

    return (VARCHAR, *map(target, types[1:])), VARCHAR


def _row(name: str, resolve: Resolve, parameters: str, *aliases: str) -> FunctionRow:
    return FunctionRow(name, resolve, f"{name}({parameters})", aliases)


def _hashed(types: Sequence[DataType]) -> Resolved:
    """Any values but BIT, whose numbers are not known."""
    return (tuple(types), UBIGINT) if types and not any(map(_holds_bits, types)) else None


def _holds_bits(data_type: DataType) -> bool:
    return data_type == BIT or any(map(_holds_bits, data_type.children))


VALUE_FUNCTIONS = (
    FunctionRow("hash", _hashed, "hash(any, ...)", nulls="never"),
    # Bytes are compared; hamming and jaccard raise for what is empty, hamming also for other lengths.
    _row("levenshtein", _PAIR, "VARCHAR, VARCHAR", "editdist3"),
    _row("damerau_levenshtein", _PAIR, "VARCHAR, VARCHAR"),
    _row("hamming", _PAIR, "VARCHAR, VARCHAR", "mismatches"),
    _row("jaccard", fixed(VARCHAR, VARCHAR, result=DOUBLE), "VARCHAR, VARCHAR"),
    # Below the third argument: 0.
    _row("jaro_similarity", _SIMILARITY, "VARCHAR, VARCHAR[, DOUBLE]"),
    _row("jaro_winkler_similarity", _SIMILARITY, "VARCHAR, VARCHAR[, DOUBLE]"),
    *(
        _row(name, overloads(_TEXT_OF_TEXT, _TEXT_OF_BYTES), "VARCHAR | BLOB")
        for name in ("md5", "sha1", "sha256")
    ),
    _row("encode", fixed(VARCHAR, result=BLOB), "VARCHAR"),
    # Of what is no UTF-8, no base 64, no such digits: ConversionError or ExecutionError.
    _row("decode", fixed(BLOB, VARCHAR, result=VARCHAR, optional=1), "BLOB[, VARCHAR]"),
    _row("to_base64", _TEXT_OF_BYTES, "BLOB", "base64"),
    _row("from_base64", _BYTES_OF_TEXT, "VARCHAR"),
    _row("from_hex", _BYTES_OF_TEXT, "VARCHAR", "unhex"),
    _row("from_binary", _BYTES_OF_TEXT, "VARCHAR", "unbin"),
    *(
        _row(name, _TEXT_OF_TEXT, "VARCHAR")
        for name in ("nfc_normalize", "strip_accents", "regexp_escape")
    ),
    *(_row(name, _TEXT_OF_TEXT, "VARCHAR") for name in ("url_encode", "url_decode")),
    _row("length_grapheme", fixed(VARCHAR, result=BIGINT), "VARCHAR"),
    *(
        _row(name, fixed(VARCHAR, BIGINT, result=VARCHAR), "VARCHAR, BIGINT")
        for name in ("left_grapheme", "right_grapheme")
    ),
    _row(
        "substring_grapheme",
        fixed(VARCHAR, BIGINT, BIGINT, result=VARCHAR, optional=1),
        "VARCHAR, BIGINT[, BIGINT]",
    ),
    # (number of a row, seed): from 0, and below 1.
    operator(
        "random",
        fixed(BIGINT, BIGINT, result=DOUBLE),
        "BIGINT random BIGINT",
        total=True,
        raises=False,
    ),
    # (number of a row, seed[, milliseconds since 1970])
    operator(
        "random_uuid",
        fixed(BIGINT, BIGINT, result=UUID),
        "BIGINT random_uuid BIGINT",
        total=True,
        raises=False,
    ),
    operator(
        "uuid_of_time",
        fixed(BIGINT, BIGINT, BIGINT, result=UUID),
        "uuid_of_time(BIGINT, BIGINT, BIGINT)",
        total=True,
        raises=False,
    ),
    # Of hours up to 24, minutes below 60, seconds up to 60; of nanoseconds since 1970.
    _row("make_time", fixed(BIGINT, BIGINT, DOUBLE, result=TIME), "BIGINT, BIGINT, DOUBLE"),
    _row("make_timestamp_ns", fixed(BIGINT, result=TIMESTAMP_NS), "BIGINT"),
    # The integer that a time or a moment is, and the TIME of one.
    operator("ticks", _ticks, "ticks(TIME | TIMESTAMP)", raises=False),
    operator("time_of_ticks", fixed(BIGINT, result=TIME), "time_of_ticks(BIGINT)", raises=False),
    _row("enum_code", _code, "ENUM"),
    _row("uuid_extract_version", fixed(UUID, result=UINTEGER), "UUID"),
    # Of another version than 7: ExecutionError.
    _row("uuid_extract_timestamp", fixed(UUID, result=TIMESTAMPTZ), "UUID"),
    operator("glob", fixed(VARCHAR, VARCHAR, result=BOOLEAN), "VARCHAR GLOB VARCHAR", "~~~"),
    # The separators are those of "forward_slash" or "system", of "backslash", or else both.
    *(
        FunctionRow(name, resolve, f"{name}({parameters})", nulls="own")
        for name, resolve, parameters in (
            ("parse_dirname", _PATH, "VARCHAR[, VARCHAR]"),
            ("parse_dirpath", _PATH, "VARCHAR[, VARCHAR]"),
            (
                "parse_path",
                fixed(VARCHAR, VARCHAR, result=list_of(VARCHAR), optional=1),
                "VARCHAR[, VARCHAR]",
            ),
            ("parse_filename", _NAME_OF_PATH, "VARCHAR[, BOOLEAN[, VARCHAR]]"),
        )
    ),
    # Of an absolute path one that is in those before it: ExecutionError for others
    _row("path_join", repeated(VARCHAR, 1, VARCHAR), "VARCHAR, ..."),
    # (text, what is put in it, from which character on[, instead of how many])
    _row(
        "overlay",
        fixed(VARCHAR, VARCHAR, BIGINT, BIGINT, result=VARCHAR, optional=1),
        "VARCHAR, VARCHAR, BIGINT[, BIGINT]",
    ),
    _row("error", fixed(VARCHAR, result=NULL), "VARCHAR"),
    _row("hex", _hexadecimal, "VARCHAR | BLOB | integer", "to_hex"),
    _row("bin", _number_or_text, "VARCHAR | integer", "to_binary"),
    # (number, radix from 2 to 36[, fewest digits])
    _row(
        "to_base",
        fixed(BIGINT, INTEGER, INTEGER, result=VARCHAR, optional=1),
        "BIGINT, INTEGER[, INTEGER]",
    ),
    _row("format_bytes", _SIZE, "BIGINT", "formatreadablesize"),
    _row("formatreadabledecimalsize", _SIZE, "BIGINT"),
    _row("parse_formatted_bytes", fixed(VARCHAR, result=UBIGINT), "VARCHAR"),
    # (value, low, high[, width])
    _row(
        "bar",
        fixed(DOUBLE, DOUBLE, DOUBLE, DOUBLE, result=VARCHAR, optional=1),
        "DOUBLE, DOUBLE, DOUBLE[, DOUBLE]",
    ),
    _row("format", _formatted, "VARCHAR, any, ..."),
    _row("printf", _formatted, "VARCHAR, any, ..."),
    # Beyond 38 digits: OutOfRange.
    _row("factorial", fixed(INTEGER, result=HUGEINT), "INTEGER"),
    _row("binom", fixed(INTEGER, INTEGER, result=HUGEINT), "INTEGER, INTEGER"),
    _row("gamma", fixed(DOUBLE, result=DOUBLE), "DOUBLE"),
    _row("lgamma", fixed(DOUBLE, result=DOUBLE), "DOUBLE"),
)
