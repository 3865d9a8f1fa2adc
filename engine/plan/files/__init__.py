"""What is said of files in SQL and in dataframe calls: formats, and the options that each takes.

Imports errors alone.  Start at `write_options.py`.
"""
