"""Sorting by row numbers, and the first rows of an order.  Imports `memory` and the table.  Start at `sort.py`."""
