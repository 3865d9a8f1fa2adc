"""Plans, expressions and values as text, and text as values.

Imports the rest of `plan`.  Start at `plan_text.py`; `concealed_text.py` leaves out the constants of a query.
"""
