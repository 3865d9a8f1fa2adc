"""Columns of files and of tables in memory, on the device: read, encoded as kernels read them, and kept in the column cache.

Imports `storage`, `memory` and the table.  Start at `scan.py` for columns as operators read them, at `encoded.py` for those of kernels.
"""
