"""A cluster of Dask workers that run queries together, each the whole plan over its share of the tables.

    clusters   the scheduler and workers that a connection starts or is given
    crew       the client's side: queries go to the workers that they need
    members    who these workers are: an actor on each, in places that stay, without those that are lost or silent; how
               the GPUs of a team are linked, so that these rows need no host; `worker_link`: one worker's end
    session    a worker's side: backends, caches and plans, in the actor
    kept       rows that stay on the workers; `partitions`: those of Dask's dataframes
    own_plans  what one worker runs of a plan; `orders`: what goes to it and comes back
    meetings   rows that workers give each other while a query runs
    common_texts  texts that are sent as codes into dictionaries that all workers have
    trials     how long exchanges take; `versions`: what must be the same on all
    runner     what a connection to a cluster has in the place of `running.QueryRunner`

A hot query takes milliseconds and a Dask task ten, so no query makes a task.  Imports everything; Dask is imported here alone.
Start at `crew.py`.
"""
