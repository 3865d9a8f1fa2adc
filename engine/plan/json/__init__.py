"""JSON as a value: its texts read into Python's values and written as DuckDB writes them, and the paths into them.

Imports errors alone.  Start at `documents.py`.
"""
