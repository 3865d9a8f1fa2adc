"""The calls of which sqlglot's parser makes nodes of their own: those that DuckDB has.

sqlglot knows functions of other databases besides, such as nvl() and to_char(): they are calls of names here, which macros and Python
functions may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.plan.derived import is_function, is_of_lists
from fuseline.plan.files.read_options import TABLE_FUNCTIONS
from fuseline.plan.functions import aggregate_name, scalar_name, window_name

from .drawn_calls import DRAWN_CALLS
from .keywords import RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

# What is no function to us: forms of the grammar, types and sources of rows.
_CALLED = RESERVED | frozenset(
    [
        "between",
        "columns",
        "current_schemas",
        "date",
        "exists",
        "extract",
        "filter",
        "generate_series",
        "grouping",
        "grouping_id",
        "insert",
        "interval",
        "percentile_cont",
        "percentile_disc",
        "gen_random_uuid",
        "random",
        "range",
        "row",
        "struct",
        "time",
        "timestamp",
        "try",
        "try_cast",
        "unnest",
        "uuid",
        "uuidv4",
        "uuidv7",
        "values",
        "version",
        *TABLE_FUNCTIONS,
    ]
)
# Calls by their own names, with the arguments that are written
_BY_OWN_NAMES = (
    *("ARRAY_AGG", "ENCODE", "DECODE", "FROM_JSON", "GET_BIT", "TIME_BUCKET"),
    *("DATE_TRUNC", "DATETRUNC", "DATE_DIFF", "DATEDIFF"),
)
_WORDS = {name for kind in DuckDBParser.NO_PAREN_FUNCTIONS.values() for name in kind.sql_names()}


def _is_known(name: str) -> bool:
    word = name.lower()
    named = scalar_name(word) or aggregate_name(word) or window_name(word)
    return named is not None or is_function(word) or word in _CALLED or name in _WORDS


FUNCTIONS: dict[str, Callable[..., exp.Expr]] = {  # without those of lists and JSON
    name: make
    for name, make in {**DuckDBParser.FUNCTIONS, **DRAWN_CALLS}.items()
    if _is_known(name)
    and not is_of_lists(name)
    and name not in _BY_OWN_NAMES
    and not name.startswith("JSON")
}
FUNCTION_PARSERS: dict[str, Callable[..., exp.Expr | None]] = {
    name: parse
    for name, parse in DuckDBParser.FUNCTION_PARSERS.items()
    if (_is_known(name) and not name.startswith("JSON")) or name == "POSITION"
}
