"""The column store: encoded columns of Parquet files on the local disk, which later processes map instead of reading Parquet.

`column_file` is the format of one file, `column_store` the folder with its limit and what is known of it, `store_writer` the thread that
writes.  Nothing in a file is executed.  Imports `plan` and the rooms beside it.  Start at `column_store.py`.
"""
