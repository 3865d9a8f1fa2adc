"""Few rows that lie on the host for the GPU backend: their order is that of the operators, and nothing moves unasked."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fuseline.codegen.groups.results import Registers
from fuseline.errors import OutOfRange
from fuseline.observe.explain import analyzed
from fuseline.observe.profile import NodeProfile, Profile
from fuseline.operators.context import Context
from fuseline.operators.cpu.sort.sort import SortColumn, sorted_order as order_on_cpu
from fuseline.operators.cpu.table import to_physical
from fuseline.operators.gpu.memory.host_table import (
    MOST_ROWS,
    Arrays,
    HostColumns,
    ascending,
    concatenated,
    few_on_host,
    sorted_order,
)
from fuseline.plan import physical as p
from fuseline.plan.coercion import enum_of
from fuseline.plan.expr import new_column
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    NULL,
    TIMESTAMP,
    UBIGINT,
    VARCHAR,
    DataType,
    decimal,
    list_of,
    to_arrow,
)
from fuseline.stopping import Stop
from fuseline.storage.columns.cache import ColumnCache
from tests.limits import SetLimits

FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan]
VALUES: dict[DataType, list[Any]] = {
    BIGINT: [-(2**63), -1, 0, 1, 2**63 - 1], UBIGINT: [0, 1, 2**63, 2**64 - 1], BOOLEAN: [False, True], FLOAT: FLOATS,
    DOUBLE: FLOATS,
    DATE: [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)],
    TIMESTAMP: [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29)],
    VARCHAR: ["", "a", "A", "ab", "é", "z", "\U0001f600", "\uffff"],
    decimal(18, 2): [Decimal("-9999999999999999.99"), Decimal("0.00"), Decimal("0.01")],
    decimal(38, 0): [Decimal(-(10**38) + 1), Decimal(-1), Decimal(2**64), Decimal(10**38 - 1)],
    NULL: [],
}  # fmt: skip
DIRECTIONS = list(itertools.product((False, True), repeat=2))


def not_moved(arrays: Arrays) -> Mapping[int, Any]:
    raise AssertionError("the columns were sent to the device")


def columns_of(data: Mapping[DataType, int], rows: int) -> HostColumns:
    """Random columns of these types, some values NULL, by a seed each."""
    arrays = {}
    for data_type, seed in data.items():
        cells = random.Random(seed).choices([None, *VALUES[data_type]], k=rows)
        arrays[new_column("c", data_type)] = pa.array(cells, to_arrow(data_type))
    return HostColumns(arrays.items(), not_moved)


def assert_ordered(columns: HostColumns, flags: list[tuple[bool, bool]]) -> None:
    pairs = list(zip(columns.arrays, flags, strict=True))
    found = sorted_order(columns, [p.Order(column, *flag) for column, flag in pairs])
    wanted = [SortColumn(to_physical(columns.array(c), c.type), *flag) for c, flag in pairs]
    assert found.tolist() == order_on_cpu(wanted).tolist()


@pytest.mark.parametrize("flag", DIRECTIONS)
@pytest.mark.parametrize("rows", [0, 1, 2, 60])
@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_the_order_is_that_of_the_operators(
    data_type: DataType, rows: int, flag: tuple[bool, bool]
) -> None:
    assert_ordered(columns_of({data_type: 1}, rows), [flag])


@pytest.mark.parametrize("flags", list(itertools.product(DIRECTIONS, repeat=2)))
def test_keys_in_their_order(flags: tuple[tuple[bool, bool], ...]) -> None:
    types = {BOOLEAN: 1, VARCHAR: 2, DOUBLE: 3}
    assert_ordered(columns_of(types, 80), [*flags, (True, False)])


def test_as_many_rows_as_are_ordered_here() -> None:
    array = pa.array([None, *range(MOST_ROWS - 1)], pa.int64())
    assert_ordered(HostColumns({new_column("k", BIGINT): array}.items(), not_moved), [(True, True)])
    assert_ordered(
        HostColumns({new_column("k", BIGINT): array}.items(), not_moved), [(True, False)]
    )


def test_rows_leave_without_a_copy_to_the_device() -> None:
    k, v = new_column("k", VARCHAR), new_column("v", decimal(38, 2))
    keys, values = pa.array(["b", "a", None]), pa.array([Decimal("1.00"), None, Decimal("2.00")])
    values = values.cast(pa.decimal128(38, 2))
    columns = HostColumns({k: keys, v: values}.items(), not_moved)
    assert columns.take([2, 0]).to_arrow([v, k]).to_pydict() == {
        "v": [Decimal("2.00"), Decimal("1.00")],
        "k": [None, "b"],
    }
    other = new_column("other", VARCHAR)
    part = columns.take(slice(1, 3)).renamed([(other, k)])
    assert part.to_arrow([other]).to_pydict() == {"other": ["a", None]}
    assert list(columns) == [k.id, v.id]


def test_columns_move_together_and_once() -> None:
    k, v = new_column("k", BIGINT), new_column("v", BIGINT)
    moves = []

    def moved(arrays: Arrays) -> Mapping[int, Any]:
        moves.append(list(arrays))
        return {column.id: f"{column.name} on the device" for column in arrays}

    columns = HostColumns({k: pa.array([1]), v: pa.array([2])}.items(), moved)
    assert len(columns) == 2
    assert moves == []
    assert dict(columns) == {k.id: "k on the device", v.id: "v on the device"}
    assert moves == [[k, v]]


def test_what_was_done_on_the_host_is_noted() -> None:
    columns = columns_of({BIGINT: 1}, 4)
    (key,) = columns.arrays
    child = p.ValuesScan((key,), ())
    node = p.SortRows(child, (p.Order(key, False, False),), device="gpu")
    context = Context(ColumnCache(0), Stop().check, 1)
    assert few_on_host(node, columns, 4, context) is columns
    assert context.remarks == {id(node): "on the host: 4 rows"}
    assert few_on_host(child, columns, MOST_ROWS + 1, context) is None
    assert few_on_host(child, {}, 0, context) is None
    assert id(child) not in context.remarks
    profile = NodeProfile(node, 0, 0.001, 4, 32, remark=context.remarks[id(node)])
    assert profile.note == "on the host: 4 rows"
    assert "SortRows: on the host: 4 rows\n" in analyzed(Profile(lambda: (profile,), 0.001))


REGISTERS: dict[DataType, list[Any]] = {
    BIGINT: [-(2**63), -1, 0, 1, 2**63 - 1], BOOLEAN: [0, 1, 7], FLOAT: [*FLOATS, 1e-50, 0.1], DOUBLE: FLOATS,
    DATE: [-719162, -1, 0, 2932896], TIMESTAMP: [-1, 0, 1709164800000000], VARCHAR: [0, 1, 2],
    decimal(18, 2): [-999999999999999999, 0, 1], decimal(38, 4): [-(2**63), 0, 2**63 - 1],
}  # fmt: skip
WORDS = pa.array(["", "a", "\U0001f600"])


def registers(data_type: DataType, rows: int, nulls: bool) -> Registers:
    random_ = random.Random(7)
    cells = random_.choices(REGISTERS[data_type], k=rows)
    values = np.array(cells, np.float64 if data_type.is_float else np.int64)
    valid = np.array(random_.choices([True, False], k=rows), np.bool_) if nulls else None
    return Registers(values, valid, data_type, WORDS if data_type is VARCHAR else None)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 50, 300])
@pytest.mark.parametrize("data_type", REGISTERS, ids=str)
def test_registers_are_what_their_arrays_are(data_type: DataType, rows: int, nulls: bool) -> None:
    column, other = new_column("c", data_type), new_column("d", data_type)
    lying = registers(data_type, rows, nulls)
    array = lying.array()
    array.validate(full=True)
    assert array.type == to_arrow(data_type)
    assert array.null_count == (0 if lying.valid is None else int((~lying.valid).sum()))
    held = HostColumns({column: lying}.items(), not_moved)
    plain = HostColumns({column: array}.items(), not_moved)
    for flag in DIRECTIONS:
        order = p.Order(column, *flag)
        assert sorted_order(held, [order]).tolist() == sorted_order(plain, [order]).tolist()
        first = sorted_order(held, [order], 3)
        assert first.tolist() == sorted_order(plain, [order], 3).tolist()
        assert_equal(held.take(first).array(column), plain.take(first).array(column))
    part = held.renamed([(other, column)]).take(slice(1, 21))
    assert_equal(part.array(other), array.slice(1, 20))
    assert_equal(part.to_arrow([other]).column(0).combine_chunks(), array.slice(1, 20))


NUMBERS: list[tuple[DataType, list[Any]]] = [
    (BIGINT, [3, -5, 2**62]), (DATE, [1, 0, -40]), (decimal(38, 2), [12, 7, -(2**60)]), (UBIGINT, [1, 0, 2**62]), (BOOLEAN, [1, 0, 1]),
    (DOUBLE, [1.5, math.nan, -0.0]), (FLOAT, [1.5, 2.5, -3.0]), (DOUBLE, [3, 4, 5]),
]  # fmt: skip


@pytest.mark.parametrize(("data_type", "values"), NUMBERS)
@pytest.mark.parametrize("valid", [None, [True, False, True], [False, False, False], [True] * 3])
def test_registers_are_encoded_as_their_arrays_are(
    data_type: DataType, values: list[Any], valid: list[bool] | None
) -> None:
    column, mask = new_column("c", data_type), None if valid is None else np.array(valid)
    registers = Registers(np.array(values), mask, data_type)
    found, expected = (
        HostColumns({column: held}.items(), unmoved).encoded(column)
        for held in (registers, registers.array())
    )
    assert found is not None
    assert expected is not None
    assert (found.encoding, found.rows, found.nulls) == (expected.encoding, 3, expected.nulls)
    assert (found.low, found.high, found.type) == (expected.low, expected.high, data_type)
    assert found.codes.tobytes() == expected.codes.tobytes()
    assert (found.validity is None) == (valid is None or all(valid))
    assert found.validity is None or found.validity.tolist() == expected.validity.tolist()


def test_all_texts_on_the_host_are_encoded_however_many_differ() -> None:
    column, texts = new_column("c", VARCHAR), [None, *(f"{i:05}" for i in range(9_999))]
    for held in (pa.array(texts), Registers(np.arange(-1, 9_999), np.arange(10_000) > 0, VARCHAR, pa.array(texts[1:]))):  # fmt: skip
        found = HostColumns({column: held}.items(), unmoved).encoded(column)
        assert found is not None
        assert (found.nulls, found.encoding.width, found.encoding.count(None)) == (1, 2, 9_999)
        assert found.codes.tolist() == [0, *range(9_999)]


def unmoved(arrays: Arrays) -> Mapping[int, Any]:
    raise AssertionError("nothing is to be moved")


def assert_equal(one: pa.Array, other: pa.Array) -> None:
    """NaN equals itself; -0.0 is not 0.0."""
    assert one.type == other.type
    assert list(map(repr, one.to_pylist())) == list(map(repr, other.to_pylist()))


def test_sums_beyond_38_digits_are_found_at_once() -> None:
    from fuseline.codegen.groups.results import arrow_array

    big = np.array([10**38 - 1, -(10**38) + 1, 10**38], object)
    wide = decimal(38, 0)
    assert arrow_array(big[:2], None, wide, None).to_pylist() == [
        Decimal(10**38 - 1),
        Decimal(-(10**38) + 1),
    ]
    with pytest.raises(OutOfRange):
        arrow_array(big, None, wide, None)
    there = np.array([True, True, False])
    assert arrow_array(big, there, wide, None).null_count == 1


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_packed_keys_order_as_keys_do(rows: int) -> None:
    generator = np.random.default_rng(rows)
    spreads = [(0, 3), (-5, 5), (2**40, 2**40 + 9)], [(-(2**62), 2**62), (0, 9)], [(7, 8)]
    for spread in spreads:
        keys = [generator.integers(low, high, rows) for low, high in spread]
        kept = [k.copy() for k in keys]
        assert ascending(keys).tolist() == np.lexsort(keys[::-1]).tolist()
        assert all(map(np.array_equal, keys, kept))


@pytest.mark.parametrize("lead", [3, 1 << 16, 1 << 20])
@pytest.mark.parametrize("broken", [None, 1, 2])
def test_keys_that_are_in_order_behind_the_first(lead: int, broken: int | None) -> None:
    generator = np.random.default_rng(lead)
    numbers = np.sort(generator.integers(0, 600, 300))
    keys = [generator.integers(-lead // 2, lead - lead // 2, 300), numbers // 20, numbers % 20]
    keys[0][:2] = -lead // 2, lead - lead // 2 - 1
    if broken is not None:
        keys[broken][[50, 250]] = keys[broken][[250, 50]]
    for given in (keys, keys[:2], keys[:1]):
        assert ascending(given).tolist() == np.lexsort(given[::-1]).tolist()


def as_in_registers(columns: HostColumns) -> HostColumns:
    """The same columns, numbers of 64 bits and texts as in registers; what lies under a NULL is no value."""
    found: dict[Any, Any] = {}
    for column, array in columns.arrays.items():
        found[column] = array
        valid = np.asarray(array.is_valid()) if array.null_count else None
        if column.type == VARCHAR:
            values = array.unique().drop_null().sort()
            codes = np.array(
                [1 << 40 if i is None else i for i in pc.index_in(array, values).to_pylist()],
                np.int64,
            )
            found[column] = Registers(codes, valid, VARCHAR, values)
        elif column.type in (BIGINT, DATE):
            bits = array.cast(pa.int32()) if column.type == DATE else array
            values = np.asarray(bits.fill_null(-7), np.int64)
            found[column] = Registers(values, valid, column.type)
    return HostColumns(found.items(), not_moved)


@pytest.mark.parametrize("most", [0, 256])
@pytest.mark.parametrize("lies", list(itertools.product((False, True), repeat=2)))
def test_tables_one_below_the_other(lies: tuple[bool, bool], most: int, limits: SetLimits) -> None:
    """Arrays become registers where they are beside these, wide numbers where all fit."""
    limits(host_table__NUMBERED_TEXTS=most)
    types = [BIGINT, VARCHAR, DATE, BOOLEAN, decimal(38, 0), decimal(18, 2)]
    parts = [columns_of(dict.fromkeys(types, seed), 3 + seed) for seed in range(3)]
    made = [new_column("made", kind) for kind in types]
    wanted = [pa.concat_arrays([list(p.arrays.values())[i] for p in parts]) for i in range(6)]
    held = [as_in_registers(p) if lies[n % 2] else p for n, p in enumerate(parts)]
    found = dict(concatenated(held, [list(p.arrays) for p in parts], made))
    arrays = HostColumns(found.items(), not_moved).arrays
    assert [arrays[column] for column in made] == wanted
    kept = [isinstance(found[column], Registers) for column in made]
    assert kept == [True, most > 0, True, True, False, True]


def test_texts_of_a_part_may_be_none_at_all() -> None:
    """As of a source without rows, or with NULLs alone, whose codes name nothing."""
    column = new_column("c", VARCHAR)
    arrays = [pa.array(values, pa.string()) for values in (["b", "a"], [], [None], ["c", None])]
    parts = [as_in_registers(HostColumns([(column, array)], not_moved)) for array in arrays]
    for some in ((0, 1, 2, 3), (1, 2, 3), (2, 1, 0), (1, 2)):
        held = [parts[number] for number in some]
        ((_, found),) = concatenated(held, [[column]] * len(some), [column])
        assert isinstance(found, Registers)
        wanted = [value for number in some for value in arrays[number].to_pylist()]
        assert HostColumns([(column, found)], not_moved).arrays[column].to_pylist() == wanted


def test_types_that_have_no_registers_or_values_of_their_own_stay_arrays() -> None:
    colours = enum_of(["b", "a"])
    for kind, values in ((colours, ["a", None, "b"]), (list_of(BIGINT), [[1], None, []])):
        column, array = new_column("c", kind), pa.array(values, to_arrow(kind))
        part = HostColumns([(column, array)], not_moved)
        ((_, found),) = concatenated([part, part], [[column]] * 2, [column])
        assert isinstance(found, pa.Array)
        assert found.to_pylist() == values * 2


def test_constants_beside_codes_stay_codes() -> None:
    """As the rows of a ROLLUP do, which have NULL for a key, and those of several sources with a name each."""
    column, texts = new_column("c", VARCHAR), pa.array(["a", "c"])
    codes = Registers(np.array([1, 0, 1]), None, VARCHAR, texts)
    none = Registers(np.zeros(2, np.int64), np.zeros(2, np.bool_), VARCHAR, pa.array([""]))
    name = Registers(np.zeros(2, np.int64), None, VARCHAR, pa.array(["b"]))
    parts = [HostColumns([(column, held)], not_moved) for held in (codes, none, name, codes)]
    ((_, found),) = concatenated(parts, [[column]] * 4, [column])
    assert isinstance(found, Registers)
    assert found.array().to_pylist() == ["c", "a", "c", None, None, "b", "b", "c", "a", "c"]
