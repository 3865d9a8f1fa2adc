"""Sorting, and keys as integers, on which joins, groups and set operations work too.  Imports the table.  Start at `sort.py`."""
