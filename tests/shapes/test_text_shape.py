"""Which texts share a shape, and where what stands at a place of one stands in another."""

from __future__ import annotations

import pytest

from fuseline.errors import Span
from fuseline.sql.parsing.text_shape import MOST_CHARACTERS, MOST_SLOTS, TextShape, text_shape


def shape(text: str, params: object = None) -> TextShape:
    found = text_shape(text, params)  # type: ignore[arg-type]
    assert found is not None
    return found


SAME = [
    ("select a from t where x > 24", "select a from t where x > 25"),
    ("select a from t where s = 'b'", "select a from t where s = 'it''s'"),
    ("select a from t where d < 1.50", "select a from t where d < 9.99"),
    ("select a from t", "select  a\nfrom t -- where"),
    ("select a from t where x=1", "select a from/* in */t where x = 2;"[:-1]),
]
DIFFERENT = [
    ("select a from t", "select A from t"),  # which is the column's name
    ('select "a" from t', "select a from t"),
    ("select a from t where x > 24", "select a from t where x > 2147483648"),
    ("select a from t where d < 1.5", "select a from t where d < 1.50"),
    ("select a from t where d < .5", "select a from t where d < 0.5"),
    ("select a from t where x > 1", "select a from t where x > '1'"),
    ("select a from t where s = e'a'", "select a from t where s = e'b'"),
    ("select a from t where s = $$a$$", "select a from t where s = $$b$$"),
    ("select a from t where x in (1, 2)", "select a from t where x in (1, 2, 3)"),
    ("select a from t where x < -1", "select a from t where x < - -1"),
    ("select a from t where x is true", "select a from t where x is false"),
]
NO_QUERIES = [
    "delete from t where a = 1",
    "select 1; select 2",
    "explain select 1",
    "select 'open",
    "",
    "-- nothing",
    "select '" + "a" * MOST_CHARACTERS + "'",
    f"select a from t where x in ({', '.join('1' * (MOST_SLOTS + 1))})",
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_constants_comments_and_white_space_make_no_difference(first: str, second: str) -> None:
    assert shape(first).key == shape(second).key


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_names_types_and_lengths_do(first: str, second: str) -> None:
    assert shape(first).key != shape(second).key


@pytest.mark.parametrize("text", NO_QUERIES)
def test_only_single_queries_of_a_moderate_length_have_a_shape(text: str) -> None:
    assert text_shape(text, None) is None


def test_parameters_are_told_apart_by_their_types() -> None:
    text = "select a from t where x > ?"
    assert shape(text, [1]).key == shape(text, [2]).key
    keys = {shape(text, [value]).key for value in (1, 1 << 40, 1.0, "1")}
    assert len(keys) == 4
    assert text_shape(text, [None]) is None
    assert text_shape(text, [True]) is None


@pytest.mark.parametrize("marked", ["s + 1", "cast( s as int )", "s", "'12'"])
def test_a_place_moves_with_its_tokens(marked: str) -> None:
    first = f"select x from t where s = '12' and {marked} > 100"
    second = f"select  x -- more\nfrom t\twhere s   = '345' and {marked.replace(' ', '  ')} > 7"
    start, end = (second.rindex(part) for part in (marked.split(maxsplit=1)[0], " > 7"))
    begin = first.rindex(marked)
    moved = shape(second).like(shape(first), Span(begin, begin + len(marked)))
    assert moved == Span(start, end)
