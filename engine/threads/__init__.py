"""What threads share, and what of it a process made by `fork` has: it begins with one thread, whatever the others were amid.

Imports nothing of Fuseline.  Start at `together.py`.
"""
