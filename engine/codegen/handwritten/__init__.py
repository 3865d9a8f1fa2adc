"""Kernels that no plan generates: numbering and narrowing of columns, group numbers, sort keys, windows, LIKE over long text.

`functions_*` are their sources, which are read as text; the other files say how they are called.  Imports `compile`.  Start at
`row_kernels.py` and `functions_rows.py`.
"""
