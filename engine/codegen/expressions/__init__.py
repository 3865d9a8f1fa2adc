"""Expressions as terms of a kernel: arithmetic and comparisons with proven ranges, and lookup tables for the rest.

Imports `loop`, `ranges` and `program_builder`.  Start at `translate.py`, which has a case for each kind of expression.
"""
