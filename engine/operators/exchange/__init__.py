"""Rows that the workers of a cluster give each other, whatever the device.

    exchange_rows    what each worker gets of a table, and an exchange by way of the host
    exchange_placed  one from device to device of columns of fixed width: rows come where they are to stay
    exchange_rounds  one from device to device of packed rows, in rounds
    cut_sorted_rows  where rows in an order are cut, so that as many go to each
    agree_columns    before a plan runs for the first time: one form of each column on all workers
    heavy_keys       rows that stay where they are, since very many have their key

Imports what `operators` may.  Start at `exchange_rows.py`.
"""
