"""The GPU backend: columns in device memory, computed on with pylibcudf.

`table` says in which forms values lie; `memory.device` prepares memory and says what is missing where there is no GPU; `functions`
compute values, `pipeline` runs generated kernels, and the other rooms and files hold the operators, as in the CPU backend.  Without
the cuda13 extra the package can be imported and only `available` answers.  Imports what `operators` may, and single values and few
rows from the CPU backend.  Start reading at `rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from ...plan import physical as p
from ...plan.partial import FinishAverages
from ...plan.window.window_operator import WindowRows
from ..context import Context
from ..run_pipeline import pipelines
from ..run_unfused import Operators
from .memory.device import (
    available as available,
    device_description as device_description,
    device_memory as device_memory,
    is_out_of_memory,
    on_device,
    prepare as prepare,
    synchronize as synchronize,
)

name = "gpu"
batches = None  # a row group takes as long as several

if find_spec("pylibcudf") is not None:
    from .aggregate.aggregate import distinct_on, finish_averages, hash_aggregate
    from .exchange.device_exchange import exchanged as exchanged
    from .join.join import hash_join, nested_loop_join
    from .join.join_parts import parted as parted, piece_of as piece_of, unparted as unparted
    from .memory.bandwidth import copy_bandwidth as copy_bandwidth, device_name as device_name
    from .memory.to_host import arrow_bytes as arrow_bytes, to_arrow as to_arrow
    from .pipeline.pipeline import Attempt
    from .rows import (
        compute_columns,
        concat_rows,
        filter_rows,
        limit_rows,
        numbered as numbered,
        range_scan,
        values_scan,
    )
    from .scan.host_tier import store_columns as store_columns
    from .scan.load import (
        load_columns as load_columns,
        load_for_kernels as load_for_kernels,
        take_form as take_form,
    )
    from .scan.scan import memory_scan, parquet_scan
    from .scan.stored_columns import lift_ahead, to_host_tier as to_host_tier
    from .set_operations import hash_set_operation
    from .sort.sort import sort_rows, top_k
    from .support import unsupported as unsupported
    from .table import (
        Table,
        from_arrow as from_arrow,
        num_bytes as num_bytes,
        settled as settled,
        wait_for as wait_for,
    )
    from .window.window_rows import window_rows

    Operator = Callable[[Any, tuple[Table, ...], Context], Table]

    OPERATORS: dict[type[p.Physical], Operator] = {
        p.ParquetScan: parquet_scan,
        p.MemoryScan: memory_scan,
        p.RangeScan: range_scan,
        p.ValuesScan: values_scan,
        p.FilterRows: filter_rows,
        p.ComputeColumns: compute_columns,
        p.HashJoin: hash_join,
        p.NestedLoopJoin: nested_loop_join,
        p.HashAggregate: hash_aggregate,
        FinishAverages: finish_averages,
        p.DistinctOn: distinct_on,
        p.SortRows: sort_rows,
        p.TopK: top_k,
        p.LimitRows: limit_rows,
        p.ConcatRows: concat_rows,
        p.HashSetOperation: hash_set_operation,
        WindowRows: window_rows,
    }
    # Which runs the bodies that no kernel holds by these operators
    OPERATORS[p.Pipeline] = pipelines(
        Operators(OPERATORS, num_bytes),
        Attempt,
        lift_ahead,
        is_out_of_memory,
        settled,
        on_device,
        store_columns,
    )
