"""Runs a physical plan: in which order its nodes run, what they may hold, and what becomes of rows that do not fit.

What each node did is written into `observe.profile`, what kernels reached of their device's bandwidth into `observe.roofline`.

May import the backends' protocol in `operators` and plan; which backends there are, `connection` says.  Start at `executor.py`.
"""
