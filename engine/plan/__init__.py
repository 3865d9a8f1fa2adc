"""The ground floor: types, expressions, logical and physical plans, and the table of functions.  Pure data.

May import the standard library and numpy alone (pyarrow inside `types`).  Start reading at `logical.py`.
"""
