"""A cluster of Dask workers that run queries together, each the whole plan over its share of the tables.

    clusters   the scheduler and workers that a connection starts or is given
    crew       the client's side: an actor on each worker, called all at once for a query
    session    a worker's side: backends, caches and plans, in the actor
    meetings   rows that workers give each other while a query runs
    runner     what a connection to a cluster has in the place of `running.QueryRunner`

A hot query takes milliseconds and a Dask task ten, so no query makes a task.  Imports everything; Dask is imported here alone.
Start at `crew.py`.
"""
