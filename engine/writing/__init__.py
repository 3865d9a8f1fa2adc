"""Files that queries write: COPY TO and what a Frame's `write_...` methods are.

`copy_to` runs the query and hands its rows on, a table at a time; `written_columns` has the engine make texts of what a format holds as
text; `new_files` sees to it that nobody meets half a file.  May import everything below connections.  Start at `copy_to.py`.
"""
