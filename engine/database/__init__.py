"""Databases: the names of a connection's tables, and folders in which tables, views and macros last.

`namespace` has what the names of all attached databases stand for, and transactions over them.  `folder_database` is one folder: its
rows are Parquet files that are never changed (`rows_files`), its catalog a log of commits (`commit_log`), and a lock lets one process
write (`folder_locks`).  `stored_table` is a table of it, whose files are opened when a query reads them.

May import plan, errors and storage.  Start reading at `folder_database.py`.
"""
