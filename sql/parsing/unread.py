"""Nothing in a query is ignored: what no binder has used is refused, with its place.

A binder calls `use` for the nodes that its plan is made from, and nobody else does.  When a statement is bound,
`refuse_unused` compares: a node of sqlglot's tree that nobody used, or an argument that is no node (a word, a switch) and not
in `FLAGS`, is a part of the query without an effect, and raises `Unsupported`.  So a clause at a place where no
binder looks for it, and syntax that a new sqlglot begins to parse, are refused without a line of code.

Binders mark nodes since only they know what they use: an accessor that notes each read would count what column names and
error messages look at, and costs four times as much.  Nodes are marked one by one, and as subtrees (`use_all`) only
where DuckDB makes nothing of them either.  Over the TPC-H queries all of it is 5 % of the time of binding.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from fuseline.errors import FuselineError, Span, UnknownName, Unsupported
from fuseline.sql.parsing.pieces import span_of

from ...records import dataclass
from .text_shape import SlotNode

_MOST_SHOWN = 60
_NO_FLAGS: frozenset[str] = frozenset()

# Class -> its arguments that are words or switches and that its binders read.
_READ: dict[type[exp.Expr], str] = {
    exp.Alter: "kind exists",
    exp.AlterColumn: "drop allow_null",
    exp.Anonymous: "this",
    exp.Array: "value_constructor",
    exp.Boolean: "this",
    exp.BitString: "this",
    exp.ByteString: "this",
    exp.HexString: "this",
    exp.CTE: "materialized",
    exp.ColumnDef: "exists",
    exp.Columns: "unpack",
    exp.Create: "kind replace exists unique",
    exp.DataType: "this kind nested",
    exp.Drop: "kind exists",
    exp.Describe: "style",
    exp.Except: "distinct by_name",
    exp.Fetch: "direction",
    exp.GenerateSeries: "is_end_exclusive",
    exp.Group: "all",
    exp.ILike: "negate",
    exp.Identifier: "this quoted",
    exp.Insert: "by_name alternative default",
    exp.Intersect: "distinct by_name",
    exp.Interval: "fraction_in_string",
    exp.Join: "kind side method",
    exp.Like: "negate",
    exp.LimitOptions: "rows percent",
    exp.Literal: "this is_string",
    SlotNode: "this is_string",
    exp.NotNullColumnConstraint: "allow_null",
    exp.Ordered: "desc nulls_first",
    exp.Pad: "is_left",
    exp.Parameter: "this",
    exp.Pivot: "unpivot include_nulls",
    exp.Placeholder: "this",
    exp.RawString: "this",
    exp.Table: "ordinality",
    exp.Trim: "position",
    exp.Union: "distinct by_name",
    exp.Unnest: "offset",
    exp.Var: "this",
    exp.When: "matched source",
    exp.Window: "over",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.With: "recursive",
    exp.WithDataProperty: "no",
}
# Those that repeat what DuckDB does anyway; sqlglot sets them for its other dialects.
_IDLE: dict[type[exp.Expr], str] = {
    exp.Concat: "safe coalesce",
    exp.ConcatWs: "safe coalesce",
    exp.Count: "big_int",
    exp.Drop: "cascade restrict",
    exp.Greatest: "ignore_nulls",
    exp.Least: "ignore_nulls",
    exp.ParseJSON: "is_literal",
    exp.Pivot: "using columns pivot_column_naming",
    exp.RegexpExtract: "null_if_pos_overflow",
    exp.RegexpReplace: "single_replace",
    exp.TryCast: "safe",
}
FLAGS: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(f"{_READ.get(kind, '')} {_IDLE.get(kind, '')}".split())
    for kind in (*_READ, *_IDLE)
}
# Argument -> the classes that binders expect there without a look, since the parser makes no others.
_HOLDS: dict[str, tuple[type[exp.Expr], ...]] = {
    "from_": (exp.From,),
    "group": (exp.Group,),
    "having": (exp.Having,),
    "joins": (exp.Join,),
    "limit": (exp.Limit, exp.Fetch),
    "offset": (exp.Offset,),
    "order": (exp.Order,),
    "to": (exp.DataType, exp.Identifier, exp.Interval),
    "where": (exp.Where,),
    "with_": (exp.With,),
}
_COMPARISONS = frozenset([exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE])
_DISTINCT = frozenset([exp.NullSafeEQ, exp.NullSafeNEQ])
_COMPARED = _COMPARISONS | _DISTINCT


@dataclass(frozen=True, slots=True)
class Misread:
    """The error of a text that the grammar does not take; `certain` where what was meant is known, so that it is no syntax of DuckDB's that we lack."""

    error: FuselineError
    certain: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """One parsed statement: its nodes, children behind their parents, and those arguments that no binder reads."""

    nodes: Sequence[exp.Expr]
    unread: Sequence[tuple[exp.Expr, str]]
    fault: FuselineError | None = None  # of a token that is no part of the tree
    misread: Misread | None = None  # of a token that the grammar cannot go on with
    chain: exp.Expr | None = None  # `a < b < c`, which DuckDB does not take

    @property
    def root(self) -> exp.Expr:
        return self.nodes[0]


def tree_of(root: exp.Expr) -> Tree:
    """Walk `root`; sqlglot's walks, which keep an order, take three times as long."""
    nodes, unread = [root], []
    chain = None
    for node in nodes:  # which grows
        if (
            type(node) in _COMPARED and chain is None and _is_chain(node)
        ):  # while it has parentheses
            chain = node
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                nodes.append(_bare(value) if type(value) is exp.Paren else value)
            elif isinstance(value, list):
                children = [
                    _bare(child) if type(child) is exp.Paren else child
                    for child in value
                    if isinstance(child, exp.Expr)
                ]
                nodes += children
                if len(children) < len(value):
                    unread.append((node, key))
            elif value and key not in FLAGS.get(type(node), _NO_FLAGS):
                unread.append((node, key))
    return Tree(nodes, unread, chain=chain)


def _is_chain(node: exp.Expr) -> bool:
    left, right = type(node.args.get("this")), type(node.args.get("expression"))
    if type(node) in _DISTINCT:
        return left in _DISTINCT
    return left in _COMPARED or right in _COMPARISONS


def _bare(node: exp.Expr) -> exp.Expr:
    """Put what parentheses hold in their place: `order by (1)` sorts by the first column, as without them."""
    inner = node
    while type(inner) is exp.Paren:
        inner = inner.this
    if node.meta_get("written") is not None:  # an item's text, of which its name is made
        inner.meta["written"] = node.meta["written"]
    node.replace(inner)
    return inner


def use(*nodes: exp.Expr) -> None:
    """Note that the plan depends on each of the nodes, as its class says."""
    for node in nodes:
        node.meta["used"] = True


def use_all(root: exp.Expr) -> None:
    """Note that a subtree is read over on purpose: there is nothing that it could change."""
    use(*tree_of(root).nodes)


def refuse_unused(tree: Tree) -> None:
    """Raise `Unsupported` for the first part of a bound statement that nobody used, `ParseError` for a token of no part."""
    for node in tree.nodes:
        if not node.meta_get("used"):
            if not isinstance(node, exp.CTE):
                raise _refusal(node)
            use_all(node)  # DuckDB does not look into an entry of WITH that nobody names either
    for node, key in tree.unread:
        raise _unread(node, key)
    if tree.misread is not None:
        raise tree.misread.error
    if tree.fault is not None:
        raise tree.fault


def refusal(error: Exception, trees: Sequence[Tree]) -> FuselineError | None:
    """Return what to raise for what a binder raised over trees: None for the same, which says best what is wrong.

    What a wrong text means to sqlglot is no matter: its `order` in `select order from t` is a column.  And a binder that falls over a
    part that no text of ours has refuses that part.
    """
    for tree in trees:
        if tree.misread is None:
            continue
        wrong = tree.misread.error
        if isinstance(error, Unsupported) and not tree.misread.certain:
            if error.span is None:
                return Unsupported(f"{error.message} {wrong.message}", wrong.span)
        elif tree.misread.certain or _reaches(error, wrong):
            return wrong
    beyond = (
        FuselineError,
        RecursionError,
        MemoryError,
        OSError,
    )  # what no part of a text is to blame for
    return None if isinstance(error, beyond) else _strange(trees)


def _reaches(error: Exception, wrong: FuselineError) -> bool:
    """Whether an error is not one of a part of the text that ends before the place of another."""
    if not isinstance(error, FuselineError) or error.span is None or wrong.span is None:
        return not isinstance(error, UnknownName)
    return error.span.end > wrong.span.start


def _strange(trees: Sequence[Tree]) -> FuselineError | None:
    """Return the refusal of the first argument that is not of a class that binders take for granted."""
    for tree in trees:
        for node, key in tree.unread:
            return _unread(node, key)
        for node in tree.nodes:
            held = _HOLDS.get(node.arg_key or "")
            listed = node.index is not None
            if held and (not isinstance(node, held) or listed != (node.arg_key == "joins")):
                return _refusal(node)
    return None


def _unread(node: exp.Expr, key: str) -> Unsupported:
    word = key.strip("_").replace("_", " ").upper()
    return Unsupported(f"{word} is not supported here.", _place(node))


def _refusal(node: exp.Expr) -> Unsupported:
    if isinstance(node.parent, exp.Func):
        return Unsupported("This argument is not supported.", _place(node))
    return Unsupported(f"{_shown(node)} is not supported here.", _place(node))


def _place(node: exp.Expr) -> Span | None:
    """Return where a node stands; words without a name or number in them have the place of what is around them."""
    found: exp.Expr | None = node
    while found is not None and span_of(found) is None:
        found = found.parent
    return span_of(found)


def _shown(node: exp.Expr) -> str:
    """Return a part of a query as DuckDB would write it, for those that have no place of their own."""
    written = ""
    with suppress(Exception):  # sqlglot's generator, which is not made for parts
        written = node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE).strip()
    return written if 0 < len(written) <= _MOST_SHOWN else "This part of the query"
