"""Dataframe calls and what comes out of a query: frames, expressions, grouped frames, cursors, rows for people.

A `Frame` builds the logical nodes that SQL would; nothing here plans or runs them, which `connection` hands in.  Imports `plan`,
the catalog and what stops a query; of the floors above, only `observe.explain` and `interop`, for the methods that show or hand over.
Start at `frame.py`, then `functions.py` for the expressions that its methods take, and `cursor.py` for the rows of an answer.
"""
