"""Differences of the function sweep that have a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from fuseline.errors import OutOfRange

# Limits that docs/sql.md names; DuckDB has more room there, or hands over what has wrapped around.
LIMITS = (
    "Interval value out of range", "An interval of more than 292 years", "has 39 digits", "it has 38 digits here",
    "HUGEINT has 38 digits", "bytes of text",
)  # fmt: skip
# What differs for a reason: of which function with an argument of which type.
KNOWN = {
    ("or", "varchar"): "an error counts where it decides",
    ("and", "varchar"): "an error counts where it decides",
    **{
        (name, "varchar"): "DuckDB refuses a wrong pattern for NULL too"
        for name in ("regexp_replace", "regexp_extract")
    },
    ("cast as decimal(38,38)", "boolean"): "DuckDB gives 1E-38 for TRUE",
    ("try_cast as decimal(38,38)", "boolean"): "as cast",
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct")


def is_known(
    name: str, types: Sequence[str], expected: Any, actual: Any, given: Sequence[Any]
) -> bool:
    """Whether a difference has a reason: in KNOWN, below, or that NULL decides a comparison.

    A constant beside such a NULL is not looked at here, and DuckDB casts it all the same.
    """
    if name in ("round", "trunc") and types[0].startswith("decimal"):
        return _is_null_rounded_to_zero(expected, actual)
    if name.startswith("regexp"):
        refused = isinstance(expected, duckdb.InvalidInputException)
        answered = refused and not isinstance(actual, Exception)
        return answered and bool(actual.column(0).null_count == actual.num_rows)
    if name in COMPARISONS and isinstance(expected, duckdb.ConversionException):
        return None in given
    if name == "map" and not types:
        return True  # pyarrow has no type of maps whose keys have none
    if name == "neg" and isinstance(actual, OutOfRange):
        return True  # DuckDB widens the type for a constant that is the smallest of its own
    return any((name, kind) in KNOWN for kind in types)


def _is_null_rounded_to_zero(expected: Any, actual: Any) -> bool:
    """Whether DuckDB has 0 for NULL, as for every row where no digit of a DECIMAL is left; never for a constant NULL."""
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        return False
    names = ("low", "high") if "low" in expected.column_names else ("v",)
    theirs, ours = ([v for n in names for v in t[n].to_pylist()] for t in (expected, actual))
    return not any(theirs) and all(v in (None, 0) for v in ours)
