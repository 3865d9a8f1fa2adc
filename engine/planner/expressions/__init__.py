"""Expressions that say the same with less, and what can be concluded of them without data.

Simplification, constant folding, three-valued logic, casts moved off columns, predicates that follow from others, and parts that
several expressions share.  Imports `plan` alone, of the planner only `rewrite`.  Start at `simplification.py`.
"""
