"""Columns of files and of tables in memory: read, encoded as kernels read them, and kept in the column cache.

Imports `storage` and the table.  Start at `scan.py` for columns as operators read them, at `encoded.py` for those of kernels; `read_parts.py` reads both from files.
"""
