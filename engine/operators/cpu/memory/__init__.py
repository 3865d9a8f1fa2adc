"""Host memory as operators use it: asked for before it is taken, and gone through in ranges of rows by threads.

Imports the table alone.  Start at `ask_memory.py`.
"""
