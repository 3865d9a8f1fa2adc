"""The name of a result column without an alias: the expression as DuckDB writes it.

DuckDB prints its own tree: every operator in parentheses, function names in lower case and quoted where they are keywords, EXTRACT,
INTERVAL and the like as the functions that they stand for.  sqlglot's tree has lost what was written (it renames functions, reorders
arguments and rewrites intervals), so the text is read again here, by the precedences of DuckDB's grammar: `reader` takes its
tokens one by one, `operator_names` joins what `operands` and `queries` read.

Imports `parsing.keywords` alone.  Start at `reader.py`.
"""

from __future__ import annotations

from .operator_names import result_name

__all__ = ["result_name"]
