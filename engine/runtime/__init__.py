"""Runs a physical plan and keeps the receipt: `executor` the plan, `profile` what each node did,
`roofline` what a kernel reached of its device's bandwidth, `memory` the limit.

May import the backends' protocol in `operators` and plan; which backends there are, `connection` says.
"""
