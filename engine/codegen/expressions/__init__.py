"""Expressions as terms of a kernel: arithmetic and comparisons with proven ranges, and lookup tables for the rest.

`arithmetic`, `compare` and `calendar_terms` hold the rules, `lookup` what becomes a table or is evaluated beforehand.

Imports `loop`, `ranges` and `program_builder`.  Start at `translate.py`, which has a case for each kind of expression.
"""
