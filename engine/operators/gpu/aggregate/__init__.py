"""GROUP BY and DISTINCT without a kernel of our own: aggregates ask about groups of rows, libcudf answers.

Imports `sort`, `set_operations` and the table.  Start at `aggregate.py`; each `aggregate_*` holds one kind of aggregate.
"""
