"""What is known while a query is bound: the values of parameters, and of expressions without columns.

May import the binding around it, as that imports this.  Start at `known_values.py`.
"""
