"""Files that Fuseline writes for itself, with a fault each, and what a later reader makes of them; run as a program, as a fault may end it.

`python -m tests.storage.mutated_own_files SEED FIRST COUNT` writes a line for each fault: its number, and what came of it: `right`, or the
class of an error with its sentence.  The kinds of files take turns.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fuseline
from fuseline.cli.shell import prompts
from fuseline.codegen.compile import kernel_files
from fuseline.codegen.stored import folder as kernel_folders
from fuseline.database import folder_database
from fuseline.observe import roofline
from fuseline.operators import spill_area
from fuseline.storage.tables import footers
from tests.storage.mutated_files import peak_megabytes

connect = partial(fuseline.connect, device="cpu", threads=1)
Draw = random.Random
NOBODY = 65534

# Faults: of bytes, and of the file itself


def flipped(data: bytearray, draw: Draw) -> bytearray:
    for _ in range(draw.choice((1, 1, 2, 8))):
        if data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def cut(data: bytearray, draw: Draw) -> bytearray:
    return data[: draw.choice((draw.randrange(len(data) + 1), max(0, len(data) - 1)))]


def extended(data: bytearray, draw: Draw) -> bytearray:
    return data + draw.choice((b"\0", b"\n", b"0 {}\n", draw.randbytes(50), bytes(data[-40:])))


def swapped(data: bytearray, draw: Draw) -> bytearray:
    """Two stretches of the same length in each other's place."""
    length = draw.choice((1, 8, 64))
    if len(data) > 2 * length:
        a, b = sorted(draw.sample(range(len(data) - length), 2))
        b = max(b, a + length)
        data[a : a + length], data[b : b + length] = data[b : b + length], data[a : a + length]
    return data


def zeroed(data: bytearray, draw: Draw) -> bytearray:
    at, count = draw.randrange(len(data) + 1), draw.choice((1, 16, 4096))
    stretch = data[at : at + count]
    data[at : at + count] = bytes(len(stretch))
    return data


def renumbered(data: bytearray, draw: Draw) -> bytearray:
    """A number of a text becomes an extreme one, or is no number any more."""
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        at = draw.choice(places)
        data[at : at + 1] = draw.choice(
            (b"-1", b"9" * 25, b"1e999", b"9" * 5000, b"null", b'"', b"[")
        )
    return data


BYTES = (flipped, flipped, cut, extended, swapped, zeroed, renumbered)


def mutated(path: Path, draw: Draw) -> None:
    data = bytearray(path.read_bytes())
    path.write_bytes(draw.choice(BYTES)(data, draw))


def resealed(path: Path, draw: Draw) -> None:
    """Damage a line of a log under a checksum that is right."""
    lines = path.read_bytes().split(b"\n")
    number = draw.randrange(len(lines) - 1)
    text = bytes(draw.choice(BYTES)(bytearray(lines[number].partition(b" ")[2]), draw))
    lines[number] = b"%08x %s" % (zlib.crc32(text), text)
    path.write_bytes(b"\n".join(lines))


def other_owner(path: Path, draw: Draw) -> None:
    path.chmod(0o666)
    with suppress(PermissionError):  # root alone can give files away
        os.chown(path, NOBODY, NOBODY)


def replaced(path: Path, draw: Draw) -> None:
    """Something else in the place of the file."""
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    match draw.randrange(5):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to(elsewhere)
        case 3:
            path.symlink_to("/dev/zero")
        case _:
            pass  # it is gone


def fault(path: Path, draw: Draw) -> None:
    draw.choice((mutated, mutated, mutated, mutated, other_owner, replaced))(path, draw)


# Kinds of files: what writes them, and what is asked once one is damaged


def one_of(paths: Iterator[Path], draw: Draw) -> Path:
    return draw.choice(sorted(path for path in paths if path.is_file()))


@cache
def numbers() -> pa.Table:
    n = np.arange(20_000)
    return pa.table({"k": n * 7919 % len(n), "s": [f"text {i % 977}" for i in n]})


SORTED = "select s, k from t order by s, k"
GROUPED = "select sum(k), max(s), count(*) from (select k, max(s) as s from t group by k)"


def spilled(place: Path, draw: Draw) -> object:
    """A query whose rows leave memory for files, one of which is damaged as soon as it is written."""
    write, query = spill_area._write, draw.choice((SORTED, GROUPED))
    count = draw.randrange(3)

    def write_damaged(path: Path, piece: Any) -> Any:
        nonlocal count
        sections = write(path, piece)
        if count == 0:
            fault(path, draw)
        count -= 1
        return sections

    limit = {"memory_limit": 1_100_000, "fuse": "never", "spill_dir": place}
    with mock.patch.object(spill_area, "_write", write_damaged), connect(**limit) as connection:
        connection.register("t", numbers())
        found = connection.sql(query).fetchall()
    assert count < 0, "nothing was spilled"
    assert found == expected(query)
    return True


@cache
def expected(query: str) -> Any:
    with connect(fuse="never") as connection:
        connection.register("t", numbers())
        return connection.sql(query).fetchall()


@cache
def source() -> Path:
    path = scratch() / "t.parquet"
    pq.write_table(numbers(), path, row_group_size=5000)
    return path


COLUMNS = "select sum(k), min(s), max(s), count(distinct s) from t"


def with_store(place: Path) -> Any:
    with connect(column_store=place, fuse="always") as connection:
        connection.read_parquet(str(source()), "t")
        return connection.sql(COLUMNS).fetchall()


def column(place: Path, draw: Draw) -> object:
    """A column in a store: what is damaged is read from Parquet instead."""
    fault(one_of(place.glob("*.column"), draw), draw)
    return with_store(place) == expected(COLUMNS)


KERNELS = ("select sum(v) from u where w > 3", "select w % 2, max(v) from u group by 1 order by 1")


def with_kernels(place: Path) -> Any:
    """Answers of a process that has no kernel in memory."""
    kernel_folders.folder.cache_clear()
    kernel_files.forget()
    state, kernels = place / "state", place / "kernels"
    with (
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": str(state)}),
        mock.patch.object(kernel_files, "compiled", compiled),
        connect(cache_dir=kernels, fuse="always") as connection,
    ):
        connection.register("u", pa.table({"v": [1, 2, 3], "w": [4, 5, 2]}))
        return [connection.sql(query).fetchall() for query in KERNELS]


_compiled = kernel_files.compiled


@cache
def compiled_once(*job: Any) -> bytes:
    return _compiled(*job)


def compiled(source: str, name: str, signature: Any, architecture: Any, _: Any = None) -> bytes:
    """Compile a kernel in earnest the first time alone: what is damaged is found without it."""
    return compiled_once(source, name, tuple(signature), architecture)


def kernel(place: Path, draw: Draw) -> object:
    """A kernel's source or machine code, or the secret that proves where it comes from."""
    fault(one_of(place.rglob("*"), draw), draw)
    return with_kernels(place) == [[(3,)], [(0, 3), (1, 2)]]


STATEMENTS = (
    "create table a as select range as k, 'x' || range as s from range(3000)",
    "create table m as select range as k, to_days(range::integer) as i from range(1000)",
    "create table small (k integer primary key, s varchar default 'none', check (k > 0))",
    "insert into small values (1, 'one')",
    "create view v as select k + 1 as k from small",
    "create macro twice(x) as 2 * x",
    "create sequence q start 5",
    "create type mood as enum ('sad', 'glad')",
    "create schema side",
    "create table side.t as select 'glad'::mood as m",
    "insert into small values (2, 'two')",
    "drop view v",
)
LOOKS = (
    *(f"select count(*), min({t}), max({t}) from {t}" for t in ("a", "small")),
    *("select sum(k), min(i), max(i) from m", "from side.t", "from v", "select twice(4)"),
    "select count(*) from duckdb_tables()",
)
WRITES = "create table more as select 1 as x; insert into more values (2); checkpoint"
MISSING = ("UnknownName", "CatalogError")  # as before the commit that made it


def looks(place: Path, read_only: bool = False) -> list[str]:
    """Return what a folder shows, or an error for what cannot be read of it; then a writer goes on."""
    try:
        with connect(place, read_only=read_only, fuse="never") as connection:
            found = [_shown(connection, query) for query in LOOKS]
            return found if read_only else [*found, _shown(connection, WRITES)]
    except fuseline.FuselineError as error:
        return [_told(error)]


def _shown(connection: fuseline.Connection, query: str) -> str:
    try:
        return repr(connection.sql(query).fetchall())
    except fuseline.FuselineError as error:
        return _told(error)


def folder(place: Path, draw: Draw) -> object:
    """A database: its catalog or a file of rows; a catalog that is cut off is that of an earlier commit."""
    log, files = next(place.glob("catalog*.log")), (place / "data").iterdir()
    is_resealed = draw.random() < 0.4
    if is_resealed:
        resealed(log, draw)
    else:
        fault(log if draw.random() < 0.7 else one_of(files, draw), draw)
    found = looks(place, read_only=draw.random() < 0.5)
    errors = [f for f in found if f.startswith("!")]
    foreign = [e for e in errors if not e.startswith(("!FileError", *(f"!{m}" for m in MISSING)))]
    if is_resealed:
        return not any(e.startswith("!InternalError") for e in errors) or errors
    known = [f for f in found[: len(LOOKS)] if not f.startswith("!")]
    return (not foreign and set(known) <= _STATES) or found


_STATES: set[str] = set()  # what the folder has shown at each of its commits


def write_folder(place: Path) -> None:
    place.mkdir()
    with (
        mock.patch.object(folder_database, "INLINE_BYTES", 1000),
        connect(place, fuse="never") as connection,
    ):
        for text in ("select 1", *STATEMENTS):
            connection.execute(text)
            _STATES.update(_shown(connection, query) for query in LOOKS)


def history(place: Path, draw: Draw) -> object:
    """The histories of both prompts, whose lines are shown and never run."""
    for path in sorted(place.iterdir()):
        fault(path, draw)
    plain = prompts.PlainPrompt(place / "history")
    plain.close()
    kept = prompts.kept_history(place / "history-lines")
    kept.append_string("select 1;")
    return all(isinstance(line, str) for line in kept.load_history_strings())


def write_histories(place: Path) -> None:
    place.mkdir()
    (place / "history").write_text("select 1;\nfrom t;\n")
    (place / "history-lines").write_text("\n# 2026-01-01 00:00:00\n+select 1\n+from t;\n")


def bandwidth(place: Path, draw: Draw) -> object:
    """What was measured of a device."""
    fault(place / roofline.FILE, draw)
    known = roofline.remembered(place, "a device", lambda: 3e10)
    return known > 0 and known == known


def write_bandwidth(place: Path) -> None:
    roofline.measured(place, "a device", lambda: 1e10)


Kind = tuple[Callable[[Path], object], Callable[[Path, Draw], object]]
KINDS: dict[str, Kind] = {
    "spilled": (Path.mkdir, spilled),
    "column": (with_store, column),
    "kernel": (with_kernels, kernel),
    "folder": (write_folder, folder),
    "history": (write_histories, history),
    "bandwidth": (write_bandwidth, bandwidth),
}
MAY_FAIL = {"spilled": ("ExecutionError",)}  # what cannot be had in another way


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def scratch() -> Path:
    """A folder that goes with this process."""
    return Path(_scratch().name)


@cache
def whole(kind: str) -> Path:
    """The files of a kind as they were written."""
    place = scratch() / kind
    KINDS[kind][0](place)
    return place


def _told(error: fuseline.FuselineError) -> str:
    cause = f" {error.__cause__!r}" if isinstance(error, fuseline.InternalError) else ""
    return f"!{type(error).__name__}{cause}: {error}"


def outcome(place: Path, kind: str, draw: Draw) -> str:
    try:
        found = KINDS[kind][1](place, draw)
    except fuseline.FuselineError as error:
        allowed = type(error).__name__ in MAY_FAIL.get(kind, ()) and str(error).endswith(".")
        return f"refused: {error}" if allowed else f"{kind}: {_told(error)}"
    except Exception as error:
        return f"{kind}: {error!r}"
    return "right" if found is True else f"{kind}: another answer: {found}"


def main(seed: int, first: int, count: int) -> None:
    warnings.simplefilter("ignore")  # that kernels cannot be kept
    footers.SECONDS, footers.WRITE_RATE = 0.0, float("inf")  # what is new is kept
    place = scratch() / "damaged"
    for number in range(first, first + count):
        kind = list(KINDS)[number % len(KINDS)]
        shutil.copytree(whole(kind), place)  # with the times of files
        found = outcome(place, kind, Draw(f"{seed} {number}"))
        shutil.rmtree(place)
        print(f"{number} {json.dumps([[found], peak_megabytes()])}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
