"""Text functions.  Positions and lengths count characters from 1; strlen counts UTF-8 bytes."""

from __future__ import annotations

from ..types import BIGINT, BLOB, BOOLEAN, INTEGER, VARCHAR
from .row import FunctionRow, fixed, operator, overloads, repeated

_TEXT = fixed(VARCHAR, result=VARCHAR)
_TEXT_LENGTH = fixed(VARCHAR, result=BIGINT)
_TEST = fixed(VARCHAR, VARCHAR, result=BOOLEAN)


def _are_small(*numbers: int | None) -> bool:
    return all(n is None or abs(n) < 1 << 31 for n in numbers)


def _has_no_escape(*others: str | None) -> bool:
    return len(others) == 1


STRINGS = (
    # n-ary, VARCHAR (`infer` casts); NULL in any argument gives NULL.  SQL's concat() wraps its arguments in coalesce(x, '').
    operator(
        "concat",
        repeated(VARCHAR, 1, VARCHAR),
        "VARCHAR || VARCHAR",
        "||",
        total=True,
        of_lists="list_concat",
    ),
    # (separator, strings...): NULL strings are skipped, a NULL separator gives NULL.
    FunctionRow(
        "concat_ws",
        repeated(VARCHAR, 2, VARCHAR),
        "concat_ws(separator, any, ...)",
        nulls="own",
        raises=False,
    ),
    FunctionRow("lower", _TEXT, "lower(VARCHAR)", ("lcase",), total=True, raises=False),
    FunctionRow("upper", _TEXT, "upper(VARCHAR)", ("ucase",), total=True, raises=False),
    FunctionRow(
        "length",
        _TEXT_LENGTH,
        "length(VARCHAR)",
        ("char_length", "character_length", "len"),
        total=True,
        raises=False,
        of_lists="list_length",
        of_bits="bits_length",
    ),
    FunctionRow("strlen", _TEXT_LENGTH, "strlen(VARCHAR)", raises=False),
    FunctionRow(
        "octet_length", fixed(BLOB, result=BIGINT), "octet_length(BLOB)", of_bits="bits_bytes"
    ),
    operator("blob_concat", repeated(BLOB, 1, BLOB), "BLOB || BLOB"),
    # start: from 1; 0 is the place before the first character (and takes from the length); negative counts from the end.
    # A negative length takes the characters before start.
    FunctionRow(
        "substring",
        fixed(VARCHAR, BIGINT, BIGINT, result=VARCHAR, optional=1),
        "substring(VARCHAR, BIGINT[, BIGINT])",
        ("substr",),
        total=True,
        safe_with=_are_small,
    ),
    # Negative n: all but the last (left) or first (right) -n characters.
    *(
        FunctionRow(
            name,
            fixed(VARCHAR, BIGINT, result=VARCHAR),
            f"{name}(VARCHAR, BIGINT)",
            safe_with=_are_small,
        )
        for name in ("left", "right")
    ),
    # The second argument is the set of characters to remove; spaces alone (not tabs) without it.
    *(
        FunctionRow(
            name,
            fixed(VARCHAR, VARCHAR, result=VARCHAR, optional=1),
            f"{name}(VARCHAR[, VARCHAR])",
            raises=False,
        )
        for name in ("trim", "ltrim", "rtrim")
    ),
    # lpad(s, n, fill): cut to n characters when longer; n <= 0 gives ''; an empty fill that is needed: ExecutionError.
    FunctionRow(
        "lpad", fixed(VARCHAR, INTEGER, VARCHAR, result=VARCHAR), "lpad(VARCHAR, INTEGER, VARCHAR)"
    ),
    FunctionRow(
        "rpad", fixed(VARCHAR, INTEGER, VARCHAR, result=VARCHAR), "rpad(VARCHAR, INTEGER, VARCHAR)"
    ),
    FunctionRow(
        "repeat",
        overloads(fixed(VARCHAR, BIGINT, result=VARCHAR), fixed(BLOB, BIGINT, result=BLOB)),
        "repeat(VARCHAR | BLOB, BIGINT)",
    ),
    # Every occurrence; an empty needle changes nothing.
    FunctionRow(
        "replace",
        fixed(VARCHAR, VARCHAR, VARCHAR, result=VARCHAR),
        "replace(VARCHAR, VARCHAR, VARCHAR)",
        raises=False,
    ),
    # text_slice(s, begin, end): characters from one place to another, both included; negative ones count from the end.
    operator(
        "text_slice", fixed(VARCHAR, BIGINT, BIGINT, result=VARCHAR), "VARCHAR[BIGINT:BIGINT]"
    ),
    FunctionRow("reverse", _TEXT, "reverse(VARCHAR)", raises=False),
    FunctionRow(
        "contains",
        _TEST,
        "contains(VARCHAR, VARCHAR)",
        of_lists="list_contains",
        raises=False,
    ),
    FunctionRow(
        "starts_with", _TEST, "starts_with(VARCHAR, VARCHAR)", ("prefix", "^@"), raises=False
    ),
    FunctionRow("ends_with", _TEST, "ends_with(VARCHAR, VARCHAR)", ("suffix",), raises=False),
    # position(haystack, needle): from 1, 0 for none, 1 for an empty needle.
    FunctionRow(
        "position",
        fixed(VARCHAR, VARCHAR, result=BIGINT),
        "strpos(VARCHAR, VARCHAR)",
        ("strpos", "instr"),
        raises=False,
    ),
    # split_part(s, separator, n): negative n from the end; '' outside; an empty separator splits into characters.
    FunctionRow(
        "split_part",
        fixed(VARCHAR, VARCHAR, BIGINT, result=VARCHAR),
        "split_part(VARCHAR, VARCHAR, BIGINT)",
        raises=False,
    ),
    # Code point of the first character, 0 for ''.
    FunctionRow("ascii", fixed(VARCHAR, result=INTEGER), "ascii(VARCHAR)", raises=False),
    # An invalid code point: ExecutionError.
    FunctionRow("chr", fixed(INTEGER, result=VARCHAR), "chr(INTEGER)"),
    # translate(s, from, to): characters of `from` become those of `to` at the same place, or vanish.
    FunctionRow(
        "translate",
        fixed(VARCHAR, VARCHAR, VARCHAR, result=VARCHAR),
        "translate(VARCHAR, VARCHAR, VARCHAR)",
        raises=False,
    ),
    # like(s, pattern[, escape]): % any run, _ one character, newlines included; pattern mostly a Literal, escape always: one character or '' for none.
    # A pattern that ends with the escape character: ExecutionError.
    operator(
        "like",
        fixed(VARCHAR, VARCHAR, VARCHAR, result=BOOLEAN, optional=1),
        "VARCHAR LIKE VARCHAR",
        total=True,
        safe_with=_has_no_escape,
    ),
    operator(
        "ilike",
        fixed(VARCHAR, VARCHAR, VARCHAR, result=BOOLEAN, optional=1),
        "VARCHAR ILIKE VARCHAR",
        total=True,
        safe_with=_has_no_escape,
    ),
    # RE2 syntax; pattern and options ('i', 'c', 's', 'l', 'g' for replace) are Literals; the string is searched for a match.
    FunctionRow(
        "regexp_matches",
        fixed(VARCHAR, VARCHAR, VARCHAR, result=BOOLEAN, optional=1),
        "regexp_matches(VARCHAR, VARCHAR[, VARCHAR])",
    ),
    # SIMILAR TO is this: the whole string has to match (`~` searches).
    FunctionRow(
        "regexp_full_match",
        fixed(VARCHAR, VARCHAR, VARCHAR, result=BOOLEAN, optional=1),
        "regexp_full_match(VARCHAR, VARCHAR[, VARCHAR])",
    ),
    # (s, pattern, replacement[, options]): the first match, every one with 'g'; \\1 is a group.
    FunctionRow(
        "regexp_replace",
        fixed(VARCHAR, VARCHAR, VARCHAR, VARCHAR, result=VARCHAR, optional=1),
        "regexp_replace(VARCHAR, VARCHAR, VARCHAR[, VARCHAR])",
    ),
    # (s, pattern[, group[, options]]): '' without a match.
    FunctionRow(
        "regexp_extract",
        fixed(VARCHAR, VARCHAR, INTEGER, VARCHAR, result=VARCHAR, optional=2),
        "regexp_extract(VARCHAR, VARCHAR[, INTEGER[, VARCHAR]])",
    ),
)
