"""Every argument that sqlglot's parser can set has an effect, or a text with it is refused.

Each text of `tree_texts.sql`, and a call of each function that sqlglot knows, is bound once as it is and once without
each argument of its tree.  Where both give one plan, the argument is read over: then it has to stand in `CANNOT_MATTER`.  `tree_pairs.txt` keeps
the verdict for each pair of class and argument, so that a pair of a new sqlglot fails here until it was looked at:

    c  changes the plan        i  cannot matter        r  is in refused texts alone
    n  is made by no line that the parser reaches (parser_source.py)
    o  is made by a line that no text of DuckDB's dialect comes to, for the reason in `IN_NO_TEXT`; set by hand (test_tree_grafts.py) it is
       refused or changes the plan
    p  leaves the tree before it is bound
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlglot import exp

import fuseline
from fuseline.errors import FuselineError
from fuseline.sql.binding.bind_expr import bind
from fuseline.sql.binding.bind_query import bind_query
from fuseline.sql.binding.scope import Parameters, Scope, Session
from fuseline.sql.parsing.parse import Parser, parse
from fuseline.sql.parsing.pieces import Piece, split
from fuseline.sql.parsing.text_shape import SlotNode
from fuseline.sql.parsing.unread import refuse_unused, tree_of
from fuseline.sql.statements.bind_statement import bind_statement
from tests.compare import assert_same_as_duckdb
from tests.sql.parser_source import can_make

HERE = Path(__file__).parent
TEXTS = (HERE / "tree_texts.sql").read_text().splitlines()
FOUND = (HERE / "tree_texts_found.sql").read_text().splitlines()  # find_tree_texts.py
PAIRS = HERE / "tree_pairs.txt"
SETUP = [
    "create table t as select * from (values (1, 'x', 1.5), (2, 'y', 2.5), (null, null, null)) v(i, s, d)",
    "create table u as select * from (values (1, 10), (3, 30)) v(i, n)",
    "create table k (a int unique not null, b int default 4 unique)",
    "create view w as from u",
    "create type m as enum ('x', 'y')",
]
CHANGES = ("create", "insert", "drop", "describe", "pivot", "truncate", "alter", "merge")
# Which rows a percentage draws, each engine's own random numbers decide.
DRAWN = re.compile(r"sample .*(%|percent)")
Pair = tuple[str, str]

_ONE_SCHEMA = "all tables are in one schema, and another name than its own is refused"
_AS_TEXT = "of statements that sqlglot does not parse, our binders read the text itself"
_BY_WORDS = "ATTACH, DETACH and macros of several forms are read word by word"
_ALWAYS = "sqlglot sets it for its other dialects, at every such call of DuckDB's"
_NULLS_AS_DUCKDB = "it says how NULLs are skipped, and DuckDB has no other way"
CANNOT_MATTER: dict[Pair, str] = {
    ("ParseJSON", "is_literal"): _ALWAYS,
    **dict.fromkeys(
        (("Attach", "expressions"), ("Attach", "this"), ("AttachOption", "expression")), _BY_WORDS
    ),
    **dict.fromkeys(
        (("AttachOption", "this"), ("Detach", "exists"), ("Detach", "this")), _BY_WORDS
    ),
    **dict.fromkeys(
        (("MacroOverload", key) for key in ("expressions", "is_table", "this")), _BY_WORDS
    ),
    **dict.fromkeys((("MacroOverloads", "expressions"), ("Heredoc", "this")), _BY_WORDS),
    **dict.fromkeys(
        (("UserDefinedFunction", "this"), ("UserDefinedFunction", "wrapped")), _BY_WORDS
    ),
    ("AlterColumn", "drop"): "that nothing else is there says so too",
    ("CTE", "materialized"): "when an entry is computed changes no answer",
    ("Command", "expression"): _AS_TEXT,
    ("Command", "this"): _AS_TEXT,
    ("Column", "catalog"): _ONE_SCHEMA,
    ("Column", "db"): _ONE_SCHEMA,
    ("Concat", "coalesce"): _NULLS_AS_DUCKDB,
    ("Concat", "safe"): _ALWAYS,
    ("ConcatWs", "coalesce"): _NULLS_AS_DUCKDB,
    ("ConcatWs", "safe"): _ALWAYS,
    ("Count", "big_int"): _ALWAYS,
    ("DataType", "nested"): "that a type has parts, these say too",
    ("Drop", "cascade"): "nothing depends on a table: views are kept, as in DuckDB",
    ("Drop", "restrict"): "nothing depends on a table",
    ("Fetch", "direction"): "FIRST and NEXT are one in SQL",
    (
        "Fetch",
        "limit_options",
    ): "ROWS and ONLY are noise words; PERCENT and WITH TIES inside of it are refused",
    ("Greatest", "ignore_nulls"): _NULLS_AS_DUCKDB,
    ("Identifier", "quoted"): "names are matched without regard to case, in quotes too",
    ("IndexParameters", "using"): "there is one method, and others are refused",
    ("Least", "ignore_nulls"): _NULLS_AS_DUCKDB,
    ("LimitOptions", "rows"): "a noise word",
    (
        "Pivot",
        "columns",
    ): "the names that sqlglot gives to the columns of a PIVOT, which are not DuckDB's",
    ("Pivot", "pivot_column_naming"): _ALWAYS,
    ("RegexpExtract", "null_if_pos_overflow"): _ALWAYS,
    ("RegexpReplace", "single_replace"): _ALWAYS,
    ("SequenceProperties", "start"): "CREATE SEQUENCE is read word by word",
    ("Table", "db"): _ONE_SCHEMA,
    ("TryCast", "safe"): _ALWAYS,
    ("Window", "over"): "the parser sets it for OVER, and there is no other word",
}

_KEPT_AS_NAME = "tokens.py makes a name of the word before the parser looks for it"
_ROWS = "only Snowflake's parser makes TABLE(...) a node of its own"
IN_NO_TEXT: dict[Pair, str] = {
    ("Cast", "safe"): "it is set where a cast may fail, and that is a TryCast",
    (
        "ComputedColumnConstraint",
        "not_null",
    ): "generated_words.py closes the constraint before NOT NULL",
    ("Directory", "row_format"): "ROW is the word of a type in DuckDB's dialect",
    **dict.fromkeys(
        (("DropPartition", "exists"), ("DropPartition", "expressions")),
        "behind DROP tokens.py writes COLUMN, and PARTITION is a column",
    ),
    ("ForeignKey", "this"): "keys of its dictionary are the words DELETE and UPDATE",
    ("Grant", "grant_option"): _KEPT_AS_NAME,
    ("Heredoc", "tag"): "a text in dollar signs is one token",
    ("Install", "force"): _KEPT_AS_NAME,
    (
        "Is",
        "negate",
    ): "it is set where IS NOT NULL is no negation of IS NULL, which is so in no dialect but others",
    ("Join", "expressions"): "ARRAY begins a join in ClickHouse's parser alone",
    ("PrimaryKey", "this"): "a key has its own name in MySQL's parser alone",
    ("Query", "this"): "an abstract class",
    ("Revoke", "grant_option"): _KEPT_AS_NAME,
    ("RowFormatDelimitedProperty", "map_keys"): _KEPT_AS_NAME,
    ("Select", "exclude"): "our items of SELECT have no EXCLUDE behind them",
    **dict.fromkeys(
        (("TableFromRows", key) for key in ("alias", "joins", "pivots", "sample", "this")), _ROWS
    ),
    ("Trim", "collation"): "the operand takes COLLATE",
    ("TruncateTable", "only"): "ONLY is set in its tables",
    ("With", "udfs"): "functions stand in WITH in another dialect",
}


@dataclass
class Altered(Session):
    """Binds a statement as if one argument of its tree had not been written."""

    without: tuple[int, str] | None = None

    def parse(self, piece: Piece) -> exp.Expr:
        tree = parse(piece)
        if tree.fault is not None:
            raise tree.fault
        if tree.misread is not None:
            raise tree.misread.error
        if self.without is not None and piece.text == self.text:  # else kept with a table
            place, key = self.without
            tree.nodes[place].args.pop(key)
        self.trees.append(tree_of(tree.root))
        return tree.root


def _bound(text: str, catalog: object, without: tuple[int, str] | None = None) -> str:
    """Return the plan of a statement with its columns numbered from 0, or an error's message."""
    session = Altered(catalog, Parameters(()), bind_query, bind, text)
    session.without = without
    try:
        statement = bind_statement(next(split(text)), Scope(session))
        for tree in session.trees:
            refuse_unused(tree)
    except FuselineError as error:
        return f"refused: {error}"
    except Exception as error:  # an argument that has to be there
        return f"impossible: {error!r}"
    numbers: dict[str, str] = {}
    return re.sub(
        r"\bid=(\d+)", lambda m: numbers.setdefault(m[1], f"#{len(numbers)}"), repr(statement)
    )


def _arguments(text: str) -> list[tuple[int, Pair]]:
    try:
        tree = parse(next(split(text)))
    except FuselineError:
        return []
    return [
        (i, (type(node).__name__, key))
        for i, node in enumerate(tree.nodes)
        for key, value in node.args.items()
        if value
    ]


def _calls() -> Iterator[str]:
    for name in (*Parser.FUNCTIONS, *Parser.FUNCTION_PARSERS):
        for count in (1, 2, 3, 4, 5, 7, 9, 12):
            yield f"select {name}({', '.join('isdisdisdisd'[:count])}) from t"


def all_classes() -> dict[str, type[exp.Expr]]:
    classes: dict[str, type[exp.Expr]] = {}
    waiting: list[type[exp.Expr]] = [exp.Expr]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind is not SlotNode:  # which is a Literal
                classes[kind.__name__] = kind
                waiting.append(kind)
    return classes


def all_pairs() -> list[Pair]:
    kinds = sorted(all_classes().items())
    return [(name, key) for name, kind in kinds for key in sorted(kind.arg_types)]


def _verdicts() -> dict[Pair, str]:
    connection = fuseline.connect(device="cpu")
    for statement in SETUP:
        connection.sql(statement)
    changed: set[Pair] = set()
    same: set[Pair] = set()
    refused: set[Pair] = set()
    for text in (*TEXTS, *FOUND, *_calls()):
        arguments = _arguments(text)
        plan = _bound(text, connection.catalog)
        if plan.startswith(("refused", "impossible")):
            assert not plan.startswith("impossible"), f"{text}: {plan}"
            refused.update(pair for _, pair in arguments)
            continue
        for place, pair in arguments:
            if pair not in changed:
                other = _bound(text, connection.catalog, (place, pair[1]))
                (same if other == plan else changed).add(pair)
    verdicts = {}
    for pair in all_pairs():
        verdicts[pair] = (
            "p"
            if pair == ("Paren", "this")
            else "c"
            if pair in changed
            else "i"
            if pair in same
            else "r"
            if pair in refused
            else "o"
            if can_make(*pair)
            else "n"
        )
    return verdicts


@pytest.fixture(scope="module")
def verdicts() -> dict[Pair, str]:
    return _verdicts()


def test_each_argument_has_an_effect_or_is_refused(verdicts, request) -> None:
    lines: dict[str, list[str]] = {}
    for (name, key), verdict in verdicts.items():
        lines.setdefault(name, []).append(f"{key}:{verdict}")
    text = "".join(f"{name} {' '.join(keys)}\n" for name, keys in lines.items())
    if request.config.getoption("--rewrite-goldens"):
        PAIRS.write_text(text)
    counts = Counter(verdicts.values())
    print(
        f"{counts['c']} change the plan, {counts['r']} are refused, {counts['i']} cannot matter, "
        f"{counts['n']} are not made by the parser, {counts['o']} no text comes to, {counts['p']} leaves the tree"
    )
    assert _looked_at(text) == _looked_at(PAIRS.read_text())


def _looked_at(text: str) -> list[str]:
    """Return the lines of a listing; what is refused today may change a plan tomorrow."""
    return text.replace(":c", ":r").splitlines()


def test_what_is_read_over_cannot_matter(verdicts) -> None:
    found = {pair for pair, verdict in verdicts.items() if verdict == "i"}
    assert sorted(found) == sorted(CANNOT_MATTER)
    assert len(CANNOT_MATTER) <= 60


def test_what_no_text_reaches_has_its_reason(verdicts) -> None:
    found = {pair for pair, verdict in verdicts.items() if verdict == "o"}
    assert sorted(found) == sorted(IN_NO_TEXT)
    assert len(IN_NO_TEXT) <= 30


def test_what_texts_reach_a_line_of_the_parser_makes(verdicts) -> None:
    """So that reading its source finds no less than there is."""
    reached = [pair for pair, verdict in verdicts.items() if verdict in "cir"]
    assert [pair for pair in reached if not can_make(*pair)] == []
    assert len(reached) > 1200


def test_texts_that_are_answered_have_duckdbs_answers() -> None:
    with fuseline.connect(device="cpu") as connection:
        for statement in SETUP:
            connection.sql(statement)
        answered = 0
        for text in (*TEXTS, *FOUND):
            if text.lower().startswith((*CHANGES, "attach", "detach")) or any(
                word in text for word in ("update t", "delete from", "merge into")
            ):
                continue
            if DRAWN.search(text):
                continue
            if not _bound(text, connection.catalog).startswith("refused"):
                assert_same_as_duckdb(text, setup=SETUP, backend="cpu")
                answered += 1
        assert answered > 40
