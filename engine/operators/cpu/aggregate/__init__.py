"""GROUP BY and DISTINCT: rows become group codes, then each aggregate reduces its column by them.

Imports `sort` for keys and order, and the table.  Start at `aggregate.py`; each `aggregate_*` holds one kind of aggregate.
"""
