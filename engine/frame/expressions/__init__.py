"""What an expression of dataframe calls can do, by kinds of methods: operators, values, aggregates, windows, and those of one type.

Each file is a class that `Expression` is made of, over what all of them share in `unbound.py`.  Imports `plan`.
Start at `unbound.py`, then `window_methods.py`; `expression.py` puts them together.
"""
