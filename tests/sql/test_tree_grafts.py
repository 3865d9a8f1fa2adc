"""What no answered text has, set by hand: such an argument changes the plan, or the query is refused.

Each pair that `tree_pairs.txt` has as `o` or `r` is put into the trees of texts that are answered: an argument into nodes of
its class, and a class that none of these texts has in the place of others.  Binding then refuses it, or the plan differs.  So
it does no harm whether sqlglot's parser has a way to make it.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlglot import exp

import fuseline
from fuseline.errors import FuselineError, Span
from fuseline.sql.binding.bind_expr import bind
from fuseline.sql.binding.bind_query import bind_query
from fuseline.sql.binding.scope import Parameters, Scope, Session
from fuseline.sql.parsing.parse import parse
from fuseline.sql.parsing.pieces import Piece, split
from fuseline.sql.parsing.unread import Tree, refusal, refuse_unused, tree_of
from fuseline.sql.statements.bind_statement import bind_statement
from tests.sql.test_tree_coverage import PAIRS, SETUP, TEXTS, Pair, all_classes

Change = Callable[[Tree], exp.Expr]
A_CLASS = 2  # texts that a pair is tried in
# Where a class that no text has is put, a place of each kind that a query has.
PLACES = (
    ("Select", "expressions"), ("Where", "this"), ("From", "this"), ("Select", "joins"), ("Group", "expressions"),
    ("Ordered", "this"), ("Limit", "expression"), ("Cast", "to"), ("Sum", "this"), ("CTE", "this"),
    ("Union", "expression"), ("Properties", "expressions"), ("ColumnDef", "constraints"), ("Schema", "expressions"),
)  # fmt: skip
PLACE = Span(9_000, 9_007)  # of what is grafted
# Refusals that call the argument as its users do.
OTHER_WORDS = [
    (
        "CTE",
        "key_expressions",
        "USING KEY is supported in WITH RECURSIVE alone, of a query that reads itself.",
    ),
    ("Select", "laterals", "LATERAL VIEW is not supported."),
    ("Select", "pivots", "PIVOT is not supported."),
    ("Table", "when", "AT is not supported."),
    ("Values", "pivots", "PIVOT is not supported here."),
]


@dataclass
class Grafted(Session):
    """Binds a statement of which something in the tree was changed."""

    change: Change | None = None

    def parse(self, piece: Piece) -> exp.Expr:
        tree = parse(piece)
        if piece.text != self.text:  # a default or check of a table, kept with it
            self.trees.append(tree)
            return tree.root
        assert self.change is not None
        self.trees.append(tree_of(self.change(tree)))
        return self.trees[-1].root


@dataclass(frozen=True)
class Place:
    """A node of a text that is answered, and its plan."""

    text: str
    number: int
    plan: str


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """sqlglot's generator, which error messages use, warns of what was never a text."""
    caplog.set_level(logging.ERROR, "sqlglot")


@pytest.fixture(scope="module")
def connection() -> Iterator[fuseline.Connection]:
    with fuseline.connect(device="cpu") as opened:
        for statement in SETUP:
            opened.sql(statement)
        yield opened


def _bound(connection: fuseline.Connection, text: str, change: Change) -> str | FuselineError:
    """Return the plan with its columns numbered from 0, or the error where the statement is refused."""
    session = Grafted(connection.catalog, Parameters(()), bind_query, bind, text)
    session.change = change
    try:
        statement = bind_statement(next(split(text)), Scope(session))
        for tree in session.trees:
            refuse_unused(tree)
    except Exception as error:
        refused = refusal(error, session.trees) or error
        if isinstance(refused, FuselineError):
            return refused
        raise
    numbers: dict[str, str] = {}
    return re.sub(
        r"\bid=(\d+)", lambda m: numbers.setdefault(m[1], f"#{len(numbers)}"), repr(statement)
    )


def _in_no_answer() -> list[Pair]:
    return [
        (name, key[:-2])
        for name, *keys in map(str.split, PAIRS.read_text().splitlines())
        for key in keys
        if key.endswith((":o", ":r"))
    ]


@pytest.fixture(scope="module")
def answered(connection) -> dict[str, list[Place]]:
    """The nodes of texts that are answered, by class."""
    found: defaultdict[str, list[Place]] = defaultdict(list)
    for text in TEXTS:
        trees: list[Tree] = []  # none of a statement that is read by its words
        plan = _bound(connection, text, lambda tree, trees=trees: trees.append(tree) or tree.root)
        if isinstance(plan, str) and trees:
            for number, node in enumerate(parse(next(split(text))).nodes):
                found[type(node).__name__].append(Place(text, number, plan))
    return dict(found)


def _graft() -> exp.Column:
    """Return a column of a name and a place that no text has."""
    return _placed(exp.column("grafted"))


def _placed(root: exp.Expr) -> Any:
    for node in root.walk():
        node.meta.update(first=PLACE.start, last=PLACE.end)
    return root


def _forms() -> tuple[object, ...]:
    return True, _graft(), [_graft()]


def _names(error: FuselineError, *words: str) -> bool:
    """Whether a refusal is of the graft: it has its place, or one of the words."""
    span = error.span
    if span is not None and span.start < PLACE.end and span.end > PLACE.start:
        return True
    shown = {word.strip("_").replace("_", " ").upper() for word in (*words, "grafted")}
    return any(word in error.message.upper() for word in shown)


def test_arguments_set_by_hand_are_refused_by_name_or_change_the_plan(connection, answered) -> None:
    tried, ignored, unnamed = set(), [], []
    for name, key in _in_no_answer():
        for place in answered.get(name, [])[:A_CLASS]:
            for form in range(len(_forms())):

                def change(tree: Tree, place=place, key=key, form=form) -> exp.Expr:
                    tree.nodes[place.number].set(key, _forms()[form])
                    return tree.root

                tried.add((name, key))
                found = _bound(connection, place.text, change)
                if found == place.plan:
                    ignored.append((name, key, place.text))
                elif isinstance(found, FuselineError) and not _names(found, name, key):
                    unnamed.append((name, key, found.message))
    assert ignored == []
    assert sorted(set(unnamed)) == OTHER_WORDS
    assert len(tried) > 200


def _with(place: Place, key: str, kind: type[exp.Expr]) -> Change:
    """Return the change that puts a node of a class, with all of its arguments, into the place."""

    def change(tree: Tree) -> exp.Expr:
        node, graft = tree.nodes[place.number], kind(**dict.fromkeys(kind.arg_types, True))
        for argument in kind.arg_types:
            graft.set(argument, [_graft()] if argument == "expressions" else _graft())
        _placed(graft)
        value = node.args[key]
        first = value[0] if isinstance(value, list) else value
        graft.meta.update({note: first.meta[note] for note in ("written",) if note in first.meta})
        node.set(key, [graft, *value[1:]] if isinstance(value, list) else graft)
        return tree.root

    return change


def test_classes_set_by_hand_are_refused_by_name(connection, answered) -> None:
    kinds = all_classes()
    classes = sorted(
        name
        for name in {name for name, _ in _in_no_answer()} - set(answered)
        if issubclass(kinds[name], exp.Expression)  # others have no nodes
    )
    places = []
    for name, key in PLACES:
        for place in answered[name]:
            if parse(next(split(place.text))).nodes[place.number].args.get(key):
                places.append((place, key))
                break
    assert len(places) == len(PLACES)
    wrong = []
    for name in classes:
        for place, key in places:
            found = _bound(connection, place.text, _with(place, key, kinds[name]))
            if not isinstance(found, FuselineError) or not _names(found, name):
                wrong.append((name, place.text, key, str(found)))
    assert wrong == []
    assert len(classes) > 100
