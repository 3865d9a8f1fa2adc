"""What is put together of other plan parts: functions of dates, texts and nested values, joins by order, samples.

Imports `plan`.  `plan/derived.py` has the table of the functions; start at `derived_dates.py`.
"""
