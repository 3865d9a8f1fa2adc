"""Functions that are others, put together: of dates, of texts and of the session.

Imports `plan`.  `plan/derived.py` has the table of all of them; start at `derived_dates.py`.
"""
