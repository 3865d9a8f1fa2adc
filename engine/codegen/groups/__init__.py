"""Groups and aggregates: group keys as numbers, accumulators, and the result's columns made of them.

Imports `expressions` and `program_builder`.  Start at `grouping.py` for keys, at `accumulate.py` for aggregates, at `results.py` for what
comes out.
"""
