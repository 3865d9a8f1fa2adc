"""Calls of Python functions in SQL, and which calls give another value each time.

May import the binding around it.  Start at `bind_python.py`.
"""
