"""Tables of Delta Lake and Iceberg and databases whose metadata has a fault each: bytes flipped or cut, fields away, of another type, huge, or of paths outside."""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import fuseline
from fuseline.errors import FuselineError, InternalError
from tests.lakes.lake_writers import delta_with_vectors

SECRET = 424242  # in files beside the table's folder, which may not be opened
ROWS = pa.table({"n": pa.array(range(8), pa.int64()), "s": [f"v{i % 3}" for i in range(8)]})
ODD = (None, True, -1, 1 << 31, 1 << 63, 10**30, 1.5, float("nan"), "", "x" * 10_000, "../secret.parquet", "file:///", "\0", "日", [], {}, [[]], {"a": []})  # fmt: skip


@dataclass(frozen=True)
class Folder:
    """A whole table or database: its metadata's files, and how it is read; `sealed` writes its JSON as its reader takes it."""

    root: Path
    metadata: tuple[str, ...]
    read: Callable[[fuseline.Connection, Path], object]
    sealed: Callable[[bytes], bytes] = bytes


def delta(root: Path) -> Folder:
    """A table of three commits, the first ones in a checkpoint; rows of one file are deleted."""
    import deltalake

    table = root / "delta"
    deltalake.write_deltalake(str(table), ROWS, partition_by=["s"])
    deltalake.write_deltalake(str(table), ROWS, mode="append")
    deltalake.DeltaTable(str(table)).create_checkpoint()
    deltalake.write_deltalake(str(table), ROWS, mode="append")
    return Folder(table, ("_delta_log/*",), read_delta)


def delta_of_vectors(root: Path) -> Folder:
    table = root / "vectors"
    delta_with_vectors(table, [(ROWS, [1, 5]), (ROWS, [])])
    return Folder(table, ("_delta_log/*", "*.bin"), read_delta)


def iceberg(root: Path) -> Folder:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{root}/c.db", warehouse=f"file://{root}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    catalog.close()
    place = Path(table.location().removeprefix("file://"))
    return Folder(place, ("metadata/*",), read_iceberg)


def database(root: Path) -> Folder:
    place = root / "shop"
    with fuseline.connect(place, device="cpu", fuse="never") as connection:
        connection.execute(
            "create type mood as enum ('a', 'b'); create schema other; create sequence ids; create macro twice(x) as x * 2;"
            "create table t (n bigint primary key, s varchar default 'x', m mood, l integer[] check (len(l) < 9));"
            "insert into t values (1, 'a', 'b', [1, null]), (2, null, null, null); create view v as select n, twice(n) as d from t"
        )
        connection.execute("insert into t select range + 100, 'many', 'a', [range] from range(3)")
        connection.execute("select nextval('ids'); comment on table t is 'rows'")
        connection.execute("create table big as select range as n from range(50000)")
    return Folder(place, ("catalog*",), read_database, _with_checksums)


def read_delta(connection: fuseline.Connection, place: Path) -> object:
    return connection.sql(f"from delta_scan('{place}')").fetchall()


def read_iceberg(connection: fuseline.Connection, place: Path) -> object:
    return connection.sql(f"from iceberg_scan('{place}')").fetchall()


def read_database(connection: fuseline.Connection, place: Path) -> object:
    connection.execute(f"attach '{place}' as d")
    asked = "from d.t", "from d.v", "from d.big limit 3", "select nextval('d.ids')", "insert into d.t values (7, 'y', 'a', [])", "from d.t"  # fmt: skip
    found = []
    for text in asked:
        try:
            found.append(connection.sql(text).fetchall())
        except InternalError:
            raise
        except FuselineError:
            found.append([])
    return found


FOLDERS = (delta, delta_of_vectors, iceberg, database)


def _with_checksums(text: bytes) -> bytes:
    lines = [line.partition(b" ")[2] if line[8:9] == b" " else line for line in text.splitlines()]
    return b"".join(b"%08x %s\n" % (zlib.crc32(line), line) for line in lines)


# Faults


def mutate(folder: Folder, draw: random.Random) -> None:
    """Put one or more faults into the files of a folder's metadata."""
    files = [f for pattern in folder.metadata for f in sorted(folder.root.glob(pattern))]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        file = draw.choice([f for f in files if f.is_file()])
        data = file.read_bytes()
        by_fields = draw.random() < 0.7 and file.suffix != ".bin"
        if file.suffix == ".parquet" and by_fields:
            _other_actions(file, draw)
        elif changed := _other_fields(data, draw) if by_fields else None:
            file.write_bytes(folder.sealed(changed))
        else:
            file.write_bytes(_other_bytes(data, draw))


def _other_fields(data: bytes, draw: random.Random) -> bytes | None:
    """Change a document, or one of the documents that are lines, at one place; None for what has none."""
    try:
        text = data.decode()
        lines = [text] if text.startswith("{\n") else text.splitlines()
        place = draw.randrange(len(lines))
        before, brace, rest = lines[place].partition("{")
        document = json.loads(brace + rest)
    except (ValueError, UnicodeDecodeError):
        return None
    lines[place] = before + json.dumps(_other_value(document, draw))
    return "\n".join(lines).encode(errors="replace") + b"\n"


def _other_value(value: Any, draw: random.Random) -> Any:
    """Change one place of a document, far down as a rule; text that is a document is one too."""
    if isinstance(value, str) and value.startswith("{") and draw.random() < 0.8:
        try:
            return json.dumps(_other_value(json.loads(value), draw))
        except ValueError:
            return value
    if isinstance(value, dict | list) and value and draw.random() < 0.85:
        key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if draw.random() < 0.15:
            del value[key]
        else:
            value[key] = _other_value(value[key], draw)
        return value
    if isinstance(value, str) and "/" in value + "/" and draw.random() < 0.4:
        return draw.choice(("../secret.parquet", "file://{outside}/secret.parquet", "{outside}/secret.parquet", f"{value}/../../secret.parquet", "%2e%2e/secret.parquet"))  # fmt: skip
    return draw.choice(ODD)


def _other_actions(file: Path, draw: random.Random) -> None:
    """Change a row of a checkpoint, as a document of its columns."""
    whole, made = file.read_bytes(), pa.BufferOutputStream()
    try:
        table = pq.read_table(file)
        rows = table.to_pylist()
        place = draw.randrange(len(rows))
        rows[place] = _other_value(rows[place], draw)
        pq.write_table(pa.Table.from_pylist(rows, table.schema), made)
        changed = bytes(made.getvalue())
    except (OSError, pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError):
        changed = _other_bytes(whole, draw)
    file.write_bytes(changed)


def _other_bytes(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data or b"x")
    at = draw.randrange(len(changed))
    match draw.randrange(5):
        case 0:
            changed[at] ^= 1 << draw.randrange(8)
        case 1:
            del changed[at:]
        case 2:
            del changed[at : at + draw.choice((1, 4, 30))]
        case 3:
            changed[at : at + 8] = draw.choice((b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7))
        case _:  # a path of the same length that leaves the folder
            changed = bytearray(bytes(changed).replace(b"data/", b"../d/").replace(b"part-", b"../p-"))  # fmt: skip
    return bytes(changed)


# What is asked


def check(seed: int, count: int, room: Path) -> Counter[str]:
    """Read mutants of each folder that may be opened alone; fail with what is no clear error, or what comes from outside."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for make in FOLDERS:
        home = room / make.__name__
        home.mkdir()
        folder = make(home)
        pq.write_table(pa.table({"n": [SECRET] * 3, "s": ["secret"] * 3}), home / "secret.parquet")
        assert _outcome(folder) == "rows"
        whole = home.with_name(f"{make.__name__} whole")
        shutil.copytree(folder.root, whole)
        for number in range(count):
            draw = random.Random(f"{seed} {make.__name__} {number}")
            mutate(folder, draw)
            _name_outside(folder, home)
            found = _outcome(folder)
            counts[f"{make.__name__} {found.split(':')[0]}"] += 1
            if found not in ("rows", "error"):
                wrong.append(f"seed {seed}, {make.__name__} {number}: {found}")
            shutil.rmtree(folder.root)
            shutil.copytree(whole, folder.root)
    assert not wrong, "\n".join(wrong[:20])
    return counts


def _name_outside(folder: Folder, home: Path) -> None:
    for pattern in folder.metadata:
        for file in folder.root.glob(pattern):
            data = file.read_bytes()
            if b"{outside}" in data:
                data = data.replace(b"{outside}", str(home).encode())
                file.write_bytes(folder.sealed(data))


def _outcome(folder: Folder) -> str:
    try:
        with fuseline.connect("cpu", fuse="never", allowed_paths=[folder.root]) as connection:
            found = folder.read(connection, folder.root)
    except InternalError as error:
        return f"InternalError: {error.__cause__!r}"[:300]
    except FuselineError:
        return "error"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return f"foreign: {error!r}"[:300]
    return "outside: rows of a forbidden file" if str(SECRET) in str(found) else "rows"
