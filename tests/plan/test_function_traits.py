"""What a row of the function table says of a function holds for what it computes."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline.codegen.expressions import translate
from fuseline.codegen.groups import accumulate
from fuseline.operators import row_interpreter
from fuseline.operators.cpu.aggregate import aggregate
from fuseline.operators.one_group import Moments, result, together
from fuseline.plan import infer
from fuseline.plan.expr import AggregateCall, Literal
from fuseline.plan.functions import AGGREGATE, COMPARISONS, NEGATED, SCALAR, STRICT
from fuseline.plan.types import BOOLEAN, DOUBLE
from fuseline.planner.expressions import fold

TOTAL = sorted(name for name, row in SCALAR.items() if row.total)
SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*", "div": "/", "concat": "||", "and": "and", "or": "or", "like": "like", "ilike": "ilike"}  # fmt: skip
NUMBERS = ["0", "1", "-1", "12.5", "-0.01", "2147483647", "0.5::double", "'nan'::double", "'inf'::double", "-1e300"]  # fmt: skip
TEXTS = ["''", "'a'", "'%'", "'Äß'", "'a_b'"]
DATES = ["date '0001-01-01'", "date '1970-01-01'", "date '9999-12-31'", "interval 14 month"]
TRUTHS = ["true", "false"]


def calls(name: str) -> list[str]:
    """Calls with values that none of whose arguments is NULL."""
    if name in ("and", "or"):
        return [f"{a} {name} {b}" for a, b in itertools.product(TRUTHS, TRUTHS)]
    if name in ("concat", "like", "ilike"):
        return [f"{a} {SIGNS[name]} {b}" for a, b in itertools.product(TEXTS, TEXTS)]
    if name in SIGNS:
        return [f"({a}) {SIGNS[name]} ({b})" for a, b in itertools.product(NUMBERS, NUMBERS)]
    if name in ("not", "neg"):
        return [f"not {t}" for t in TRUTHS] if name == "not" else [f"-({n})" for n in NUMBERS]
    if name in ("lower", "upper", "length"):
        return [f"{name}({t})" for t in TEXTS]
    if name == "substring":
        return [f"substring({t}, {a}, {b})" for t in TEXTS for a in (-9, 0, 1, 9) for b in (-1, 0, 2)]  # fmt: skip
    if name in ("year", "quarter", "month", "day", "decade", "century", "millennium"):
        return [f"{name}({d})" for d in DATES]
    if name in ("greatest", "least"):
        return [f"{name}({a}, {b})" for a, b in itertools.product(NUMBERS[:4], NUMBERS[:4])]
    drawn = {"random": "random()", "random_uuid": "uuid()", "uuid_of_time": "uuidv7()"}
    if name in drawn:
        return [drawn[name], f"typeof({drawn[name]})"]
    assert name == "abs", f"{name} is total: give it arguments here"
    return [f"abs({n})" for n in NUMBERS]


@pytest.mark.parametrize("name", TOTAL)
def test_a_total_function_has_a_value_for_values(name: str, connection: Any) -> None:
    answered = 0
    for call in calls(name):
        try:
            ((value,),) = connection.sql(f"select {call}").fetchall()
        except fuseline.FuselineError:
            continue  # out of the range of its type
        assert value is not None, call
        answered += 1
    assert answered > 1


@pytest.mark.parametrize("call", ["null is null", "null is not null", "null::int is distinct from 1", "null::int is not distinct from null"])  # fmt: skip
def test_what_is_never_null(call: str, connection: Any) -> None:
    assert connection.sql(f"select {call}").fetchall() != [(None,)]
    never = {row.name for row in SCALAR.values() if row.nulls == "never"}
    assert never == {
        "is_null",
        "is_not_null",
        "is_distinct",
        "is_not_distinct",
        "json_member",
        "hash",
    }


NULLS = {"and": "null::boolean and null", "or": "null::boolean or null", "greatest": "greatest(null::int, null)", "least": "least(null::int, null)", "coalesce": "coalesce(null::int, null)"}  # fmt: skip


def test_what_is_null_of_nulls_alone(connection: Any) -> None:
    assert {row.name for row in SCALAR.values() if row.nulls == "all"} == set(NULLS)
    (found,) = connection.sql(f"select {', '.join(NULLS.values())}").fetchall()
    assert set(found) == {None}


SQL = SIGNS | {"is_distinct": "is distinct from", "is_not_distinct": "is not distinct from"}


@pytest.mark.parametrize("name", sorted(COMPARISONS))
def test_a_comparison_is_what_its_row_says(name: str, connection: Any) -> None:
    """Exchanged, negated, and as a bound of its left side: for values and for NULL."""
    row, sides = SCALAR[name], ["null::int", "1", "2", "3"]
    for a, b in itertools.product(sides, sides):
        texts = (
            f"{a} {SQL[name]} {b}, {b} {SQL[row.mirrored]} {a}, not ({a} {SQL[row.negated]} {b})"
        )
        ((found, mirrored, negated),) = connection.sql(f"select {texts}").fetchall()
        assert found == mirrored == negated
        unknown = "null::int" in (a, b)
        assert (found is None) == (name in STRICT and unknown)
        if a != b and not unknown:
            assert found == (row.bound in ("", "upper" if a < b else "lower"))


def test_what_is_negated_is_negated_by_it() -> None:
    assert all(NEGATED[NEGATED[name]] == name for name in NEGATED)


SYNONYMS = {"bool_and": "min", "bool_or": "max", "count_if": "sum", "median": "quantile_cont", "approx_count_distinct": "count"}  # fmt: skip
PLANNED = [name for name, row in AGGREGATE.items() if row.means is None]


@pytest.mark.parametrize("name", sorted(SYNONYMS))
def test_a_synonym_is_what_it_means(name: str) -> None:
    row = AGGREGATE[name]
    given = Literal(True, BOOLEAN) if "BOOLEAN" in row.signature else Literal(2.5, DOUBLE)
    found = infer.aggregate(name, [given])
    assert isinstance(found, AggregateCall)
    assert found.function == SYNONYMS[name]
    assert found.distinct == (name == "approx_count_distinct")
    assert found.args[1:] == ((Literal(0.5, DOUBLE),) if name == "median" else ())
    resolved = row.resolve([given.type])
    assert resolved is not None
    assert found.type == resolved[1]


@pytest.mark.parametrize("name", sorted(PLANNED))
def test_an_aggregate_is_what_its_row_says(name: str, connection: Any) -> None:
    row = AGGREGATE[name]
    table = pa.table({"i": range(4), "x": [3, 1, 3, 6]})
    connection.register("t", table)
    more = {"string_agg": ", ','", "quantile_cont": ", 0.5", "quantile_disc": ", 0.5", "arg_min": ", i", "arg_max": ", i", "arg_min_null": ", i", "arg_max_null": ", i", "covar_samp": ", i", "covar_pop": ", i", "corr": ", i"}.get(name, "")  # fmt: skip
    argument = "x::varchar" if name == "string_agg" else "x"
    call = "count(*)" if name == "count_star" else f"{name}({argument}{more})"

    def one(query: str) -> Any:
        return connection.sql(query).fetchall()[0][0]

    whole = one(f"select {call} from t")
    if row.merge:
        halves = f"select {call} as x from t group by i // 2 order by min(i)"
        rest = ", ','" if name == "string_agg" else ""
        assert one(f"select {row.merge}(x{rest}) from ({halves})") == whole
    if row.idempotent:
        twice = "(from t union all from t) order by i"
        assert one(f"select {call} from ({twice})") == whole
    if row.total:
        assert one(f"select {call} from t where i = 0") is not None
    assert row.counts == (one(f"select {call} from t where false") == 0)


def differences(table: Collection[str], rows: Collection[str]) -> set[str]:
    """Return the names that a backend's table of functions has too many, or lacks."""
    return set(table) ^ set(rows)


def test_each_table_of_aggregates_has_those_that_the_rows_say() -> None:
    folded = {name for name, row in AGGREGATE.items() if row.fold}
    assert differences([*accumulate.RULES, "count_star"], folded) == set()
    assert differences(aggregate.AGGREGATES, PLANNED) == set()
    for some in (translate.RULES, fold._FUNCTIONS, row_interpreter.CALLS):
        assert {*some} <= {*SCALAR}
    assert {row.fold for row in AGGREGATE.values()} - {""} <= set(accumulate.FOLDS)
    assert {row.merge for row in AGGREGATE.values()} - {""} <= set(AGGREGATE)


def test_a_function_that_a_table_lacks_is_found() -> None:
    without_sum = [name for name in aggregate.AGGREGATES if name != "sum"]
    assert differences(without_sum, PLANNED) == {"sum"}
    assert differences([*aggregate.AGGREGATES, "covar"], PLANNED) == {"covar"}


@pytest.mark.parametrize("name", [name for name, row in AGGREGATE.items() if row.moments])
def test_moments_of_parts_are_those_of_all_rows(name: str, connection: Any) -> None:
    """What two parts' counts, means and products of deviations make is what the aggregate makes of all rows."""
    xs, ys = [1.0, 2.5, -3.0, 8.0, 0.25], [4.0, -1.0, 2.0, 2.0, 9.5]
    parts = [moments_of(xs[:2], ys[:2]), moments_of(xs[2:], ys[2:])]
    connection.register("m", pa.table({"x": xs, "y": ys}))
    arguments = "x, y" if len(AGGREGATE[name].signature.split(",")) == 2 else "x"
    ((expected,),) = connection.sql(f"select {name}({arguments}) from m").fetchall()
    assert result(name, together(*parts)) == pytest.approx(expected, rel=1e-12)


def moments_of(xs: list[float], ys: list[float]) -> Moments:
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    products = [
        ((a - x) ** 2, (b - y) ** 2, (a - x) * (b - y)) for a, b in zip(xs, ys, strict=True)
    ]
    return Moments(len(xs), x, y, *map(sum, zip(*products, strict=True)))
