"""Window functions: one sort for each partition and order, then each call from the places of rows in it.

Imports `sort` for the order, `aggregate` for what aggregates are of a frame's rows, and the table.  Start at `window_rows.py`.
"""
