"""The command `fuseline`: sql, shell, explain, warmup, cluster, serve, doctor.

The top floor: it may import everything, and nothing imports it but `python -m fuseline`.  Start at `commands.py`.
"""

from .commands import main

__all__ = ["main"]
