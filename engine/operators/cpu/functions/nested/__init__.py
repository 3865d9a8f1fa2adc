"""Functions of lists and structs over Arrow arrays: what they have inside is an array of its own, which kernels work on at once.

May import the kernels beside it and `cpu/nested_arrays.py`, which takes arrays apart.  Start at `list_parts.py`; `kernel_table.py`
has the functions by name.
"""
