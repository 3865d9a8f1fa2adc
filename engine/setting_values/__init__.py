"""Values of settings that need more than a line to be read.

May import errors alone.  Start at `paths.py`, which has paths and beginnings of URLs.
"""
