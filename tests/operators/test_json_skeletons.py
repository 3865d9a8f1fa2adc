"""Functions of documents that are computed once for all that are alike but for their strings and numbers: what Python finds in each, and the same errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fuseline.errors import ConversionError
from tests.compare import assert_same, assert_same_as_duckdb, connected, fuseline_answer
from tests.limits import SetLimits
from tests.operators.test_json_random import SEED, Writer
from tests.operators.test_json_scan import ROWS

FUNCTIONS = ("json_type", "json_keys", "json_array_length", "json_exists")
PATHS = (
    "",
    ", '$.id'",
    ", '$.who.tags'",
    ", '$[1]'",
    ", 'who'",
    ", '$.*'",
    ", ['$.id', '$.price']",
)
CALLS = [f"{function}(d{path})" for function in FUNCTIONS for path in PATHS if (function, path) != ("json_exists", "")]  # fmt: skip
CALLS += ["json_structure(d)", "json_valid(d)", "d::json", "try_cast(d as json)"]
MORE = [
    '{"big": 123456789012345678901234567890, "id": -9223372036854775809, "price": 18446744073709551615}',
    '{"id": [1, -1], "price": [1.5, -2], "who": [-1, 2.0, null]}',
    '{"id": [1, "a"], "price": [[], [1]], "who": [{}, {"a": 1}, {"b": "é"}]}',
    '{"é \\u00e9\\n": 1, "": {"a\\"b": []}, "a b" : [ ] }',
    '"\\ud83d\\ude00"',
    '""',
    "-1",
    "1e5",
    "-0",
    "-0.0",
    "{}",
    "[[], {}]",
]


@pytest.fixture
def scanned(limits: SetLimits) -> SetLimits:
    limits(FEW_DOCUMENTS=-1, WAITED_FOR=0)
    return limits


def items(calls: list[str]) -> str:
    return ", ".join(f"{call} as x{place}" for place, call in enumerate(calls))


@pytest.mark.usefixtures("scanned")
def test_documents_of_many_kinds() -> None:
    tables = {"t": {"d": [*ROWS, *MORE, None] * 2}}
    query = f"select {items(CALLS)} from t"
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


@pytest.mark.usefixtures("scanned")
@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_that_arrow_keeps_otherwise(kind: pa.DataType) -> None:
    tables = {"t": pa.table({"d": pa.array([*ROWS, None, *MORE]).cast(kind).slice(2)})}
    assert_same_as_duckdb(f"select {items(CALLS)} from t", tables, backend="cpu")


def test_many_documents_with_values_of_their_own() -> None:
    texts = [f'{{"id": {i}, "tags": [{", ".join(["1.5"] * (i % 4))}], "n{i % 7}": "{i}"}}' for i in range(50_000)]  # fmt: skip
    query = f"select {items([c for c in CALLS if 'id' not in c])} from t"
    assert_same_as_duckdb(query, {"t": pa.table({"d": texts})}, backend="cpu")


def test_random_documents_are_read_as_python_reads_them(limits: SetLimits) -> None:
    writer = Writer(SEED)
    tables = {"t": {"d": [None, *(writer.value() for _ in range(400))]}}
    answers = []
    for few in (1 << 30, -1):
        limits(FEW_DOCUMENTS=few, WAITED_FOR=0)
        with connected(tables) as connection:
            answers.append(fuseline_answer(connection, f"select {items(CALLS)} from t"))
    assert_same(*answers, ordered=True)


@pytest.mark.usefixtures("scanned")
@pytest.mark.parametrize("text", ['{"a": 1', '{"a": 1]', "[1 2]", '{"a" 1}', "01", "tru", "", "[1]]", '{"b": [}, "a": 1}', "{,}", '["\n"]', "1 2", ",", "[1,,2]"])  # fmt: skip
def test_what_is_no_json_is_an_error(text: str) -> None:
    with connected({"t": {"d": ['{"a": 2}', text]}}) as connection:
        assert connection.sql("select json_valid(d), try_cast(d as json) is null from t").fetchall() == [(True, False), (False, True)]  # fmt: skip
        for call in ("json_type(d)", "json_keys(d, '$.a')", "json_structure(d)", "d::json"):
            with pytest.raises(ConversionError, match="Malformed JSON"):
                connection.sql(f"select {call} from t").fetchall()
