"""Python functions in queries: what one is, how it is declared, and its call as an expression.

`python_function` has both, `declaration` reads types from SQL names and annotations, `code_image` what the value of a compiled one
depends on.  Imports the plan around it.  Start at `python_function.py`.
"""
