"""Parts of some row groups of files, which threads read, decode and, where kernels want the column, encode one by one.

So a column that is read for kernels alone is never there whole as operators read it: memory has its codes, and as many parts as there
are threads.  TPC-H's l_quantity of SF1 is 96 MB as decimals, and 6 as codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ....plan import physical as p
from ....plan.arrow.arrow_arrays import array_from, from_numpy
from ....plan.physical import RowGroups
from ....plan.types import DataType, Kind, to_arrow
from ....progress.run_progress import READING_SHARE
from ....stopping import carried, wait
from ....storage.column_store.column_parts import ColumnParts
from ....storage.columns import encodings as enc
from ....storage.columns.encode import with_order
from ....storage.columns.value_checks import (
    INT96_UNIT,
    check_decimals,
    check_timestamps,
    check_utf8,
)
from ....storage.tables.footers import decoding, unreadable, wrong_count
from ....storage.tables.parquet import ParquetTable
from ...column_tiers import read_from_files
from ...context import Context
from ...scan_runs import chosen_of, rows_in
from ..table import combine, concat_arrays, physical_type, to_physical
from .made_columns import converted, made_column
from .remote_parts import ReadAhead, bytes_of

ROWS_A_TASK = 200_000  # rows that one thread reads at a time; more take fresh memory instead of what was just freed
PARTS_A_THREAD = 4  # at least, where there are row groups enough
SMALL_PART_ROWS = 20_000  # below this, opening a file costs more than decoding a column
# A dictionary with more values than this share of the rows saves nothing over plain strings
LARGEST_DICTIONARY_SHARE = 0.5

Rows: TypeAlias = pa.Array | enc.EncodedColumn  # of a column, as operators read it or as kernels do
# Makes codes of a part of a column, None of what has none
Encoder = Callable[[str, pa.Array], enc.EncodedColumn | None]


def read_in_parts(
    node: p.ParquetScan, sources: Sequence[str], context: Context, encode: Encoder | None = None
) -> dict[str, Rows]:
    """Read columns of a scan in parts of some row groups on all threads; what is no column of the files is made.

    With `encode` numbers come as kernels read them where all have codes, and text that a file keeps in small dictionaries.

    Text that a file keeps in dictionaries takes more than footers tell, so that what has come is asked for again.
    """
    table, _, chosen = chosen_of(node)
    came = 0

    def ask(nbytes: int) -> None:
        nonlocal came
        came += nbytes
        context.check()
        context.progress.advance(1)
        context.ask(node, came)

    from_files = [s for s in sources if s not in table.constants]
    read_from_files(table, from_files, chosen, context)
    parts = _parts(table, chosen, PARTS_A_THREAD * context.threads)
    rows = rows_in(table, parts)
    # A task reads one column, whose parts are freed when they are joined; of small files it reads all that is wanted, and of
    # remote ones, where each request takes long
    apart = rows >= SMALL_PART_ROWS * len(parts) and not table.is_remote
    ahead = ReadAhead(table, parts, from_files) if table.is_remote else None
    tasks = [[s] for s in from_files] if apart else [from_files]
    dictionaries = {s for s in from_files if table.has_small_dictionary(s)}
    context.progress.expect(len(parts) * sum(map(bool, tasks)), share=READING_SHARE)
    found: dict[str, Rows] = {}

    def part_of(part: RowGroups, task: list[str]) -> list[Rows]:
        arrays: list[Rows] = read_part(table, part, task, dictionaries, ahead)
        if encode is not None:
            for i, source in enumerate(task):
                if source in dictionaries or table.types[source].kind is not Kind.VARCHAR:
                    coded = encode(source, arrays[i])
                    arrays[i] = arrays[i] if coded is None else coded
        return arrays

    read = carried(part_of)
    with ThreadPoolExecutor(max(1, context.threads)) as pool:
        pending: list[tuple[list[str], list[Future[list[Rows]]]]] = [
            (task, [pool.submit(read, part, task) for part in parts]) for task in tasks if task
        ]
        try:
            for task, futures in pending:
                found.update(_joined_task(table, task, futures, context.threads, ask))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            if ahead is not None:
                ahead.close()
    if found:
        table.check_unchanged(chosen)
    constants = {s: constant(table, s, chosen) for s in sources if s in table.constants}
    return {**found, **constants}


def _joined_task(
    table: ParquetTable,
    task: list[str],
    futures: list[Future[list[Rows]]],
    threads: int,
    ask: Callable[[int], None],
) -> dict[str, Rows]:
    """Wait for the parts of some columns and join them; `futures` lets go of them."""
    read: dict[str, list[Rows]] = {s: [] for s in task}
    for future in futures:
        arrays: list[Rows] = wait(future)
        for source, array in zip(task, arrays, strict=True):
            read[source].append(array)
        ask(sum(arrays[-1].nbytes for arrays in read.values()))
    futures.clear()
    return {s: _in_one(read.pop(s), table.types[s], threads) for s in task}


def _in_one(parts: list[Rows], data_type: DataType, threads: int) -> Rows:
    """Return the parts of a column as one: as kernels read it if all have codes, and one form has them, else as operators do."""
    coded = [part for part in parts if isinstance(part, enc.EncodedColumn)]
    if len(coded) == len(parts) == 1:
        return with_order(coded[0], threads)
    if coded and len(coded) == len(parts):
        parts.clear()  # each goes when its codes are among those of all
        with ColumnParts(lambda size: enc.zeros(size, np.uint8), data_type) as column:
            while coded:
                column.add(coded.pop(0), threads)
            whole = column.whole(threads)
        assert whole is not None
        if isinstance(whole.value, enc.EncodedColumn):
            return whole.value
        assert isinstance(whole.value, pa.ChunkedArray)
        return joined(whole.value.chunks, data_type)
    arrow_type = physical_type(data_type)
    return joined([_as_read(part, arrow_type) for part in parts], data_type)


def _as_read(part: Rows, arrow_type: pa.DataType) -> pa.Array:
    if not isinstance(part, enc.EncodedColumn):
        return part
    return part.encoding.decode(enc.codes_of(part), arrow_type)


def _parts(table: ParquetTable, chosen: Sequence[RowGroups], least: int) -> list[RowGroups]:
    """Split a selection into parts of one file each, of about equal work: at least `least` of them if possible."""
    total = rows_in(table, chosen)
    target = max(1, min(ROWS_A_TASK, total // max(1, least)))
    parts: list[RowGroups] = []
    for part in chosen:
        groups: list[int] = []
        rows = 0
        for group in part.groups:
            groups.append(group)
            rows += table.group_rows[part.file][group]
            if rows >= target:
                parts.append(RowGroups(part.file, tuple(groups)))
                groups, rows = [], 0
        if groups:
            parts.append(RowGroups(part.file, tuple(groups)))
    return parts


def read_part(
    table: ParquetTable,
    part: RowGroups,
    sources: Sequence[str],
    dictionaries: set[str],
    ahead: ReadAhead | None = None,
) -> list[pa.Array]:
    """Read columns of some row groups of one file, in physical form; raises `FileError`."""
    file = table.files[part.file]
    own = [s for s in sources if table.name_in(s, part.file) is not None]
    names = [table.name_in(s, part.file) for s in own]
    expected = sum(table.stored_rows[part.file][g] for g in part.groups)
    within = table.within(part)
    made: dict[str, pa.Array] = {}
    with readable(file.path):
        if own:
            with reader(table, part, own, dictionaries, ahead) as source, decoding(file.path):
                data = source.read_row_groups(list(part.groups), columns=names, use_threads=False)
            if data.num_rows != expected:
                raise wrong_count(file.path, data.num_rows, expected)
            if within is not None:
                data = data.slice(*within)
            made = {s: checked(data, table, s, part.file) for s in own}
    for missing in sources:
        if missing not in made:
            array = made_column(table, missing, part)
            made[missing] = array if within is None else array.slice(*within)
    return [made[s] for s in sources]


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Raise `FileError` for what libraries raise while they open a file, and look at what was read of it."""
    try:
        yield
    except MemoryError:
        raise
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


@contextmanager
def reader(
    table: ParquetTable,
    part: RowGroups,
    sources: Sequence[str],
    dictionaries: set[str],
    ahead: ReadAhead | None = None,
    **options: object,
) -> Iterator[pq.ParquetFile]:
    """Open one file of a table; of `dictionaries` come codes."""
    if table.is_remote:
        options["pre_buffer"] = False  # which would read what lies between the chunks too
    with (
        bytes_of(table, part, sources, ahead) as source,
        pq.ParquetFile(
            source,
            metadata=table.footers[part.file],
            read_dictionary=[table.name_in(s, part.file) for s in sources if s in dictionaries],
            coerce_int96_timestamp_unit=INT96_UNIT,
            page_checksum_verification=table.has_checksums,
            **options,
        ) as found,
    ):
        yield found


def checked(data: pa.Table, table: ParquetTable, source: str, file: int) -> pa.Array:
    """Return a column of what was read of a file, in the table's type."""
    name, own = table.name_in(source, file), table.type_in(source, file)
    what = f'The column "{name}" of the file "{table.files[file].path}"'
    for chunk in data.column(name).chunks:
        check_timestamps(chunk, own, what)
        check_decimals(chunk, what)
    array = to_physical(data.column(name), own)
    check_utf8(array, what)
    return array if own == table.types[source] else converted(array, own, table.types[source])


def joined(arrays: list[pa.Array], data_type: DataType) -> pa.Array:
    """Return the parts as one array, with one dictionary of distinct values if it is worth one."""
    if not arrays:
        return to_physical(pa.nulls(0), data_type)
    if data_type.kind is not Kind.VARCHAR or not any(
        pa.types.is_dictionary(a.type) for a in arrays
    ):
        return concat_arrays(arrays)
    whole = combine(pa.chunked_array(arrays).unify_dictionaries())
    values = whole.dictionary
    if len(values) > LARGEST_DICTIONARY_SHARE * len(whole):
        return whole.dictionary_decode()
    if pc.count_distinct(values).as_py() < len(
        values
    ):  # a writer may repeat a value in a dictionary page
        return whole.dictionary_decode().dictionary_encode()
    return whole


def constant(table: ParquetTable, source: str, chosen: Sequence[RowGroups]) -> pa.Array:
    """Return a column with one value a file."""
    constant = table.constants[source]
    values = list(dict.fromkeys(v for v in constant.values if v is not None))
    code_of: dict[object, int | None] = {v: i for i, v in enumerate(values)}
    codes = [code_of.get(constant.values[part.file]) for part in chosen]
    counts = [rows_in(table, (part,)) for part in chosen]
    repeated = np.repeat(np.array([-1 if c is None else c for c in codes], np.int32), counts)
    indices = from_numpy(repeated, repeated >= 0)
    dictionary = to_physical(array_from(values, to_arrow(constant.type)), constant.type)
    if constant.type.kind is Kind.VARCHAR:
        return pa.DictionaryArray.from_arrays(indices, dictionary)
    return pc.take(dictionary, indices)
