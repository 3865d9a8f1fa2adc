"""Syntax trees to logical plans: names looked up in a scope, expressions typed, clauses in the order in which they are evaluated.

Imports `plan`, the catalog and `parsing`; a node that no binder has used is refused by `parsing.unread`.  Start at `bind_query.py`,
then `scope.py`.
"""
