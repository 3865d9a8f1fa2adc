"""The one table of functions: names, types, NULL rule and each backend's way.

A new function is one row in the file of its kind here, and one kernel of that name in each backend.  `SCALAR`, `AGGREGATE` and
`WINDOW` are keyed by the name that plans use; `scalar_name` and `aggregate_name` find it from a SQL spelling.

Imports the types of `plan`.  Start at `row.py`, which says what a row holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from ...errors import Span, UnknownName, nearest
from .aggregates import AGGREGATES
from .combined_aggregates import COMBINED
from .dates import DATES
from .foreign_names import INSTEAD
from .json_functions import JSON_FUNCTIONS
from .listed_aggregates import LISTED, OF_LISTS
from .lists import LISTS, SERIES, STRUCTS
from .maps import MAPS
from .numeric import NUMERIC
from .operators import BITS_OF_TYPE, OPERATORS
from .row import FunctionRow as FunctionRow, Resolve as Resolve, variadic
from .strings import STRINGS
from .value_functions import VALUE_FUNCTIONS
from .window_functions import WINDOW_FUNCTIONS

CONDITIONAL = (
    # n-ary, all of the result's type.  NULL arguments are skipped; NULL when all are.
    FunctionRow("greatest", variadic(1), "greatest(any, ...)", nulls="all", total=True),
    FunctionRow("least", variadic(1), "least(any, ...)", nulls="all", total=True),
    # The first that is not NULL; a later argument's error counts only where it is reached.
    FunctionRow("coalesce", variadic(1), "coalesce(any, ...)", nulls="all"),
)


CONSTANTS = frozenset(("base", "format", "fraction", "part", "separator", "unit"))
SCALAR: Mapping[str, FunctionRow] = {
    row.name: row
    for row in (
        *OPERATORS,
        *NUMERIC,
        *BITS_OF_TYPE,
        *CONDITIONAL,
        *STRINGS,
        *VALUE_FUNCTIONS,
        *DATES,
        *LISTS,
        *SERIES,
        *STRUCTS,
        *MAPS,
        *JSON_FUNCTIONS,
        *OF_LISTS,
    )
}
NEGATED: Mapping[str, str] = {row.name: row.negated for row in OPERATORS if row.negated}
MIRRORED: Mapping[str, str] = {row.name: row.mirrored for row in OPERATORS if row.mirrored}
COMPARISONS = frozenset(MIRRORED)
EQUALITIES = frozenset(row.name for row in OPERATORS if row.bound == "both")
CHOICES = frozenset(row.name for row in CONDITIONAL)
STRICT = frozenset(row.name for row in SCALAR.values() if row.nulls == "propagate")
AGGREGATE: Mapping[str, FunctionRow] = {row.name: row for row in (*AGGREGATES, *COMBINED, *LISTED)}
WINDOW: Mapping[str, FunctionRow] = {row.name: row for row in WINDOW_FUNCTIONS}


def _spellings(table: Mapping[str, FunctionRow]) -> dict[str, str]:
    """Map what SQL may call a function to its name: operators have signs, and plans say is_nan where SQL says isnan."""
    names = {
        name: name
        for name, row in table.items()
        if row.kind in ("aggregate", "window")
        or (row.kind == "scalar" and row.signature.startswith(f"{name}("))
    }
    return names | {alias: name for name, row in table.items() for alias in row.aliases}


_SCALAR_SPELLINGS = _spellings(SCALAR)
_AGGREGATE_SPELLINGS = _spellings(AGGREGATE)
_WINDOW_SPELLINGS = _spellings(WINDOW)


def scalar_name(spelling: str) -> str | None:
    """Return the plan's name of the scalar function that SQL calls `spelling`."""
    return _SCALAR_SPELLINGS.get(spelling.lower())


def aggregate_name(spelling: str) -> str | None:
    """Return the plan's name of the aggregate function that SQL calls `spelling`."""
    return _AGGREGATE_SPELLINGS.get(spelling.lower())


def window_name(spelling: str) -> str | None:
    """Return the plan's name of the window function, other than an aggregate, that SQL calls `spelling`."""
    return _WINDOW_SPELLINGS.get(spelling.lower())


@cache
def constants(signature: str) -> Mapping[int, str]:
    """Return which parameters are constants by their nature: those that a signature calls by a word of `CONSTANTS`.

    >>> constants("date_diff(unit, start, end)"), constants("log([base,] DOUBLE)")
    ({0: 'unit'}, {0: 'base'})
    """
    parameters = [p.strip(" []") for p in signature.partition("(")[2].rstrip(")").split(",")]
    return {i: p for i, p in enumerate(parameters) if p in CONSTANTS}


def sql_names() -> list[str]:
    """Return every spelling, for the nearest names in an error."""
    return sorted({*_SCALAR_SPELLINGS, *_AGGREGATE_SPELLINGS, *_WINDOW_SPELLINGS})


def unknown_function(name: str, span: Span | None, others: Iterable[str] = ()) -> UnknownName:
    """Return the error for a function that does not exist, with what does here what others call so, or the nearest ones of the table and of `others`."""
    instead = INSTEAD.get(name.lower())
    hint = f" Write {instead}." if instead else nearest(name, [*sql_names(), *others])
    return UnknownName(f'There is no function "{name}".{hint}', span)


def spellings() -> list[tuple[str, str | None, str, str]]:
    """Return what SQL may call each function, with the name that it is another of, its kind and its signature."""
    found: list[tuple[str, str | None, str, str]] = []
    for known, table, kind in (
        (_SCALAR_SPELLINGS, SCALAR, "scalar"),
        (_AGGREGATE_SPELLINGS, AGGREGATE, "aggregate"),
        (_WINDOW_SPELLINGS, WINDOW, "window"),
    ):
        for spelling, name in sorted(known.items()):
            if spelling[0].isalpha():
                alias_of = None if spelling == name else name
                found.append((spelling, alias_of, kind, table[name].signature))
    return found
