"""Window functions as plans have them: the call, the logical node of all calls over one partition and order, and the operator.

Imports expressions and plans.  Start at `window_call.py`.
"""
