"""Runs a physical plan and keeps the receipt: `executor` the plan, `profile` what each node did, `memory` its limit.

May import the backends' protocol in `operators` and plan; which backends there are, `connection` says.
"""
