"""Expressions over a table: `evaluate` and `selection`, and the `kernels_*` that compute each function with pyarrow and numpy.

`kernel_table` has the table from a function's name to its kernel, `vectors` what kernels take and give.  Imports the table,
never operators.  Start at `expressions.py`.
"""
