"""Subqueries and dependent joins become joins: what the rule `decorrelate` does, case by case.

Imports `plan`, `plan_properties` and the rooms for expressions.  Start at `subquery_joins.py`; a right side that reads the left row goes
on to `unnest.py`, and from there node by node through `flatten.py`.
"""
