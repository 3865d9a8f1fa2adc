"""SQL text to sqlglot's trees, whose nodes know their place in the text, and what sqlglot reads otherwise than DuckDB.

`pieces` cuts a script into statements, `tokens` and `parse` read one, `dropped` finds what the parser read over, `unread` what no binder
used.  Imports errors alone.  Start at `parse.py`.
"""
