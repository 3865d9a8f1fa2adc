"""What a query says of itself: plans as text, the receipt of a run, its speed against the device's, traces while it runs.

`profile` and `roofline` are what `runtime` writes down and import the plan and `operators.context` alone; `explain` and `trace` read
it and show it.  Start at `explain.py`, then `profile.py` for what a receipt holds.
"""
