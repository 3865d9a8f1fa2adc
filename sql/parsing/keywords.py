"""Words of DuckDB's grammar that cannot be names without quotes; sqlglot takes most of them for names.

Both lists are what DuckDB 2.0 refuses of `duckdb_keywords()`; `tests/sql/test_keywords.py` compares.
"""

from fuseline.plan.text.quoted_name import several

# As the name of a table or column, or an alias; behind AS in a SELECT list, and behind a dot, any word is a name.
RESERVED = several("""
    all analyse analyze and anti any array as asc asof asymmetric at authorization binary
    both by case cast check collate collation column concurrently constraint create cross
    default deferrable desc describe distinct do else end except false fetch for foreign
    freeze from full glob group having ilike in initially inner intersect into is isnull
    join lambda lateral leading left like limit natural not notnull null offset on only or
    order outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify
    references returning right select semi show similar some summarize symmetric table
    tablesample then to trailing true union unique unpack unpivot using variadic verbose
    when where window with
    """)
# As an alias in a SELECT list without AS.
NO_LABELS = several("""
    centuries century day days decade decades escape exclude export_state filter hour hours
    ignore microsecond microseconds millennia millennium millisecond milliseconds minute
    minutes month months over precision quarter quarters rename replace respect second
    seconds varying week weeks within without year years
    """)
