"""What a Frame can do, by kinds of methods: relational algebra, other shapes, results, tables, and DuckDB's names.

Each file is a class that `Frame` is made of, over what all of them share in `planned.py`.  Imports `plan`, expressions and joins.
Start at `planned.py`, then `relational_methods.py`.
"""
