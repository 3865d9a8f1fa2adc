"""The second reading of a statement: what sqlglot reads over is refused at its place, and depth is no matter."""

from __future__ import annotations

import re

import pytest

from fuseline.errors import InvalidQuery, ParseError
from fuseline.sql.grammar.parts import GrammarRules
from fuseline.sql.grammar.recognize import unrecognized
from fuseline.sql.grammar.rules import RULES
from fuseline.sql.parsing.pieces import split
from fuseline.sql.parsing.tokens import tokenize
from tests.marks import assert_marks

SETUP = ["create table t as select * from (values (1, 'x', 1.5)) v(i, s, d)"]
READ_OVER = [
    "select case when i > 1 ^2^ end from t", "with c (^select^ 1) select * from c",
    "select i from t order by i fetch ^2^ rows only",
    "select i between 1 ^2^ from t", "select max^(^ (i) as x from t", "from ^.^ t", "select t.^@^ i from t",
    "from t join t u on t.i < ^<^ u.i",
    "select timestamp timestamp ^'2024-01-01 00:00:00'^::date",
    "from (t^)^", "from t join (t u^)^ using (i)", "select * from ((t^)^)", "from (range(3)^)^",
    "select position(s^,^ s) from t", "select i from t order by all desc ^,^",
]  # fmt: skip


@pytest.mark.parametrize("marked", READ_OVER)
def test_what_sqlglot_reads_over_is_refused(connection, marked: str) -> None:
    with pytest.raises(ParseError) as error:
        connection.sql(marked.replace("^", ""))
    assert_marks(error.value, marked, "Syntax error")


def test_a_parameter_orders_nothing(connection) -> None:
    with pytest.raises(InvalidQuery) as error:
        connection.sql("select i from t order by ?", [1])
    assert_marks(error.value, "select i from t order by ^?^", "A parameter in ORDER BY")


def test_every_rule_is_part_of_a_statement() -> None:
    rules = GrammarRules(RULES)
    for name in set(rules.rules) - {"statement"}:
        assert len(re.findall(rf"\b{name}\b", RULES)) > 1, name


def test_nesting_needs_no_stack_of_python() -> None:
    text = f"select {'(' * 20_000}1{')' * 20_000}"
    assert unrecognized(tokenize(next(split(text)))) is None


def test_no_text_is_read_again_and_again() -> None:
    """Alternatives that begin alike would double the work at each level of a text that is wrong at its end."""
    text = f"select {'(' * 3_000}case when a in (select 1 {')' * 3_000}"
    assert unrecognized(tokenize(next(split(text)))) is not None
