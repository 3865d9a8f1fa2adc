"""Joins: keys as integers, pairs of row numbers, and columns gathered last; `join_parts` is for sides that do not fit.

Imports `sort` for keys, `functions` for conditions, and the table.  Start at `join.py`.
"""
