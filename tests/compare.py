"""The one assertion: Fuseline's answer is DuckDB's answer, or that of another run of Fuseline."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests import slices
from tests.duckdb_connections import connection_for, database
from tests.identical import identical, in_numbers
from tests.sort_keys import sort_keys

FLOAT_TOLERANCE = 1e-9  # relative; sums of floats depend on the order in which they are added
FLOAT32_TOLERANCE = 1e-5
ROWS_SHOWN = 5

Opened = Callable[[Mapping[str, Any], str], AbstractContextManager[Any]]
# Instead of backends; by tables and `fuse`
opens_elsewhere: ContextVar[Opened | None] = ContextVar("opens_elsewhere", default=None)

Params = Sequence[Any] | Mapping[str, Any] | None
Row = tuple[Any, ...]


@cache
def missing_for_gpu() -> str | None:
    """Why no query can run on a GPU here, or None.

    It asks the driver and not Fuseline: where there is a GPU, a Fuseline that does not find it is a failure.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return "the NVIDIA driver finds no GPU"
    if importlib.util.find_spec("pylibcudf") is None:
        return "pylibcudf is not installed: pip install 'fuseline[cuda13]'"
    return None


def backends_at_hand() -> tuple[str, ...]:
    """`cpu`, and `gpu` where there is one."""
    return ("cpu",) if missing_for_gpu() else ("cpu", "gpu")


def assert_same_as_duckdb(
    query: str,
    tables: Mapping[str, Any] | None = None,
    *,
    params: Params = None,
    setup: Sequence[str] = (),
    backend: str | None = None,
    connection: Any = None,
    ordered: bool | None = None,
    fuse: Sequence[str] = ("auto",),
) -> pa.Table:
    """Run `query` on DuckDB and on Fuseline; names, types, NULLs, values and order must be the same.

    `tables` maps names to Arrow tables, dictionaries of lists, or paths of Parquet files. `setup` holds
    statements that both run first. `backend` is one of `backends_at_hand()`, by default each in turn;
    `connection` is a Fuseline connection that already has the tables, and is used instead of new ones.
    `ordered=None` looks whether the query itself ends in an ORDER BY; `fuse` holds the values of that
    setting to run with. Every second query has tables and what operators give one another as slices of
    longer ones. Returns DuckDB's answer.
    """
    given = {name: _as_source(value) for name, value in (tables or {}).items()}
    expected = run_duckdb(query, given, params=params, setup=setup)
    order = ordering(query, expected.column_names) if ordered is None else Ordering(ordered)
    elsewhere = opens_elsewhere.get()
    sliced = slices.wanted(query) and not elsewhere
    with slices.from_operators(backends_at_hand()) if sliced else nullcontext():
        if connection is not None:
            actual = fuseline_answer(connection, query, params)
            _check(query, f"the {backend or 'given'} connection", expected, actual, order)
            return expected
        if sliced:
            given = {n: t if isinstance(t, Path) else slices.table(t) for n, t in given.items()}
        devices = ["cluster"] if elsewhere else [backend] if backend else backends_at_hand()
        for device, mode in product(devices, fuse):
            opened = elsewhere(given, mode) if elsewhere else connected(given, device, fuse=mode)
            with opened as fresh:
                for statement in setup:
                    fresh.execute(statement)
                actual = fuseline_answer(fresh, query, params)
            where = f"{device}, fuse {mode}" + ", over slices" * sliced
            _check(query, where, expected, actual, order)
    return expected


def assert_same(
    expected: pa.Table,
    actual: pa.Table,
    *,
    ordered: bool = False,
    what: str = "",
    tolerance: float = FLOAT_TOLERANCE,
    near: float = 1e-9,
) -> None:
    """Two runs of Fuseline gave the same schema, to the letter, and the same rows.

    Floats may differ by a share of `tolerance`, or by `near` whatever their size: sums in another order may
    cancel out.
    """
    assert actual.schema == expected.schema, what
    problem = difference(expected, actual, Ordering(ordered), tolerance=tolerance, near=near)
    assert problem is None, f"two runs differ: {problem}\n\n{what}"


def _check(query: str, where: str, expected: pa.Table, actual: pa.Table, order: Ordering) -> None:
    problem = difference(expected, actual, order)
    if problem:
        message = f"Fuseline on {where} and DuckDB differ: {problem}\n\n{query.strip()}\n\n"
        schemas = f"DuckDB: {_schema(expected)}\n  this: {_schema(actual)}"
        raise AssertionError(message + schemas)


@contextmanager
def connected(
    tables: Mapping[str, Any] | None = None, device: str = "cpu", **settings: Any
) -> Iterator[Any]:
    """A connection, by default to the CPU, that has the tables: Arrow's, dictionaries of lists, or paths of files."""
    import fuseline

    with fuseline.connect(device, **settings) as connection:
        for name, value in (tables or {}).items():
            source = _as_source(value)
            if isinstance(source, Path):
                connection.read_parquet(str(source), name)
            else:
                connection.register(name, source)
        yield connection


def run_duckdb(
    query: str,
    tables: Mapping[str, pa.Table | Path] | None = None,
    *,
    params: Params = None,
    setup: Sequence[str] = (),
) -> pa.Table:
    """DuckDB's answer as an Arrow table."""
    with connection_for(query, setup) as connection:
        for name, source in (tables or {}).items():
            if isinstance(source, Path):
                text = str(source).replace("'", "''")
                view = f"""create temp view "{name}" as from read_parquet('{text}')"""
                connection.execute(view)
            else:
                connection.register(name, source)
        for statement in setup:
            connection.execute(statement)
        return duckdb_answer(connection, query, params)


def duckdb_answer(connection: Any, query: str, params: Params = None) -> pa.Table:
    """DuckDB's answer with the names of its types, since HUGEINT and DECIMAL(38,0) are one type in Arrow."""
    found = connection.sql(query, params=params)
    table = found.to_arrow_table()
    for i, data_type in enumerate(found.types):
        if str(data_type) == "BIT":
            bits = pa.array(map(_bits, table.column(i).to_pylist()), pa.string())
            table = table.set_column(i, table.column_names[i], bits)
    return _with_types(table, found.types)


def _bits(stored: bytes | None) -> str | None:
    """BIT as the text that it is here; DuckDB's first byte says how many bits stand before the first one."""
    return None if stored is None else "".join(f"{b:08b}" for b in stored[1:])[stored[0] :]


def fuseline_answer(connection: Any, query: str, params: Params = None) -> pa.Table:
    return frame_answer(connection.sql(query, params))


def frame_answer(frame: Any) -> pa.Table:
    """The answer of a query that is bound, with the names of its types."""
    return _with_types(frame.to_arrow(), [c.type for c in frame.plan.columns])


def _with_types(table: pa.Table, types: Iterable[Any]) -> pa.Table:
    return table.replace_schema_metadata({"types": json.dumps([str(t) for t in types])})


def _as_source(value: Any) -> pa.Table | Path:
    if isinstance(value, str | Path):
        return Path(value)
    return pa.table(value) if isinstance(value, dict) else value


@dataclass(frozen=True)
class Ordering:
    """Whether rows must come in order, and the output columns that decide it, where they are known.

    With `keys`, rows that tie in all of them may come in any order. `keys=None` asks for the same row at
    every place.
    """

    ordered: bool
    keys: tuple[int, ...] | None = None


def ordering(query: str, names: Sequence[str]) -> Ordering:
    """What the outermost ORDER BY asks for, by DuckDB's own parser."""
    if "order" not in query.lower():  # most queries, of which it would tell within 0.8 ms
        return Ordering(ordered=False)
    with database().cursor() as cursor:
        found = cursor.execute("select json_serialize_sql(?)", [query]).fetchone()
    tree = json.loads(found[0]) if found else {"error": True}
    if tree["error"]:
        return Ordering(ordered=False)
    keys = sort_keys(tree, names)
    if not keys:
        return Ordering(ordered=False)
    return Ordering(True, None if None in keys else tuple(k for k in keys if k is not None))


# Comparing two tables


def difference(
    expected: pa.Table,
    actual: pa.Table,
    order: Ordering,
    *,
    exact_types: bool = True,
    tolerance: float | None = None,
    near: float = 0,
) -> str | None:
    """The first difference in a sentence, or None. Without `exact_types` only names and values count.

    `tolerance` is relative, for each float type its own unless it is given; floats no further apart than
    `near` are the same too, and with both zero they must be the same to the sign of zero.
    """
    if expected.column_names != actual.column_names:
        return f"the columns are {actual.column_names} and should be {expected.column_names}"
    if exact_types:
        for want, have in zip(expected.schema, actual.schema, strict=True):
            if _plain(want.type) != _plain(have.type):
                return f"column {want.name} is {have.type} and should be {want.type}"
        names = zip(expected.column_names, _types(expected), _types(actual), strict=False)
        for name, want, have in names:
            if want != have and {"HUGEINT", "BIT"} & {want, have}:
                return f"column {name} is {have} and should be {want}"
    if expected.num_rows != actual.num_rows:
        wrong = f"{actual.num_rows} rows and should be {expected.num_rows}"
        return f"{wrong}\n{_first_rows(rows(expected), rows(actual))}"
    close = _Closeness(expected.schema, exact_types, tolerance, near)
    loosely = exact_types and not tolerance == near == 0  # else to the sign of zero
    if loosely and identical(expected, actual, order.ordered, close.tolerances):
        return None
    if close.all_equal(want := rows(expected), have := rows(actual)):
        return None
    if order.ordered:
        if order.keys is None:
            return f"the rows in their order\n{close.first_difference(want, have)}"
        key_want, key_have = _take(want, order.keys), _take(have, order.keys)
        keys = _Closeness(expected.schema, exact_types, tolerance, near, order.keys)
        if not keys.all_equal(key_want, key_have):
            return f"the order of the sort keys\n{close.first_difference(want, have)}"
    want, have = sorted(want, key=close.sort_key), sorted(have, key=close.sort_key)
    if close.all_equal(want, have):
        return None
    return f"the rows, sorted here to compare them\n{close.first_difference(want, have)}"


def _types(table: pa.Table) -> list[str]:
    """The names of the types in SQL, if the table has them."""
    return json.loads((table.schema.metadata or {}).get(b"types", "[]"))


def rows(table: pa.Table) -> list[Row]:
    """The rows as tuples of Python values; dates and times that Python cannot hold as integers."""
    columns = [_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _values(column: pa.ChunkedArray) -> list[Any]:
    numbers = in_numbers(column.type)
    return (column if numbers == column.type else column.cast(numbers)).to_pylist()


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without what Arrow says about the layout of strings, and about zones, of which no moment depends."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")  # as ours leave, whatever the session's zone
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def _take(table: Iterable[Row], places: Sequence[int]) -> list[Row]:
    return [tuple(row[i] for i in places) for row in table]


class _Closeness:
    """Equality of rows: exact, but relative to a tolerance for floats; NaN equals NaN."""

    def __init__(
        self,
        schema: pa.Schema,
        exact_types: bool,
        tolerance: float | None,
        near: float,
        places: Sequence[int] | None = None,
    ) -> None:
        fields = list(schema) if places is None else [schema.field(i) for i in places]
        self.loose = not exact_types
        self.near = near
        self.tolerances = [self._tolerance(field.type, tolerance) for field in fields]
        # Floats last and rounded, so that two nearly equal rows land at the same place when sorted.
        self.sort_places = sorted(range(len(fields)), key=lambda i: self.tolerances[i] is not None)

    def _tolerance(self, kind: pa.DataType, tolerance: float | None) -> float | None:
        if pa.types.is_float32(kind) or pa.types.is_float16(kind):
            return FLOAT32_TOLERANCE if tolerance is None else tolerance
        if pa.types.is_float64(kind) or (self.loose and pa.types.is_decimal(kind)):
            return FLOAT_TOLERANCE if tolerance is None else tolerance
        return None

    def all_equal(self, want: Sequence[Row], have: Sequence[Row]) -> bool:
        return all(map(self.equal, want, have))

    def equal(self, want: Row, have: Row) -> bool:
        return all(map(self._same, want, have, self.tolerances))

    def _same(self, want: Any, have: Any, tolerance: float | None) -> bool:
        if tolerance is None or want is None or have is None:
            return bool(want == have) or repr(want) == repr(have)  # with NaN in a list
        want, have = float(want), float(have)
        if tolerance == self.near == 0:
            return repr(want) == repr(have)
        if math.isnan(want) or math.isnan(have):
            return math.isnan(want) and math.isnan(have)
        return math.isclose(want, have, rel_tol=tolerance, abs_tol=max(self.near, 1e-300))

    def sort_key(self, row: Row) -> Row:
        return tuple(self._sortable(row[i], self.tolerances[i]) for i in self.sort_places)

    @staticmethod
    def _sortable(value: Any, tolerance: float | None) -> tuple[Any, ...]:
        if value is None:
            return (2,)
        if tolerance is None:
            plain = isinstance(value, int | str | bytes) or hasattr(value, "as_tuple")
            return (0, value if plain else repr(value))
        number = float(value)
        return (1,) if math.isnan(number) else (0, float(f"{number:.6e}"), number)

    def first_difference(self, want: Sequence[Row], have: Sequence[Row]) -> str:
        place = next(
            i for i, (w, h) in enumerate(zip(want, have, strict=True)) if not self.equal(w, h)
        )
        shown = slice(place, place + ROWS_SHOWN)
        return f"from row {place} on\n{_first_rows(want[shown], have[shown])}"


def _first_rows(want: Sequence[Row], have: Sequence[Row]) -> str:
    lines = []
    for w, h in list(zip_longest(want, have))[:ROWS_SHOWN]:
        mark = " " if repr(w) == repr(h) else "!"
        lines += [f"{mark} wanted {_shown(w)}", f"{mark}  found {_shown(h)}"]
    return "\n".join(lines)


def _shown(row: Row | None) -> str:
    return "(no row)" if row is None else "(" + ", ".join(map(str, row)) + ")"


def _schema(table: pa.Table) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in table.schema)
