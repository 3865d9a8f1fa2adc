"""Random parameters for TPC-H: drawn from the domains of the data, the same for the same seed, and in every query."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pytest

from benchmarks import tpch
from benchmarks.tpch import parameters
from tests.compare import assert_same_as_duckdb
from tests.conftest import SCALE

STREAMS = range(1, 40)


def column(query: str, tables: dict[str, Path]) -> set[str]:
    """One column of TPC-H, `{table}` standing for its file."""
    return {value for (value,) in duckdb.sql(query.format(**tables)).fetchall()}


@pytest.mark.parametrize(("values", "query"), [
    (parameters.REGIONS, "select r_name from '{region}'"),
    (parameters.SEGMENTS, "select distinct c_mktsegment from '{customer}'"),
    (parameters.MODES, "select distinct l_shipmode from '{lineitem}'"),
    (parameters.CONTAINERS, "select distinct p_container from '{part}'"),
    (parameters.COLORS, "select distinct unnest(split(p_name, ' ')) from '{part}'"),
    (parameters.FINISHES, "select distinct split_part(p_type, ' ', 3) from '{part}'"),
    (parameters.KINDS, "select distinct regexp_replace(p_type, ' [A-Z]+$', '') from '{part}'"),
])  # fmt: skip
def test_values_are_those_of_the_data(
    values: list[str], query: str, tpch_tables: dict[str, Path]
) -> None:
    assert sorted(values) == sorted(column(query, tpch_tables))


def test_a_nation_comes_with_its_region(tpch_tables: dict[str, Path]) -> None:
    query = "select n_name || r_name from '{nation}' join '{region}' on n_regionkey = r_regionkey"
    pairs = {nation + region for nation, region in parameters.REGION_OF.items()}
    assert pairs == column(query, tpch_tables)


def test_stream_0_has_the_validation_parameters() -> None:
    assert parameters.queries(10, 0) == tpch.queries(10)


def test_a_stream_comes_out_the_same_again_and_differs_from_others() -> None:
    first, again, other = (parameters.queries(1, s, seed) for s, seed in ((1, 5), (1, 5), (2, 5)))
    assert first == again
    assert all(first[name] != other[name] for name in ("q01", "q03", "q16", "q22"))


@pytest.mark.parametrize("name", parameters.RULES)
def test_each_rule_replaces_what_its_query_has(name: str) -> None:
    texts = {parameters.queries(1, stream)[name] for stream in STREAMS}
    assert len(texts) > 1
    assert not any("--" in text for text in texts)


def test_nations_trade_places_at_once() -> None:
    text = "n1 = 'FRANCE' and n2 = 'GERMANY'"
    swapped = parameters.substituted(text, {"'FRANCE'": "'GERMANY'", "'GERMANY'": "'FRANCE'"})
    assert swapped == "n1 = 'GERMANY' and n2 = 'FRANCE'\n"


def test_a_literal_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="The query has no 'ASIA'"):
        parameters.substituted("select 1", {"'ASIA'": "'EUROPE'"})


@pytest.mark.parametrize(("rule", "drawn", "low", "high"), [
    ("q04", "'1993-07-01'", "'1993-01-01'", "'1997-10-01'"),
    ("q10", "'1993-10-01'", "'1993-02-01'", "'1995-01-01'"),
    ("q14", "'1995-09-01'", "'1993-01-01'", "'1997-12-01'"),
    ("q03", "'1995-03-15'", "'1995-03-01'", "'1995-03-31'"),
    ("q18", "> 300", "> 312", "> 315"),
])  # fmt: skip
def test_draws_reach_both_ends_of_their_range(rule: str, drawn: str, low: str, high: str) -> None:
    draws = {parameters.RULES[rule](Random(i))[drawn] for i in range(1500)}
    assert (min(draws), max(draws)) == (low, high)


@pytest.mark.parametrize("name", ["q06", "q12", "q16", "q19", "q22"])
def test_other_parameters_answer_as_duckdb(name: str, tpch_tables: dict[str, Path]) -> None:
    text = parameters.queries(SCALE, 1)[name]
    assert_same_as_duckdb(text, tpch_tables, backend="cpu", fuse=["never", "always"])
