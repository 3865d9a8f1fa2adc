"""Strings by buckets, against one call of Arrow: numbers, places and orders."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fuseline.operators.cpu.memory import chunks
from fuseline.operators.cpu.sort import number_rows, ordering, text_hashes, text_order
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


@pytest.fixture(autouse=True, params=[False, True], ids=["without kernels", "kernels"])
def small_buckets(limits: SetLimits, request: pytest.FixtureRequest) -> None:
    for kernels in text_hashes.HASHING.values():
        kernels.started().result()
    few = 0 if request.param else 1 << 62
    limits(TEXTS_AT_ONCE=50, BUCKET_ROWS=50, FEW_HASHED=few, text_hashes__AT_ONCE=7)


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


def test_rows_of_other_text_than_their_first_row() -> None:
    """They differ in length, or in the first, a middle or the last byte."""
    first = "a text of more than three words, of which the last is none"
    texts = [first, first, "b" + first[1:], first[:30] + "X" + first[31:], first[:-1] + "X", first + "!", "short", "shorT", ""]  # fmt: skip
    strings = pa.array(["in front", *texts * 9, "behind"]).slice(1, len(texts) * 9)
    codes = np.zeros(len(strings), np.int64)
    codes[6 :: len(texts)] = codes[7 :: len(texts)] = 1
    codes[8 :: len(texts)] = 2
    found = text_hashes.others(strings, codes, np.array([0, 6, 8]))
    assert [texts[row % len(texts)] for row in found] == [*texts[2:6], "shorT"] * 9


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


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()], ids=str)
def test_kernels_have_the_hashes_of_numpy(data_type: pa.DataType, limits: SetLimits) -> None:
    """Of strings shorter than a word, of words and more, and at the end of the buffer."""
    strings = pa.array(
        ["a long beginning", *("x" * n + "é" * (n % 3) for n in range(40))], data_type
    )
    for some in (strings, strings.slice(3, 20), strings.slice(1, 0)):
        found = text_hashes.hashes_of(some)
        limits(FEW_HASHED=1 << 62)
        assert text_hashes.hashes_of(some).tolist() == found.tolist()
        limits(FEW_HASHED=0)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_different_strings_of_one_hash_get_numbers_of_their_own(share: float) -> None:
    """The hash reads the first, the last and the middle bytes; of many alike, strings are numbered whole."""
    alike = [f"{'a' * 20}{n % 97:03}{'b' * 40}" if DRAW.random() < share else f"{n % 500}" for n in range(2000)]  # fmt: skip
    strings = pa.array(alike)
    hashes = text_hashes.hashes_of(strings)
    assert len(np.unique(hashes)) < len(set(alike))
    assert (text_order._numbered_by_hash(strings, hashes) is None) is (share == 1.0)
    codes, values = text_order.numbered(strings)
    assert len(values) == len(values.unique()) == len(set(alike))
    assert values.take(pa.array(codes)).equals(strings)
