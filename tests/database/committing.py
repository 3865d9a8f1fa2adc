"""A process that commits to a folder until it is killed: `python -m tests.database.committing FOLDER [CALL]`.

Each transaction changes two tables, which always have the same rows, and writes its number once COMMIT has returned.  With a number CALL the
process kills itself before that call of fsync, rename or write.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import fuseline
from fuseline.database import commit_log, folder_database

CALLS = ("fsync", "replace", "pwrite", "ftruncate")


def main() -> None:
    folder, *call = sys.argv[1:]
    folder_database.INLINE_BYTES = 400  # of 8 numbers and their sizes: some commits write files
    folder_database.TAIL_BYTES = 3_000
    folder_database.LOG_BYTES = 20_000
    with fuseline.connect(folder, device="cpu") as connection:
        connection.execute("create table if not exists a (n bigint, t varchar)")
        connection.execute("create table if not exists b (n bigint, t varchar)")
        if call:
            die_before(int(call[0]))
        (number,) = connection.sql("select count(*) from a where t = 'first'").fetchone()
        print("ready", flush=True)
        while True:
            number += 1
            commit(connection, number)
            print(number, flush=True)


def commit(connection: Any, number: int) -> None:
    rows = 1 if number % 3 else 80
    connection.begin()
    for table in ("a", "b"):
        connection.execute(
            f"insert into {table} select {number}, if(range = 0, 'first', 'other') from range({rows})"
        )
        if number % 7 == 0:
            connection.execute(f"update {table} set t = 'other' where t <> 'first'")
    connection.commit()
    if number % 11 == 0:
        connection.execute("checkpoint")


def die_before(number: int) -> None:
    """Kill this process before one of the calls that write."""
    left = number

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **options)

        return call

    for name in CALLS:
        setattr(commit_log.os, name, counted(getattr(os, name)))


def check(connection: Any, least: int) -> int:
    """Assert that both tables have the rows of the first transactions, at least so many, and return how many those are."""
    (last,) = connection.sql("select coalesce(max(n), 0) from a").fetchone()
    rows = {n: 1 if n % 3 else 80 for n in range(1, last + 1)}
    for table in ("a", "b"):
        found = connection.sql(f"select n, count(*) from {table} group by n").fetchall()
        assert dict(found) == rows, table
    assert last >= least
    return int(last)


if __name__ == "__main__":
    main()
