"""Rows that stay on the workers: results that are kept, and dataframes of Dask that are taken and given back."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from distributed import futures_of

from ..errors import ClusterError, ExecutionError, TypeMismatch
from ..storage.tables.memory_table import MemoryTable, ShardedTable
from ..storage.tables.other_types import type_of
from .crew import Crew
from .members import LOOK_SECONDS
from .partitions import frame_of
from .session import SESSIONS

if TYPE_CHECKING:
    from dask import dataframe as dd
    from distributed import Future

Check = Callable[[], None]


def gathered(crew: Crew, table: ShardedTable, check: Check) -> MemoryTable:
    """Return a table with the rows of all workers, here."""
    parts = crew.each("share", [(table.identity,)] * crew.size, check)
    return MemoryTable(table.name, pa.concat_tables(parts), [t for _, t in table.all_fields])


def table_of(crew: Crew, name: str, frame: dd.DataFrame, check: Check) -> ShardedTable:
    """Return a table of a Dask dataframe: each worker reads the partitions that it has; those that are not made yet are made first.

    Raises `ClusterError` where a partition lies on no worker of the crew, `TypeMismatch` where they have no common columns.
    """
    futures = futures_of(crew.client.persist(frame))
    _wait(futures, check)
    keys: dict[str, list[Hashable]] = {address: [] for address in crew.addresses}
    holders = crew.client.who_has(futures)
    for future in futures:
        there = [address for address in holders.get(future.key, ()) if address in keys]
        if not there:
            raise ClusterError(f'A partition of "{name}" is on no worker that runs queries.')
        keys[there[0]].append(future.key)
    reading = object.__repr__(frame)
    read = crew.each("read", [(reading, own) for own in keys.values()], check)
    try:
        schemas = [schema for schema, _ in read if len(schema)]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise TypeMismatch(
            f'The partitions of "{name}" differ in their columns: {error}.'
        ) from error
    rows = sum(count for _, count in read)
    table = ShardedTable(name, schema.empty_table(), [type_of(t) for t in schema.types], rows)
    crew.each("take", [(reading, table.identity, table)] * crew.size, check)
    crew.hold(table)
    return table


def frame_over(crew: Crew, table: ShardedTable, on_gpu: bool, check: Check) -> dd.DataFrame:
    """Return a Dask dataframe of a table's shares, a partition each, where they lie."""
    from dask.dataframe import from_delayed

    futures = [
        crew.client.submit(_partition, key, table.identity, on_gpu, workers=[address], pure=False)
        for key, address in zip(crew.keys, crew.addresses, strict=True)
    ]
    _wait(futures, check)
    return from_delayed(futures, meta=frame_of(table.data, on_gpu), verify_meta=False)


def _wait(futures: list[Future], check: Check) -> None:
    """Wait for partitions; raises `ExecutionError` where one cannot be made."""
    while any(future.status == "pending" for future in futures):
        check()
        time.sleep(LOOK_SECONDS)
    for future in futures:
        error = future.exception()
        if error is not None:
            raise ExecutionError(
                f"A partition of the dataframe cannot be made: {type(error).__name__}: {error}"
            ) from error


def _partition(key: str, identity: Hashable, on_gpu: bool) -> Any:
    """A worker's share of a table, by the key of its actor; a task on that worker."""
    return frame_of(SESSIONS[key].share(identity), on_gpu)
