"""Pipelines: what generated kernels read, how they are compiled, laid out in memory and launched, and the result's columns.

`pipeline_inputs` finds the columns, `compiled_pipeline` the kernels, `regions` their memory, `launch` runs them, `finish` and `gather`
make columns of what they leave.  Imports `codegen`, `scan`, `functions` and `memory`.  Start at `pipeline.py`;
`operators.run_pipeline` calls it.
"""
