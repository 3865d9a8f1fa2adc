"""The test suites of other projects that `python -m tests.foreign` runs, and why some of their tests fail with Fuseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign.ibis_data import make_ibis_data


@dataclass(frozen=True)
class Suite:
    """How to run the tests of a project, with their own backend and with ours, and why some of ours fail."""

    project: str
    packages: tuple[str, ...]  # whose versions matter
    folder: str  # of the tests, in the checkout
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    least: float  # the share that has to pass
    reasons: Mapping[str, str]  # a regular expression that finds tests or what they say -> why
    requirements: tuple[
        str, ...
    ] = ()  # of an environment for their backend, where ours does not serve
    variables: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda checkout: None


NARWHALS = Suite(
    project="narwhals",
    packages=("narwhals", "duckdb", "fuseline"),
    folder="tests",
    theirs=("--constructors=duckdb", "-k", "duckdb"),
    ours=("--use-external-constructor", "-p", "narwhals_constructor", "-k", "fuseline"),
    least=0.85,
    reasons={
        r"_@|interchange|DUCKDB|imports_test|namespace_from_backend|preserve_type_var"
        r"|raise_with_lazy|conflicting_separator|map_dtype": "is about DuckDB's own objects, and takes no constructor",
        r"is_into_|enum_v1": "in the first version of the API a Frame has rows, which charts need",
        r"(cov|corr)_over|eager_only_pass_through|is_finite_expr|keep_all_lazy|rank_with_order_by|var_value_names"
        r"|native_namespace_frame|v1_test with_row_index|numpy_array|test_cast\b|float16": (
            "chooses what to expect, or whether to run, by the word duckdb in the constructor's name"
        ),
        r"to_datetime_tz_aware|all_null_offset_format": "strptime reads no time zones",
    },
)
# The folder sql is about the text that DuckDB's compiler writes
_ALL = ("-o", "addopts=", "-W", "default", "--deselect=ibis/backends/tests/sql/")
IBIS = Suite(
    project="ibis-framework",
    packages=("ibis-framework", "duckdb", "sqlglot", "pandas", "fuseline"),
    folder="ibis/backends/tests",
    theirs=(*_ALL, "-m", "duckdb"),
    ours=(*_ALL, "-m", "fuseline", "-p", "ibis_suite"),
    least=0.95,
    reasons={
        r"KeyError: '(fuseline|@)'|test_read_garbage|test_set_backend_name": (
            "looks up what to expect, or what to call, by the name of a backend that Ibis has"
        ),
        r"Unknown dialect": "asks sqlglot for a dialect of the backend's name, and ours is DuckDB's",
        r"test_rowid": "tables have no rowid",
        r"group_concat.*expr": "the separator of string_agg is written as one constant",
        r"tpc.ds.test_queries test_83": (
            "sums of whole numbers with NULL are numbers with NaN in pandas, where the test's SQL, and DuckDB's backend, give Decimals with None"
        ),
        r"column_format_str": "the format of strftime is a constant, as in DuckDB 2",
    },
    # Ibis 12's DuckDB backend calls what DuckDB 2 has not, and its statements are written wrong by sqlglot 30
    requirements=(
        "ibis-framework[duckdb]>=12,<13",
        "duckdb<2",
        "sqlglot<30",
        "pandas<4",
        "polars",
        "pytest",
        "pytest-mock",
        "pytest-snapshot",
        "pytest-timeout",
        "pytest-xdist",
        "filelock",
        "hypothesis",
    ),
    variables={"NIX_BUILD": "1"},  # their word for a place without extensions of DuckDB
    prepare=make_ibis_data,
)
SUITES = (NARWHALS, IBIS)
