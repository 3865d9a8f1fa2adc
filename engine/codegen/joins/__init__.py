"""Joins in kernels: chains of steps over a row, builds that fill indexes, and probes of them.

Imports `expressions`, `indexes` and `program_builder`.  Start at `chains.py`; `builds.py` is the other side.
"""
