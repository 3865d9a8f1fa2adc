"""The command `fuseline`: sql, shell, explain, warmup, cluster, serve, doctor, completions.

The top floor: it may import everything, and nothing imports it but `python -m fuseline`.  Start at `commands.py`; `shell/` is the prompt.
"""

from .commands import main

__all__ = ["main"]
