"""One statement of a script to what the connection carries out.

Imports `binding` and `parsing`.  Start at `bind_statement.py`; tables that are made, filled and dropped are in `bind_table_statement.py`.
"""
