"""What workers of a cluster make of their rows of one column: the same form on all, with every value as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu.scan.encoded import with_dictionary
from fuseline.operators.cpu.table import to_logical, to_physical
from fuseline.plan import types as t
from fuseline.plan.types import DataType
from fuseline.storage.columns import agreement
from fuseline.storage.columns.agreement import REFUSED, ColumnForm, common_form, facts_of, in_form
from fuseline.storage.columns.encode import encode, with_order
from fuseline.storage.columns.encodings import Dictionary, EncodedColumn, Narrow, codes_of

SOME = list(range(700))


def _column(values: list[Any], data_type: DataType) -> EncodedColumn:
    array = to_physical(pa.array(values, t.to_arrow(data_type)), data_type)
    found = encode(with_dictionary(array), data_type)
    assert found is not None
    return with_order(found)


def _values(column: EncodedColumn) -> list[Any]:
    arrow = pa.string() if column.type == t.VARCHAR else t.to_arrow(column.type)
    found = column.encoding.decode(codes_of(column), arrow)
    return list(to_logical(found, column.type).to_pylist())


def _agreed(shares: list[list[Any]], data_type: DataType) -> list[EncodedColumn]:
    columns = [_column(values, data_type) for values in shares]
    told = [facts_of(column) for column in columns]
    made = []
    for rank, column in enumerate(columns):
        form = common_form(told, rank)
        assert form is not None
        made.append(in_form(column, form))
        assert in_form(made[-1], form) is made[-1]
    assert [_values(column) for column in made] == shares
    return made


def _kinds(columns: list[EncodedColumn]) -> set[tuple[Any, ...]]:
    """What kernels are made for, but for the base of a range."""
    return {
        (
            c.encoding.width,
            c.encoding.step,
            c.encoding.count(c.high),
            c.validity is None,
            c.ascending,
            c.clustered,
        )
        for c in columns
    }


@pytest.mark.parametrize(
    ("shares", "width", "step"),
    [
        ([[1, 2], [3, 70_000], [5]], 4, 1),
        ([[1, 2], [None, 2], []], 1, 1),
        ([[None], [], [None, None]], 1, 1),
        ([[0, 100_000], [300_000, 50_000], [200_000]], 1, 50_000),
        ([[0, 100_000], [300_007, 0], [7]], 4, 1),
        ([[10, 20, 30], [10, 250], [10, 255]], 1, 1),
        ([[-(2**63), 2**63 - 1], [0], [None]], 8, 1),
        ([[2**62], [2**62 + 5], [2**63 - 1]], 1, 1),
        ([[2**63 - 1], [2**63 - 1, 2**63 - 3], []], 1, 1),
    ],
)
def test_integers(shares: list[list[Any]], width: int, step: int) -> None:
    made = _agreed(shares, t.BIGINT)
    assert len(_kinds([column for column in made if column.rows])) == 1, made
    assert made[0].encoding.width == width
    assert made[0].encoding.step == step


def test_ranges_of_their_own_keep_their_base_and_have_one_span() -> None:
    made = _agreed([SOME, [1000, 5000], [9000, 9001]], t.INTEGER)
    assert [column.encoding for column in made] == [Narrow(base, 1, 2) for base in (0, 1000, 9000)]
    assert len(_kinds(made)) == 1


def test_an_order_holds_where_it_holds_on_all() -> None:
    assert {c.ascending for c in _agreed([SOME, [700, 800, 900], []], t.INTEGER) if c.rows} == {
        True
    }
    assert {c.ascending for c in _agreed([SOME, [900, 800]], t.INTEGER)} == {False}


@pytest.mark.parametrize(
    "shares",
    [
        [["b", "a", "b"], ["c", "c"], []],
        [["b", "a"], ["b", None], [None]],
        [["", "ä", "z", "\U0001f600"], ["Z", "z"], ["z"]],
        [[f"k{i}" for i in range(300)] * 2, ["k5", "m"], ["a"]],
    ],
)
def test_texts_have_one_dictionary(shares: list[list[Any]]) -> None:
    made = _agreed(shares, t.VARCHAR)
    assert len(_kinds(made)) == 1
    values = {id(column.encoding.values) for column in made}
    assert len(values) == 1
    (found,) = {tuple(c.encoding.values.to_pylist()) for c in made if c.encoding.values is not None}
    assert list(found) == sorted(
        {v for share in shares for v in share if v is not None}, key=str.encode
    )


def test_more_texts_than_the_bound_stay_apart_in_one_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "MOST_TEXTS", 300)
    shares = [[f"a{i}" for i in range(200)] * 2, [f"b{i}" for i in range(299)] * 2, ["c"]]
    made = _agreed(shares, t.VARCHAR)
    assert [len(c.encoding.values) for c in made if c.encoding.values is not None] == [200, 299, 1]
    assert {column.encoding.width for column in made} == {2}


def test_what_one_worker_cannot_encode_none_has() -> None:
    known = facts_of(_column(["a", "a"], t.VARCHAR))
    assert common_form([known, REFUSED], 0) == ColumnForm(refused=True)
    assert common_form([known, agreement.UNKNOWN], 0) is None


def test_a_dictionary_that_lies_elsewhere_is_another_one() -> None:
    made = _agreed([["a", "b"], ["b", "c"]], t.VARCHAR)[0].encoding
    assert isinstance(made, Dictionary)
    assert agreement.is_common(made.values)
    assert not agreement.is_common(pa.array(made.values.to_pylist()))
    assert not agreement.is_common(made.values[1:])


def test_floats_and_truths() -> None:
    assert len(_kinds(_agreed([[1.5, None], [2.5], []], t.DOUBLE))) == 1
    assert len(_kinds(_agreed([[True], [False, None], [True]], t.BOOLEAN))) == 1


def test_codes_of_null_are_0() -> None:
    for column in _agreed([[5, None, 9], [1, 300]], t.INTEGER):
        assert np.array_equal(
            column.codes[: column.rows] == 0, [v in (None, 1) for v in _values(column)]
        )
