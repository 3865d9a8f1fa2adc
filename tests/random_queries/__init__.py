"""The one generator of random queries, by whose seeds CI, the nightly run and the tests of kernels and planning draw.

`extremes` is the pool of odd values of each type, `data` draws tables, `shapes` SELECTs of every function with holes for constants, `deep`
SELECTs of few functions whose joins and subqueries nest, `wide` SELECTs over nested types (`wide_values`) and the clauses that those leave
out, `changes` sequences of statements over their tables; `cases` compares them with DuckDB, `functions` one function at a time.
"""
