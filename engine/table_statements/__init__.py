"""Statements about tables that take more than one query, and about what tables need: MERGE, sequences and comments.

May import whatever lies below the connection.  Start reading at `run_table_statements.py`.
"""
