"""Expressions over a table on the device: `evaluate` and `selection`, and the `kernels_*` that compute each function by libcudf.

`expressions` has the table from a function's name to its kernel; what libcudf computes otherwise than DuckDB goes through
`values`.  Imports the table and its columns, never operators.  Start at `expressions.py`.
"""
