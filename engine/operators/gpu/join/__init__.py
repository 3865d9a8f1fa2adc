"""Joins by libcudf: pairs of row numbers first, columns gathered last; `join_parts` is for sides that do not fit.

Imports `functions` for conditions, and the table.  Start at `join.py`.
"""
