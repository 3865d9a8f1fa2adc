"""The optimizer's rules, one file each: a function from a plan to a better one, or to the same.

Imports `plan` and the planner's rooms for expressions, estimates, subqueries and join orders.  Start at `push_filters.py`; their order
and the reason for each stand in `planner/optimizer.py`.
"""
