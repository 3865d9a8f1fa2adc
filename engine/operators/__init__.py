"""The floor that touches data: physical node -> table, once for each backend.

`cpu` and `gpu` are two packages with the same files and the same function names.  Each is one backend, a module with

    OPERATORS     dict[type[Physical], (node, inputs, context) -> Table]
    unsupported   (node) -> why this backend cannot run the node, or None
    to_arrow      (table, columns) -> pyarrow.Table, in the types of `plan.types.to_arrow`
    from_arrow    (pyarrow.Table, columns) -> Table
    parted        (table, keys, columns) -> rows on the host, in the order of the parts of a join (`spilling`)
    unparted      (rows on the host, columns) -> Table
    num_rows, num_bytes, synchronize, wait_for, name

How a pipeline runs is said once, in `run_pipeline` and `streaming`; a backend gives what `pipeline_backend` asks for.
A Table maps column ids to arrays of equal length.  May import plan, storage and codegen; never the planner, never each other.
Start reading at `cpu/rows.py`.
"""
