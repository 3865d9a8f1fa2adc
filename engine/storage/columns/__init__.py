"""Columns as they lie in memory for kernels: narrow forms, into them and back, on the host and on the device, and their cache.

The `device_*` files import pylibcudf; nothing else here does.  Imports `plan`.  Start at `encodings.py`.
"""
