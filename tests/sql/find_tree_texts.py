"""Texts for arguments of sqlglot's tree that no text of ours has: `python -m tests.sql.find_tree_texts >> tests/sql/tree_texts_found.sql`.

A node with the argument is written by the generators of sqlglot's dialects, put where such a node may stand, and parsed: what comes
back with the argument is a text.  For what no generator writes, a text is put there by hand.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp

from fuseline.sql.parsing.parse import Parser
from fuseline.sql.parsing.pieces import split
from fuseline.sql.parsing.tokens import DUCKDB, for_parser, tokenize
from fuseline.sql.parsing.unread import tree_of
from tests.sql.parser_source import Pair
from tests.sql.test_tree_coverage import PAIRS, all_classes

DIALECTS = ("duckdb", "", "snowflake", "bigquery", "oracle", "mysql", "spark", "clickhouse", "teradata", "tsql", "postgres", "redshift", "doris")  # fmt: skip
LONGEST = 300
TABLES = ("create table w (a int) {}", "create table w {}", "create {} table w (a int)", "create table w as select 1 {}", "create function f() {} as 1")  # fmt: skip
COLUMNS = ("create table w (a int {})", "create table w (a int, {})")
ANYWHERE = (
    "{}", "select {} from t", "select {} i from t", "select i from t {}", "select * from t as x {}", "from t {} join u", "select i::int {}",
    "select f(i {}) from t", "select sum(i) {} from t", "with {} select 1", "insert into t {}", "delete from t {}", "drop table t {}",
    "alter table t {}", "alter table t alter column i {}", "create {} w", *TABLES, *COLUMNS,
)  # fmt: skip
FORMS: tuple[Callable[[], object], ...] = (
    lambda: True, lambda: exp.column("i"), lambda: [exp.column("i")], lambda: exp.Literal.string("x"), lambda: exp.Literal.number(1),
    lambda: exp.to_identifier("a"), lambda: exp.var("X"), lambda: exp.DataType.build("int"), lambda: exp.to_table("t"),
    lambda: exp.select("i").from_("t"), lambda: [exp.Literal.string("x")], lambda: [exp.to_table("t")], lambda: "X",
)  # fmt: skip


def missing() -> set[Pair]:
    return {
        (name, key.removesuffix(":o"))
        for name, *keys in map(str.split, PAIRS.read_text().splitlines())
        for key in keys
        if key.endswith(":o")
    }


def pairs(text: str) -> set[Pair]:
    """The classes and arguments of a text's tree; none where the parser refuses it."""
    try:
        (piece,) = split(text)
        root = Parser(dialect=DUCKDB).parse(for_parser(tokenize(piece), piece), piece.sql)[0]
    except Exception:  # of what was never a text
        return set()
    nodes = tree_of(root).nodes if root is not None else ()
    return {(type(n).__name__, key) for n in nodes for key, value in n.args.items() if value}


def _written(kind: type[exp.Expr], key: str) -> Iterator[str]:
    """How the dialects write a node of a class with an argument, each once."""
    seen = set()
    for form, other in itertools.product(FORMS, (FORMS[1], FORMS[8])):
        needed = [name for name, is_needed in kind.arg_types.items() if is_needed]
        given = {name: [other()] if name == "expressions" else other() for name in needed}
        for dialect in DIALECTS:
            try:
                node = kind(**{**given, key: form()})
                text = node.sql(dialect, unsupported_level=sqlglot.ErrorLevel.IGNORE)
            except Exception:  # of a node that was never parsed
                continue
            text = " ".join(text.split())
            if text and len(text) <= LONGEST and text not in seen:
                seen.add(text)
                yield text


def _places(kind: type[exp.Expr]) -> tuple[str, ...]:
    if issubclass(kind, exp.Property):
        return TABLES
    if issubclass(kind, exp.ColumnConstraintKind):
        return COLUMNS
    return ("select {} from t",) if issubclass(kind, exp.Func | exp.Binary) else ANYWHERE


def texts(wanted: set[Pair]) -> Iterator[str]:
    """Yield a text for each pair that has one; a text may have several."""
    kinds, left = all_classes(), set(wanted)
    for name, key in sorted(wanted):
        tried = (p.format(t) for t in _written(kinds[name], key) for p in _places(kinds[name]))
        for text in tried:
            if (name, key) not in left:
                break
            if found := pairs(text) & left:
                left -= found
                yield text


def main() -> None:
    logging.disable(logging.CRITICAL)  # sqlglot warns of what was never a text
    for text in texts(missing()):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
