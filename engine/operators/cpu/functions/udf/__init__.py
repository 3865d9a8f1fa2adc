"""Calls of Python functions over the rows of a chunk: compiled loops, Arrow batches, or one call a row.

May import the kernels around it and `codegen`.  Start at `compiled_calls.py`.
"""
