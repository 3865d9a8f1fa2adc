"""Strings by buckets, against one call of Arrow: numbers, places and orders."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fuseline.operators.cpu.memory import chunks
from fuseline.operators.cpu.sort import number_rows, ordering, text_order
from fuseline.operators.cpu.sort.sort import SortColumn, first_rows, sorted_order
from tests.limits import SetLimits

DRAW = random.Random(5)
LETTERS = ["", "a", "b", "\0", "\x7f", "é", "日", "𝒳", "ab", "key of "]
SHAPES = {
    "any": lambda n: "".join(DRAW.choices(LETTERS, k=DRAW.randrange(12))),
    "prefix": lambda n: f"a long beginning that all have in common {DRAW.randrange(9999)}",
    "few": lambda n: DRAW.choice(["Oslo", "Rome", ""]),
    "few, then many": lambda n: "x" if n < 400 else f"{n}",
    "zeros": lambda n: "ab" + "\0" * DRAW.randrange(30),
    "two beginnings": lambda n: DRAW.choice(["alpha", "beta"]) * 9 + str(n),
    "numbers": str,
}


@pytest.fixture(autouse=True)
def small_buckets(limits: SetLimits) -> None:
    limits(TEXTS_AT_ONCE=50, BUCKET_ROWS=50)


def strings_of(shape: str, data_type: pa.DataType, share_null: float = 0.0) -> pa.Array:
    values = [None if DRAW.random() < share_null else SHAPES[shape](n) for n in range(2000)]
    return pa.array(["in front", *values, "behind"], data_type).slice(1, len(values))


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share_null", [0.0, 0.1])
def test_numbers_places_and_orders(shape: str, data_type: pa.DataType, share_null: float) -> None:
    strings = strings_of(shape, data_type, share_null)
    codes, values = text_order.numbered(strings)
    assert values.null_count == 0
    assert len(values) == len(values.unique())
    known = np.asarray(strings.is_valid())
    assert pc.all(pc.equal(values.take(pa.array(codes[known])), strings.filter(known))).as_py()

    some = values.slice(0, len(values) // 2 + 1)
    found = text_order.places(strings, some)
    assert found.tolist() == pc.index_in(strings, value_set=some).fill_null(-1).to_pylist()

    order = text_order.sorted_rows(values)
    assert values.take(pa.array(order)).to_pylist() == sorted(values.to_pylist(), key=str.encode)


@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_first_rows_are_those_of_the_whole_order(
    shape: str, descending: bool, nulls_first: bool
) -> None:
    numbers = pa.array([DRAW.randrange(3) for _ in range(2000)])
    for share_null in (0.0, 0.02, 1.0):
        strings = strings_of(shape, pa.string(), share_null)
        keys = [SortColumn(strings, descending, nulls_first), SortColumn(numbers)]
        assert first_rows(keys, 60).tolist() == sorted_order(keys)[:60].tolist()


def test_a_stop_is_heard_between_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr("fuseline.stopping.check", lambda: looked.append(1))
    for module in (chunks, ordering, number_rows):
        monkeypatch.setattr(module, "CHUNK_ROWS", 50)
    monkeypatch.setattr(chunks, "usable_cores", lambda: 1)
    strings = strings_of("numbers", pa.string())
    for work in (text_order.numbered, text_order.sorted_rows):
        looked.clear()
        work(strings)
        assert len(looked) >= 2000 // 50


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_different_strings_of_one_hash_get_numbers_of_their_own(share: float) -> None:
    """The hash reads the first, the last and the middle bytes; of many alike, strings are numbered whole."""
    alike = [f"{'a' * 20}{n % 97:03}{'b' * 40}" if DRAW.random() < share else f"{n % 500}" for n in range(2000)]  # fmt: skip
    strings = pa.array(alike)
    hashes = text_order._hashes(strings)
    assert len(np.unique(hashes)) < len(set(alike))
    assert (text_order._numbered_by_hash(strings, hashes) is None) is (share == 1.0)
    codes, values = text_order.numbered(strings)
    assert len(values) == len(values.unique()) == len(set(alike))
    assert values.take(pa.array(codes)).equals(strings)
