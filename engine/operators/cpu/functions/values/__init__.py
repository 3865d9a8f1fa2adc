"""Functions that Python or its library computes, once for each distinct value of a chunk: distances of texts, digests, formats.

May import the kernels beside it.  Start at `each_value.py`, which applies them; `kernel_table.py` has them by name.
"""
