"""`python -m fuseline` is the command `fuseline`."""

from .cli import main

main()
