"""Pipelines: what generated kernels read, how they are launched, and the result's columns.

Imports `codegen`, `scan` and `functions`.  Start at `pipeline.py`; `operators.run_pipeline` calls it.
"""
