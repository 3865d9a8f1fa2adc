"""Pipelines: what generated kernels read, how they are launched, and the result's columns.

Imports `codegen`, `scan` and `functions`.  Start at `pipeline.py`; `stream_pipeline.py` is the operator, for tables larger than memory too.
"""
