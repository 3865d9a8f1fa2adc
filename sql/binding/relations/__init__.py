"""What stands in FROM and becomes a query of others: PIVOT, UNPIVOT, ASOF and POSITIONAL joins, WITH RECURSIVE, SUMMARIZE, DESCRIBE.

Imports what `binding` imports, and of it the scopes and names.  Start reading at `bind_pivot.py`.
"""
