"""Compiled Python functions: their calls as terms of kernels, and the loop that runs one over arrays.

Imports the loop language and `codegen.cpu`.  Start at `udf_terms.py`; `function_text.py` has the line that defines one in a kernel's file.
"""
