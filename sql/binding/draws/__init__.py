"""What a query draws: random(), setseed() and samples, and their places below aggregates.

May import the binding around it, as that imports this.  Start at `volatile.py`.
"""
