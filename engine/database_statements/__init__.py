"""Statements about whole databases: ATTACH and DETACH, USE, schemas, CHECKPOINT, EXPORT and IMPORT DATABASE; and what `connect` opens.

May import whatever lies below the connection.  Start reading at `attach.py`.
"""
