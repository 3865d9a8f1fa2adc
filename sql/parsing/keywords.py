"""Words of DuckDB's grammar that cannot be names without quotes; sqlglot takes most of them for names.

RESERVED: as the name of a table or column, or an alias; behind AS in a SELECT list, and behind a dot, any word is a name. Both lists are
what DuckDB 2.0 refuses of `duckdb_keywords()`; `tests/sql/test_keywords.py` compares.
"""

from fuseline.plan.text.quoted_name import RESERVED, several

__all__ = ["NO_LABELS", "RESERVED"]

# As an alias in a SELECT list without AS.
NO_LABELS = several("""
    centuries century day days decade decades escape exclude export_state filter hour hours
    ignore microsecond microseconds millennia millennium millisecond milliseconds minute
    minutes month months over precision quarter quarters rename replace respect second
    seconds varying week weeks within without year years
    """)
