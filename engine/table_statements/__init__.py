"""Statements about tables that take more than one query: MERGE.

May import whatever lies below the connection.  Start reading at `merge_tables.py`.
"""
