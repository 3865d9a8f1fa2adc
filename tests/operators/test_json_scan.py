"""Documents that kernels read where they lie: what Python reads, and the same errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fuseline.errors import ConversionError
from tests.compare import assert_same, assert_same_as_duckdb, connected, fuseline_answer
from tests.limits import SetLimits
from tests.operators.test_json_random import SEED, Writer

PATHS = ["$", "$.a", "$[0]", "$.a.b", "$[1].a", '$."a b"', "$.é", "$[0][0]", '$.""', "$.a[2]", "$[-1]", "$.*"]  # fmt: skip
FUNCTIONS = ("json_extract", "json_extract_string", "json_value", "json_exists")
CALLS = ", ".join(f"{function}(d, '{path}')" for function in FUNCTIONS for path in PATHS)
ORDERS = [
    '{"id": 7, "who": {"name": "Eve", "tags": ["x", "y"]}, "price": 2.50, "id": 8}',
    '{"id": -1.25,"who":{"name":null,"tags":[]},"price":{"a":1,"b":[2,"}"]}}',
    '{"who": {"tags": ["\\u00e9", {"q\\"": 1}], "name": "line\\nbreak"}, "id": 1e3}',
    "[1, 2]",
    None,
    '"id"',
    "{}",
]


@pytest.fixture
def scanned(limits: SetLimits) -> SetLimits:
    limits(FEW_DOCUMENTS=-1, WAITED_FOR=0)
    return limits


def test_random_documents_are_read_as_python_reads_them(limits: SetLimits) -> None:
    writer = Writer(SEED)
    tables = {"t": {"d": [None, *(writer.value() for _ in range(400))]}}
    answers = []
    for few in (1 << 30, -1):
        limits(FEW_DOCUMENTS=few, WAITED_FOR=0)
        with connected(tables) as connection:
            answers.append(fuseline_answer(connection, f"select d, {CALLS} from t"))
    assert_same(*answers, ordered=True)


@pytest.mark.usefixtures("scanned")
def test_values_of_orders() -> None:
    query = """select d->'id' as a, d->>'$.id' as b, (d->>'price')::varchar as c, d->'$.who.tags' as d, d->>'$.who.tags[0]' as e,
        d->>'$.who.name' as f, json_extract(d, 1) as g, json_value(d, '$.price') as h from t"""
    assert_same_as_duckdb(query, {"t": {"d": ORDERS * 3}}, backend="cpu", fuse=("always", "never"))


@pytest.mark.usefixtures("scanned")
@pytest.mark.parametrize("text", ['{"a": 1', '{"a": 1]', "[1 2]", '{"a" 1}', "01", "tru", "", "[1]]", '{"b": [}, "a": 1}'])  # fmt: skip
def test_what_is_no_json_is_an_error_wherever_the_path_leads(text: str) -> None:
    tables = {"t": {"d": ['{"a": 2}', text]}}
    with connected(tables) as connection, pytest.raises(ConversionError, match="JSON"):
        connection.sql("select d->>'$.a' from t").fetchall()


@pytest.mark.usefixtures("scanned")
def test_deep_documents() -> None:
    deep = "[" * 70 + "1" + "]" * 70
    tables = {"t": {"d": [deep, f'{{"a":{deep},"b":2}}', "[" * 30 + "]" * 30]}}
    assert_same_as_duckdb("select d->'$[0][0]' as x, d->>'b' as y from t", tables, backend="cpu")


@pytest.mark.usefixtures("scanned")
def test_texts_with_offsets_of_64_bits() -> None:
    documents = pa.array(ORDERS, pa.large_string()).slice(1)
    query = "select d->>'id' as x, d->'$.who.tags' as y from t"
    assert_same_as_duckdb(query, {"t": pa.table({"d": documents})}, backend="cpu")


@pytest.mark.usefixtures("scanned")
def test_a_cast_of_texts_that_come_many_times_is_read_by_all_functions() -> None:
    """Arrow keeps such texts once, and few of its functions, and none of the kernels, take them so."""
    texts = pa.table({"d": [f'"ab{i % 50}"' if i % 7 else None for i in range(4000)]})
    calls = ["{0} ->> '$'", "substring({0}, 2, 3)", "left({0}, 3)", "lpad({0}, 12, '*')", "trim({0}, '\"')", "instr({0}, 'b')", "unicode({0}::varchar)",
             "{0}::varchar in ('\"ab1\"', 'x')", "repeat({0}::varchar, 2)", "try_cast({0}::varchar as integer)", "string_split({0}::varchar, 'b')"]  # fmt: skip
    items = ", ".join(f"{call.format('(d::json)')} as x{i}" for i, call in enumerate(calls))
    assert_same_as_duckdb(
        f"select {items} from t", {"t": texts}, backend="cpu", fuse=("always", "never")
    )
