"""Tables of Delta Lake and Iceberg: their libraries say which files a snapshot has and which rows of them are deleted, and the files are read as any Parquet.

May import all but the connection.  Start at `lake_table.py`.
"""
