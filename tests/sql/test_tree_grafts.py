"""What no text reaches, set by hand: an argument that no text of ours has changes the plan, or the query is refused.

Each pair that `tree_pairs.txt` has as `o` is put into the trees of texts that are answered: an argument into nodes of
its class, and a class that none of these texts has in the place of others.  Binding then refuses it, or the plan differs.  So
it does no harm whether sqlglot's parser has a way to make it.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from sqlglot import exp

import fuseline
from fuseline.errors import FuselineError
from fuseline.sql.bind_expr import bind
from fuseline.sql.bind_query import bind_query
from fuseline.sql.parse import parse
from fuseline.sql.pieces import Piece, split
from fuseline.sql.scope import Parameters, Scope, Session
from fuseline.sql.statements import bind_statement
from fuseline.sql.unread import Tree, refuse_unused, tree_of
from tests.sql.test_tree_coverage import PAIRS, SETUP, TEXTS, Pair

Change = Callable[[Tree], exp.Expr]
A_CLASS = 2  # texts that a pair is tried in
# Where a class that no text has is put, a place of each kind that a query has.
PLACES = (
    ("Select", "expressions"),
    ("Where", "this"),
    ("From", "this"),
    ("Select", "joins"),
    ("Group", "expressions"),
    ("Ordered", "this"),
    ("Limit", "expression"),
    ("Cast", "to"),
    ("Sum", "this"),
    ("CTE", "this"),
    ("Union", "expression"),
    ("Properties", "expressions"),
    ("ColumnDef", "constraints"),
    ("Schema", "expressions"),
)


@dataclass
class Grafted(Session):
    """Binds a statement of which something in the tree was changed."""

    change: Change | None = None

    def parse(self, piece: Piece) -> exp.Expr:
        tree = parse(piece)
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


def _bound(connection: fuseline.Connection, text: str, change: Change) -> str | None:
    """Return the plan with its columns numbered from 0, or None where the statement is refused."""
    session = Grafted(connection.catalog, Parameters(()), bind_query, bind, text)
    session.change = change
    try:
        statement = bind_statement(next(split(text)), Scope(session))
        for tree in session.trees:
            refuse_unused(tree)
    except FuselineError:
        return None
    except Exception:  # the binder reads the argument, and expects a node of another class there
        return None
    numbers: dict[str, str] = {}
    return re.sub(
        r"\bid=(\d+)", lambda m: numbers.setdefault(m[1], f"#{len(numbers)}"), repr(statement)
    )


def _in_no_text() -> list[Pair]:
    return [
        (name, key.removesuffix(":o"))
        for name, *keys in map(str.split, PAIRS.read_text().splitlines())
        for key in keys
        if key.endswith(":o")
    ]


@pytest.fixture(scope="module")
def answered(connection) -> dict[str, list[Place]]:
    """The nodes of texts that are answered, by class."""
    found: defaultdict[str, list[Place]] = defaultdict(list)
    for text in TEXTS:
        plan = _bound(connection, text, lambda tree: tree.root)
        if plan is not None:
            for number, node in enumerate(parse(next(split(text))).nodes):
                found[type(node).__name__].append(Place(text, number, plan))
    return dict(found)


def _forms() -> tuple[object, ...]:
    return True, exp.column("i"), [exp.column("i")]


def _classes() -> dict[str, type[exp.Expr]]:
    found: dict[str, type[exp.Expr]] = {}
    waiting: list[type[exp.Expr]] = [exp.Expr]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            found[kind.__name__] = kind
            waiting.append(kind)
    return found


def test_arguments_set_by_hand_are_refused_or_change_the_plan(connection, answered) -> None:
    tried, ignored = set(), []
    for name, key in _in_no_text():
        for place in answered.get(name, [])[:A_CLASS]:
            for form in range(len(_forms())):

                def change(tree: Tree, place=place, key=key, form=form) -> exp.Expr:
                    tree.nodes[place.number].set(key, _forms()[form])
                    return tree.root

                tried.add((name, key))
                if _bound(connection, place.text, change) == place.plan:
                    ignored.append((name, key, place.text))
    assert ignored == []
    assert len(tried) > 200


def _with(place: Place, key: str, kind: type[exp.Expr]) -> Change:
    """Return the change that puts a node of a class, with all of its arguments, into the place."""

    def change(tree: Tree) -> exp.Expr:
        node, graft = tree.nodes[place.number], kind(**dict.fromkeys(kind.arg_types, True))
        for argument in kind.arg_types:
            graft.set(argument, exp.column("i"))
        value = node.args[key]
        node.set(key, [graft, *value[1:]] if isinstance(value, list) else graft)
        return tree.root

    return change


def test_classes_set_by_hand_are_refused(connection, answered) -> None:
    kinds = _classes()
    classes = sorted({name for name, _ in _in_no_text()} - set(answered))
    places = []
    for name, key in PLACES:
        for place in answered[name]:
            if parse(next(split(place.text))).nodes[place.number].args.get(key):
                places.append((place, key))
                break
    assert len(places) == len(PLACES)
    taken = [
        (name, place.text, key)
        for name in classes
        for place, key in places
        if _bound(connection, place.text, _with(place, key, kinds[name])) is not None
    ]
    assert taken == []
    assert len(classes) > 100
