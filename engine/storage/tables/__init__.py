"""Tables: Parquet files and what their footers say, folders of them, and tables in the memory of host or device.

`access` is the one door to files.  Imports `plan`, and of `columns` what is known of values.  Start at `parquet.py`.
"""
