"""Logical plan to physical plan: which algorithm, which build side, which columns go on.

Imports `plan`, `estimates` and `expressions`.  Start at `lower.py`, which has a case for each logical node; aggregates are in `lowering`.
"""
