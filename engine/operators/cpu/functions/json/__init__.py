"""Functions of JSON: what lies at paths, changed values, JSON made of other values, and other values made of JSON.

May import the kernels beside it, those of `values/`, which call a function once for each distinct text, and `plan/json/`, which reads
and writes the texts; `json_scan.py` reads what is usual in compiled loops.  Start at `json_parts.py`; `kernel_table.py` has the functions by name.
"""
