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
def test_lists_of_paths() -> None:
    lists = ("['$.id', '$.who.tags', '$.none']", "['id']", "['$[1]', '$.price']", "['$[#-1]', '$[0]', '']")  # fmt: skip
    calls = [
        f"{function}(d, {paths})"
        for function in FUNCTIONS[:3]
        for paths in lists
        if "*" not in paths
    ]
    query = f"select {', '.join(f'{call} as x{n}' for n, call in enumerate(calls))} from t"
    for documents in (ORDERS * 3, [None] * 3, []):
        tables = {"t": pa.table({"d": pa.array(documents, pa.string()).slice(1)})}
        assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


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


STRUCTURES = [
    '{"id": "BIGINT", "who": {"name": "VARCHAR", "tags": ["VARCHAR"]}, "price": "DOUBLE"}',
    '{"id": "INTEGER", "price": "DECIMAL(9,2)", "who": "VARCHAR", "none": "DATE"}',
    '{"price": "VARCHAR", "id": "BOOLEAN", "who": {"tags": "BIGINT"}}',
    '{"id": "TIMESTAMP", "price": "HUGEINT", "who": ["JSON"]}',
    '["DOUBLE"]',
    '"VARCHAR"',
]
ROWS = [
    *ORDERS,
    '{"id": "17", "price": "2.5", "who": "\\u00e9 \\"x\\" \\\\"}',
    '{"id": true, "price": 0.10, "who": {"name": "a", "tags": ["b", 1, null, {"c": 2}]}}',
    '{"id": 12345678901234567890, "price": 0.1234567890123456789, "none": "2024-02-29"}',
    '{"id": "2024-01-01 10:00:00", "price": 1e-7, "who": null}',
    '{"id": -0, "price": -0.0, "none": 3}',
    '{ "id" : 1 , "price" : 1.50 , "who" : { "name" : "n" , "tags" : [ ] } }  ',
    '{"\\u0069d": 5, "id": 6}',
    "[1.5, 2, \"3\", true, null, [4], 1e3, 123456789012345678901]",
    "null",
    "true",
    "  7 ",
]  # fmt: skip


@pytest.mark.by_day(2)
@pytest.mark.usefixtures("scanned")
@pytest.mark.parametrize("structure", STRUCTURES)
def test_documents_as_structs(structure: str) -> None:
    query = f"select json_transform(d, '{structure}') as x, typeof(from_json(d, '{structure}')) as y from t"
    tables = {"t": {"d": ROWS * 2}}
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


@pytest.mark.usefixtures("scanned")
def test_documents_that_have_the_fields_of_a_struct() -> None:
    texts = [f'{{"a": {i}, "b": "{i % 3}", "c": [{i}, null]}}' for i in range(50)]
    tables = {"t": {"d": [*texts, None, "null"]}}
    query = 'select d::json::struct(a int, b varchar, c double[]) as x, json_transform_strict(d, \'{"a": "INT"}\') as y from t'
    assert_same_as_duckdb(query, tables, backend="cpu")


@pytest.mark.usefixtures("scanned")
@pytest.mark.parametrize("text", ['{"b": 1}', '{"a": "x"}', '{"a": 1, "a": 2}', '{"a": [1]}', "[1]", '{"a": 1.5, "b": 2}', '{"a": 1'])  # fmt: skip
def test_documents_that_have_not_the_fields_of_a_struct(text: str) -> None:
    with connected({"t": {"d": ['{"a": 2}', text]}}) as connection:
        for query in ("d::json::struct(a int)", 'json_transform_strict(d, \'{"a": "DATE"}\')'):
            with pytest.raises(ConversionError):
                connection.sql(f"select {query} from t").fetchall()


def test_random_documents_are_made_values_as_python_makes_them(limits: SetLimits) -> None:
    writer = Writer(SEED)
    tables = {"t": {"d": [None, *(writer.value() for _ in range(400))]}}
    kinds = ("BIGINT", "UTINYINT", "DOUBLE", "FLOAT", "DECIMAL(9,3)", "HUGEINT", "BOOLEAN", "VARCHAR", "DATE", "TIME")  # fmt: skip
    structures = [f'{{"a": "{kind}", "b": ["{kind}"], "": "{kind}"}}' for kind in kinds]
    calls = ", ".join(
        f"json_transform(d, '{text}')"
        for text in [*structures, '{"a": {"a": "DOUBLE", "b": [{"a": "VARCHAR"}]}}']
        + [f'["{kind}"]' for kind in kinds]
    )
    answers = []
    for few in (1 << 30, -1):
        limits(FEW_DOCUMENTS=few, WAITED_FOR=0)
        with connected(tables) as connection:
            answers.append(fuseline_answer(connection, f"select {calls} from t"))
    assert_same(*answers, ordered=True)
