"""Random values of JSON, as texts with blanks, escapes and odd numbers, and random paths into them: DuckDB's answers."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator

import pytest

from fuseline.errors import FuselineError
from tests.compare import Ordering, assert_same_as_duckdb, connected, difference, fuseline_answer
from tests.duckdb_functions import Comparison

SEED = int(os.environ.get("FUSELINE_SEED", "20260214"))
DOCUMENTS = int(os.environ.get("FUSELINE_RANDOM", "250"))
KEYS = ["a", "b", "c", "a b", "é", "", "0", 'q"', "a.b", "A"]
NUMBERS = [
    "0", "-0", "1", "-1", "1.50", "-0.0", "1e5", "1E-7", "1e22", "0.1e1", "1e400", "2147483648", "-9223372036854775808",
    "9223372036854775807", "18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "0.30000000000000004",
    "12345678901234567890.123", "1e16", "123456789.125", "5e-324", "1.7976931348623157e308",
]  # fmt: skip
TEXTS = [
    "",
    "x",
    "é😀",
    'q"\\',
    "a\nb\t",
    "\u0001\u001f",
    "null",
    "1",
    "2020-01-01",
    "true",
    "\u007f",
    "/",
]


class Writer:
    """Random values as texts; each draw is that of a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def blank(self) -> str:
        return self.draw.choice(["", "", "", " ", "\n", " \t"])

    def text(self, value: str) -> str:
        return json.dumps(value, ensure_ascii=self.draw.random() < 0.5)

    def value(self, depth: int = 0) -> str:
        kind = self.draw.random()
        if depth > 3 or kind < 0.5:
            simple = [*self.draw.sample(NUMBERS, 3), "null", "true", "false"]
            return self.draw.choice([*simple, self.text(self.draw.choice(TEXTS))])
        parts = []
        for _ in range(self.draw.randrange(4)):
            part = self.blank() + self.value(depth + 1) + self.blank()
            if kind < 0.8:
                key = self.text(self.draw.choice(KEYS))
                part = f"{self.blank()}{key}{self.blank()}:{part}"
            parts.append(part)
        if parts and self.draw.random() < 0.05:
            parts.append(self.blank())  # a comma behind the last
        opening, closing = "{}" if kind < 0.8 else "[]"
        return opening + (",".join(parts) or self.blank()) + closing

    def path(self) -> str:
        """Return a path, which may have wildcards."""
        made = "$"
        for _ in range(self.draw.randrange(1, 4)):
            key = self.draw.choice(KEYS)
            quoted = key.replace('"', '\\"')
            made += self.draw.choice(
                [
                    f'."{quoted}"',
                    ".a",
                    ".b",
                    "[0]",
                    "[-1]",
                    "[#-1]",
                    "[1]",
                    ".*",
                    "[*]",
                    "..a",
                    "..*",
                    ".**.b",
                ]
            )
        if made.count("..") + made.count("**") > 1 or "..*" in made:  # which may count values twice
            made = "$.a..b[0]" if "b" in made else "$.b..*"
        pointer = "/" + "/".join(self.draw.choice([*KEYS, "1", "-1"]) for _ in range(2))
        return self.draw.choice([made, made, made, pointer, self.draw.choice(KEYS)])


WRITER = Writer(SEED)
TABLE = {"t": {"id": list(range(DOCUMENTS)), "d": [WRITER.value() for _ in range(DOCUMENTS)]}}
EACH = {"t": {**TABLE["t"], "e": [WRITER.value() for _ in range(DOCUMENTS)]}}


@pytest.mark.parametrize(
    "select",
    [
        "d -> '$', json_type(d), json_keys(d), json_array_length(d), json_structure(d), json_valid(d)",
        "json_normalize(d), json_strip_nulls(d), d::json",
        "json_contains(d, e), json_merge_patch(d, e), json_deep_merge(d, e), json_merge_patch_diff(d, e)",
        "json_set(d, '$.a.b', e), json_insert(d, '$[0]', e), json_replace(d, '$.a', e), json_remove(d, '$.a')",
        "json_transform(d, '{\"a\":\"INTEGER\",\"b\":[\"VARCHAR\"],\"c\":\"JSON\"}'), json_transform(d, '[\"DOUBLE\"]')",
        "json_transform(d, '\"BIGINT\"'), json_transform(d, '\"DECIMAL(18,3)\"'), json_transform(d, '\"BOOLEAN\"')",
        "try_cast(d::json as varchar[]), try_cast(d::json as double), try_cast(d::json as struct(a json, b varchar))",
        "to_json([d]), to_json({'d': d, 'j': d::json}), json_array(d, d::json), json_object(d, e::json)",
    ],
)  # fmt: skip
def test_functions_of_random_values(select: str) -> None:
    assert_same_as_duckdb(f"select id, {select} from t order by id", EACH)


@pytest.mark.parametrize("within", ["json_each", "json_tree"])
def test_rows_of_random_values(within: str) -> None:
    query = f"select t.id, e.* from t, {within}(d) e order by t.id, e.id"
    assert_same_as_duckdb(query, TABLE)


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[Comparison, object]]:
    comparison = Comparison()
    with connected(TABLE, device="cpu") as ours:
        rows = list(zip(*TABLE["t"].values(), strict=True))
        comparison.duck.execute("create table t (id bigint, d varchar)")
        comparison.duck.executemany("insert into t values (?, ?)", rows)
        yield comparison, ours
    comparison.close()


@pytest.mark.parametrize("number", range(25))
def test_random_paths(number: int, engines: tuple[Comparison, object]) -> None:
    comparison, ours = engines
    path = Writer(SEED + number).path()
    quoted = path.replace("'", "''")
    query = f"select id, d -> '{quoted}' as j, d ->> '{quoted}' as t, json_exists(d, '{quoted}') as e from t order by id"
    try:
        expected = comparison.duck.sql(query).to_arrow_table()
    except Exception:
        with pytest.raises(FuselineError):
            fuseline_answer(ours, query)
        return
    found = difference(expected, fuseline_answer(ours, query), Ordering(ordered=True))
    assert found is None, f"seed {SEED + number}, path {path}: {found}"
