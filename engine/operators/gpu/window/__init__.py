"""Window functions on the GPU: one sort for each partition and order, then `operators.windows` over device columns.

What these ask of many places is found by kernels of our own (`marks`).

Imports `sort` for the order, `aggregate` for what aggregates ask of a frame's rows, and the table.  Start at `window_rows.py`.
"""
