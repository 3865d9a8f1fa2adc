"""Rows that GPUs of a cluster give each other as they lie, without the host.

    device_parts     which rows go to which worker: of one table in the order of the workers, stretches for each
    device_exchange  the exchange itself: parts packed into one buffer each, moved in rounds, put together again
    placed_exchange  one of columns of fixed width by keys: kernels write rows where they are sent from, and they come where they stay
    nccl_link        the buffers' way from GPU to GPU

Imports the table, `memory` and the parts of joins.  Start at `device_exchange.py`.
"""
