"""What is said of common mistakes: the place, and what was probably meant or could have stood there."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import fuseline
from fuseline.errors import ParseError
from fuseline.sql.grammar.parts import GrammarRules
from fuseline.sql.grammar.recognize import complaint
from fuseline.sql.grammar.rules import RULE_WORDS, RULES
from fuseline.sql.parsing.pieces import split
from fuseline.sql.parsing.tokens import tokenize
from tests.marks import assert_marks

TABLES = ("create table t (i int, s varchar, d date)", "create table u (i int)")
# (text with ^...^ around the place that the caret marks, part of the message)
MISTAKES = [
    ("^selct^ i from t", 'a statement starts with a word like SELECT or CREATE. Did you mean "SELECT" or "SET" or "RESET"?'),
    ("select i ^form^ t", "Did you mean FROM?"),
    ("select i ^frm^ t", "Did you mean FROM?"),
    ("select * ^form^ t", "Did you mean FROM?"),
    ("select i from t ^were^ i = 1", "Did you mean WHERE?"),
    ("select i from t ^wehre^ i = 1 and s = 'x'", "Did you mean WHERE?"),
    ("select i, count(*) from t ^gruop^ by i", "Did you mean GROUP BY?"),
    ("select i from t ^oder^ by i", "Did you mean ORDER BY?"),
    ("select i from t order ^i^", "expected BY"),
    ("select i from t group ^i^", "expected BY"),
    ("select i from t order by i ^limt^ 5", "Did you mean LIMIT?"),
    ("select i from t limit ^by^ 5", "expected an expression"),
    ("select i, s, from t ^where^", "expected an expression"),
    ("select i s ^d^ from t", 'A comma is missing before "d"'),
    ("select i, s d ^x^ from t", 'A comma is missing before "x"'),
    ("select sum^(^i from t", 'This "(" is not closed: ")" is missing before "from"'),
    ("select sum(i)^)^ from t", 'This ")" closes nothing'),
    ("select ^(^i + 1 from t", 'This "(" is not closed: ")" is missing before "from"'),
    ("select * from ^(^select i from t", 'This "(" is not closed: ")" is missing at the end'),
    ("select * from ^(^select i from t where i > 1", 'This "(" is not closed: ")" is missing at the end'),
    ("select ^'abc from t^", "a string does not end"),
    ('select ^"abc from t^', "a name in double quotes does not end"),
    ("select i from t where s = 'it's^'^", "a string does not end. A single quote inside a string is written twice: 'it''s'"),
    ("select ^order^ from t", '"order" is a word of the grammar: as a name it has to be in double quotes'),
    ("select i as x from ^table^", '"table" is a word of the grammar: as a name it has to be in double quotes'),
    ("select ^group^, i from t", '"group" is a word of the grammar: as a name it has to be in double quotes'),
    ("select ^from^ t", "expected a column, an expression or *"),
    ("select i from ^where^ i = 1", "expected a table name, a subquery in parentheses or a file in quotes"),
    ("select i ^from^", "expected a table name, a subquery in parentheses or a file in quotes"),
    ("select i from t ^where^", "expected an expression"),
    ("select i from t where i ^=^", "expected an expression"),
    ("select i from t where i = 1 ^and^", "expected an expression"),
    ("select i from t where ^and^ i = 1", "expected an expression"),
    ("select i from t where i ^==^ ", "expected an expression"),
    ("select i from t where i = 1 ^s^ = 'x'", "expected AND, OR, GROUP BY, HAVING, UNION, ORDER BY or the end of the statement"),
    ("select i from t where i = 1 ^adn^ s = 'x'", "Did you mean AND?"),
    ("select i from t where i in 1^,^ 2", "expected AND, OR, GROUP BY, HAVING, UNION, ORDER BY or the end of the statement"),
    ("select i from t where i in ^(^1, 2", 'This "(" is not closed: ")" is missing at the end'),
    ("select i from t where i in (1 ^2^)", 'A comma is missing before "2"'),
    ("select i from t where i between 1^,^ 2", "expected AND or an operator"),
    ("select i from t where i ^betwen^ 1 and 2", "Did you mean BETWEEN?"),
    ("select i from t where i is ^nul^", "Did you mean NULL?"),
    ("select i from t where i is not ^nul^", "Did you mean NULL?"),
    ("select i from t where i is ^5^", "expected DISTINCT, FALSE, NULL, TRUE, UNKNOWN or NOT"),
    ("select i from t where s ^lik^ 'a%'", "Did you mean LIKE?"),
    ("select case when i > 1 then 2 ^from^ t", "expected END, AND, OR or WHEN"),
    ("select case when i > 1 ^2^ end from t", "expected THEN, AND, OR or an operator"),
    ("select case i > 1 ^then^ 2 end from t", "expected WHEN, AND, OR or an operator"),
    ("select case when i > 1 ^thn^ 2 end from t", "Did you mean THEN?"),
    ("select case when i > 1 then 2 ^esle^ 3 end from t", "Did you mean ELSE?"),
    ("select cast(i ^int^) from t", 'AS is missing before "int"'),
    ("select cast(i as^)^ from t", "expected a type"),
    ("select cast(i ^sa^ int) from t", "Did you mean AS?"),
    ("select i from t join ^on^ t.i = 1", "expected a table name, a subquery in parentheses or a file in quotes"),
    ("select t.i from t join u t^.^i = u.i", "expected ON, USING, JOIN, names of columns in parentheses or PIVOT"),
    ("select t.i from t ^jion^ u on t.i = u.i", "Did you mean JOIN?"),
    ("select t.i from t left ^jion^ u on t.i = u.i", "Did you mean JOIN?"),
    ("select t.i from t left ^u^ on t.i = u.i", "expected JOIN or OUTER"),
    ("select t.i from t inner ^u^ on t.i = u.i", "expected JOIN"),
    ("select i from t group by i ^where^ i > 1", "WHERE stands before GROUP BY"),
    ("select i from t limit 5 ^order by^ i", "ORDER BY stands before LIMIT"),
    ("select i from t order by i ^where^ i > 1", "WHERE stands before ORDER BY"),
    ("select i from t having i > 1 ^group by^ i", "GROUP BY stands before HAVING"),
    ("select i from t limit 5^,^ 10", "LIMIT takes one number: the rows to leave out stand behind OFFSET"),
    ("select ^top^ 5 i from t", "There is no TOP: write LIMIT at the end of the query"),
    ("select i from t where i = 1;;^select^", "expected a column, an expression or *"),
    ("select i from t union ^al^ select i from t", "Did you mean ALL?"),
    ("select i from t union ^select^", "expected a column, an expression or *"),
    ("select i from t union ^order by^ i", "expected a query, ALL, DISTINCT or BY"),
    ("select i from t ^unoin^ select i from t", "Did you mean UNION?"),
    ("with x as ^select^ 1 select * from x", 'expected "(", NOT or MATERIALIZED'),
    ("with x (^select^ 1) select * from x", "expected a name"),
    ("with x as (select 1^)^", 'expected a query, INSERT, UPDATE, DELETE, MERGE or ","'),
    ("select count^(^* from t", 'This "(" is not closed: ")" is missing before "from"'),
    ("select count(distinct i ^s^) from t", 'A comma is missing before "s"'),
    ("select sum(i) over ^partition by^ s from t", 'expected FROM, ",", AND, OR, WHERE, GROUP BY or the end of the statement'),
    ("select sum(i) over (partition ^s^) from t", 'expected ")", BY, PARTITION BY, ORDER BY or GROUPS'),
    ("select sum(i) over (order ^i^) from t", "expected BY"),
    ("select i from t order by i ^des^", "Did you mean DESC?"),
    ("select i from t order by i desc nulls ^fist^", "Did you mean FIRST?"),
    ("select i from t order by i ^nulls^", "expected FIRST or LAST"),
    ("insert ^t^ values (1)", "expected INTO"),
    ("insert ^itno^ t values (1)", "Did you mean INTO?"),
    ("insert into t ^value^ (1)", "Did you mean VALUES?"),
    ("insert into t values ^1^, 2", "expected values in parentheses"),
    ("insert into t values ^(^1, 2", 'This "(" is not closed: ")" is missing at the end'),
    ("create ^tabel^ x (a int)", "Did you mean TABLE?"),
    ("create table x (a int ^b^ int)", 'A comma is missing before "b"'),
    ("create table ^order^ (a int)", '"order" is a word of the grammar: as a name it has to be in double quotes'),
    ("create view v (^select^ 1)", "expected a name"),
    ("create table x (^select^ int)", "expected a name or a column with its type"),
    ("drop ^tabel^ x", "Did you mean TABLE?"),
    ("drop ^table^", "expected a name or IF"),
    ("drop ^t^", "expected INDEX, TABLE or VIEW"),
    ("^crate^ table x (a int)", 'a statement starts with a word like SELECT or CREATE. Did you mean "CREATE" or "TRUNCATE" or "ALTER"?'),
    ("select i,^,^ s from t", "This comma is one too many"),
    ("select ^,^ i from t", "This comma is one too many"),
    ("select i from t t2 ^t3^", 'A comma is missing before "t3"'),
    ("select i + ^from^ t", "expected an expression"),
    ("select i + ^*^ 2 from t", "expected an expression"),
    ("select not ^from^ t", "expected an expression"),
    ("select i not null from t where i ^not^", "expected IN, LIKE, ILIKE, GLOB, SIMILAR or BETWEEN"),
    ("select extract(year ^form^ d) from t", "Did you mean FROM?"),
    ("select extract(year^,^ d) from t", "expected FROM"),
    ("select substring(s ^form^ 1 for 2) from t", "Did you mean FROM?"),
    ("select i from t where exists ^select^ 1", 'expected "(", AND, OR or GROUP BY'),
    ("select i from t where i = any ^select^ 1", "expected an expression in parentheses"),
    ("select i where i = 1 ^from^ t", "FROM stands before WHERE"),
    ("select distinct i, ^distinct^ s from t", "expected a column, an expression or *"),
    ("select i as ^from^ t", 'A name is missing before "from"'),
    ("select i as ^'x from t^", "a string does not end"),
    ("select i from t ^as^", "expected a name"),
    ("select 1 ^1^", 'A comma is missing before "1"'),
    ("select i from t where ^(^i = 1 or s = 'x'", 'This "(" is not closed: ")" is missing at the end'),
    ("select i from t where ^i > 1 <5^", "Comparisons are not chained: combine them with AND, or put one in parentheses"),
    ("select i from t where ^i < 2 < 3^", "Comparisons are not chained: combine them with AND, or put one in parentheses"),
    ("select i from t where i <> ^=^ 3", "expected an expression"),
    ("select i from t ^#^ comment", 'expected ",", WHERE, JOIN, arguments in parentheses, PIVOT, UNPIVOT or the end of the statement'),
    ("select if i ^>^ 1 then 2 else 3 from t", 'expected FROM, ",", WHERE, GROUP BY, HAVING, UNION or the end of the statement'),
    ("select i from t where s ^like^", "expected an expression"),
    ("select i from t where ^not^", "expected an expression"),
    ("select i from t full outer ^u^ on true", "expected JOIN"),
    ("select * from t natural ^u^", "expected JOIN, FULL, LEFT or RIGHT"),
    ("select exists^(^select i from t", 'This "(" is not closed: ")" is missing at the end'),
]  # fmt: skip


@pytest.fixture(scope="module")
def connections() -> Iterator[tuple[fuseline.Connection, duckdb.DuckDBPyConnection]]:
    with fuseline.connect(device="cpu") as ours, duckdb.connect() as theirs:
        for table in TABLES:
            ours.execute(table)
            theirs.execute(table)
        yield ours, theirs


@pytest.mark.parametrize(("marked", "said"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_named_at_its_place(connections, marked: str, said: str) -> None:
    ours, theirs = connections
    text = marked.replace("^", "")
    with pytest.raises(duckdb.ParserException):  # it is a mistake, and no syntax that we lack
        theirs.execute(text)
    with pytest.raises(ParseError) as error:
        ours.sql(text)
    assert_marks(error.value, marked, said)


@pytest.mark.parametrize("text", ["drop tabel t", "drop t", "create view v (select 1)"])
def test_what_sqlglot_makes_of_a_wrong_text_is_no_fault_of_ours(connections, text: str) -> None:
    with pytest.raises(ParseError, match=r"expected|Did you mean"):
        connections[0].sql(text)


def test_a_statement_that_is_not_supported_says_where_it_goes_on_wrongly(connections) -> None:
    with pytest.raises(fuseline.errors.Unsupported) as error:
        connections[0].sql("create table x a int, b int")
    assert_marks(error.value, "create table x ^a^ int, b int", 'AS or "("')


def test_words_are_of_rules() -> None:
    assert RULE_WORDS.keys() <= GrammarRules(RULES).rules.keys()


def test_mistakes_in_long_texts_are_looked_for_a_few_times_only() -> None:
    """Each change is a reading of the whole text; where that takes long, the place alone is said."""
    text = f"select {'a, ' * 20_000} b c d from t"
    found = complaint(tokenize(next(split(text))))
    assert (found.mistake, found.place) == ("", 40_003)
    assert found.expected
