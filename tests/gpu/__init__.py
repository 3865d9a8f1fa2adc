"""The GPU backend against the CPU backend, operator by operator; needs a GPU."""
