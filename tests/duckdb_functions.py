"""DuckDB's own table of functions, as calls that both engines can be asked for: each name, each signature, each of its examples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import duckdb

import fuseline
from fuseline.errors import FuselineError
from fuseline.plan.derived import DERIVED
from fuseline.plan.functions import aggregate_name, scalar_name, window_name
from tests.compare import difference, duckdb_answer, fuseline_answer, ordering

# Scalar functions are all but operators, collations, what plans alone call, and geometry.
FUNCTIONS = r"""
select distinct function_type, function_name, parameter_types, varargs, return_type, coalesce(examples, []) as examples
from duckdb_functions()
where function_type in ('scalar', 'aggregate', 'window') and regexp_full_match(function_name, '[a-zA-Z]\w*')
  and not regexp_matches(function_name, '^(icu_)?collate_|^icu_sort_key$|^st_|^vertex_extract$')
order by all
"""
PLAIN = {
    "BOOLEAN": "true", "TINYINT": "3", "SMALLINT": "3", "INTEGER": "3", "BIGINT": "3", "UTINYINT": "3", "USMALLINT": "3",
    "UINTEGER": "3", "UBIGINT": "3", "HUGEINT": "3", "UHUGEINT": "3", "FLOAT": "0.5", "DOUBLE": "0.5", "DECIMAL": "2.5",
    "DATE": "'2024-02-29'", "TIMESTAMP": "'2024-02-29 13:14:15.123456'", "INTERVAL": "'1 month 2 days'", "VARCHAR": "'a1'",
    "ANY": "3", "TIMESTAMP WITH TIME ZONE": "'2024-02-29 13:14:15+00'", "TIME": "'13:14:15'", "BLOB": "'a1'",
    "UUID": "'00000000-0000-4000-8000-000000000001'", "TIMESTAMP_NS": "'2024-02-29 13:14:15'", "JSON": "'[1]'",
}  # fmt: skip
# Arguments that no value of the type alone makes a good one: (function, place) -> a constant
GIVEN = {
    **{(f, 0): "'day'" for f in ("date_diff", "date_part", "date_sub", "date_trunc", "datediff", "datepart", "datesub", "datetrunc")},
    **{(f, 1): "'%Y'" for f in ("strptime", "try_strptime", "strftime")},
    **{(f, 2): "'i'" for f in ("regexp_matches", "regexp_full_match")},
    ("regexp_replace", 3): "'g'", ("regexp_extract", 3): "'i'", ("regexp_extract", 2): "0",
    **{(f, 0): "'my_sequence_name'" for f in ("currval", "nextval", "setval")}, ("setval", 1): "7", ("setval", 2): "true",
    ("like_escape", 2): "'!'", ("ilike_escape", 2): "'!'", ("not_like_escape", 2): "'!'", ("not_ilike_escape", 2): "'!'",
    **{(f, 1): "0.5" for f in ("quantile_cont", "quantile_disc", "quantile", "approx_quantile", "reservoir_quantile")},
    ("reservoir_quantile", 2): "10", ("to_base", 1): "16", ("make_timestamp", 5): "1.5", ("format", 0): "'{}'",
    ("printf", 0): "'%d'", ("current_setting", 0): "'threads'", ("parse_formatted_bytes", 0): "'16 KiB'",
    **{(f, 2): "'system'" for f in ("parse_filename",)}, ("parse_dirname", 1): "'system'", ("parse_dirpath", 1): "'system'",
}  # fmt: skip
UNTYPED = re.compile(r"\(.*\)$")


@dataclass(frozen=True, order=True)
class Signature:
    """One way to call a function: its name and the types of its arguments, of which DuckDB repeats the last of some."""

    kind: str
    name: str
    types: tuple[str, ...]
    result: str

    def __str__(self) -> str:
        return f"{self.name}({','.join(t.replace(' ', '_') for t in self.types)})"

    @property
    def call(self) -> str:
        """The call over the columns c0, c1, ... of `table`, and constants where those have to be some."""
        given = (GIVEN.get((self.name, i), f"c{i}") for i in range(len(self.types)))
        text = f"{self.name}({', '.join(given)})"
        return f"{text} over (order by c)" if self.kind == "window" else text

    @property
    def query(self) -> str:
        """The call over a row of plain values and one of NULLs."""
        types = ["INTEGER" if t == "ANY" else t for t in self.types]
        plain = ["1", *(f"{PLAIN[t]}::{t}" for t in types)]
        nulls = ["1", *(f"null::{t}" for t in types)]
        rows = ", ".join(f"({', '.join(row)})" for row in (plain, nulls))
        names = ", ".join(["c", *(f"c{i}" for i in range(len(types)))])
        return f"select {self.call} as v from (values {rows}) as t({names})"


@cache
def signatures() -> tuple[list[Signature], dict[str, list[str]]]:
    """Return all signatures, and the examples of each name."""
    found, examples = [], {}
    for kind, name, types, varargs, result, shown in duckdb.connect().sql(FUNCTIONS).fetchall():
        given = tuple(UNTYPED.sub("", t) if t.startswith("DECIMAL") else t for t in types)
        found.append(
            Signature(kind, name, (*given, *([varargs] if varargs else ())), str(result or ""))
        )
        examples.setdefault(name, []).extend(e for e in shown if e not in examples.get(name, ()))
    return found, examples


def is_named(signature: Signature) -> bool:
    """Whether something is here by this name and of this kind."""
    name = signature.name.lower()
    if signature.kind == "scalar":
        return scalar_name(name) is not None or name in DERIVED or name in GRAMMAR
    return aggregate_name(name) is not None or window_name(name) is not None


# which have a grammar of their own, draw, or ask for what the session has
GRAMMAR = (
    "current_date", "current_query", "current_setting", "currval", "nextval", "setval", "version", "current_schemas", "gen_random_uuid", "getvariable", "in_search_path", "position", "random", "setseed",
    "uuid", "uuidv4", "uuidv7",
)  # fmt: skip


class Comparison:
    """Both engines, asked for the same calls."""

    def __init__(self) -> None:
        self.duck = duckdb.connect()
        self.ours = fuseline.connect(device="cpu", fuse="never")
        for engine in (self.duck, self.ours):
            engine.execute("create sequence my_sequence_name")
            engine.execute("select nextval('my_sequence_name')").fetchall()
        self.types: dict[str, bool] = {"ANY": True, "": True}

    def close(self) -> None:
        self.duck.close()
        self.ours.close()

    def has_type(self, name: str) -> bool:
        """Whether a value of a type can be written here; lists, structs and what has no plain value count as none."""
        if name not in self.types:
            self.types[name] = name in PLAIN and self._runs(f"select null::{name}")
        return self.types[name]

    def _runs(self, query: str) -> bool:
        try:
            self.ours.sql(query).fetchall()
        except FuselineError:
            return False
        return True

    def missing_types(self, signature: Signature) -> list[str]:
        result = UNTYPED.sub("", signature.result)
        return [t for t in (*signature.types, result) if not self.has_type(t)]

    def problem(self, query: str) -> str | None:
        """Return how the answers differ, or the types of what is new each time; what DuckDB does not answer says nothing."""
        try:
            expected = duckdb_answer(self.duck, query)
        except Exception:
            return None
        try:
            actual = fuseline_answer(self.ours, query)
        except FuselineError as error:
            return f"{type(error).__name__}: {error.message}"
        found = difference(expected, actual, ordering(query, expected.column_names))
        if found is not None and not duckdb_answer(self.duck, query).equals(expected):
            kinds = [[t.id for t in answer.schema.types] for answer in (expected, actual)]
            return None if kinds[0] == kinds[1] else found
        return found
