"""`fuseline shell`: a prompt, a pipe or a file of SQL and of commands that begin with a dot.

Imports everything it needs, as the command line does; `prompt_toolkit`, where it is installed, in `prompts` alone.  Start at `read_statements.py`.
"""
