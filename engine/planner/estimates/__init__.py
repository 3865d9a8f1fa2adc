"""How many rows each part of a plan makes, and how many values its columns have.

`estimate` says it of logical plans, `chain_estimate` of physical ones; both build on `relation_estimate` (tables and their columns) and
`selectivity` (predicates).  Imports `plan`, `plan_properties` and `expressions`.  Start at `estimate.py`.
"""
