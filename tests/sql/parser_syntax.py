"""The Python of the parser's source: which statements may run, what conditions always are, and which classes and words expressions name."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

from fuseline.sql.parsing.parse import Parser
from fuseline.sql.parsing.tokens import DUCKDB

T = TokenType
# What the core of the tokenizer makes of no word: of names, numbers and texts
PLAIN = {
    T.VAR,
    T.IDENTIFIER,
    T.STRING,
    T.NUMBER,
    T.PARAMETER,
    T.SEMICOLON,
    T.DCOLON,
    T.HEREDOC_STRING,
}

REPLACED = {T.PLACEHOLDER, T.QDCOLON}  # by parameters with numbers


@cache
def token_kinds() -> frozenset[TokenType]:
    """The kinds of tokens that a text may have: by the tokenizer's tables, and what our reading makes of them."""
    tokenizer = DuckDB.Tokenizer
    tables = (*tokenizer.KEYWORDS.values(), *tokenizer.SINGLE_TOKENS.values())
    formats = (kind for _, kind in tokenizer._FORMAT_STRINGS.values())
    ours = {
        T[name]
        for path in Path(inspect.getfile(Parser)).parent.glob("*.py")
        for name in re.findall(r"TokenType\.([A-Z_]+)", path.read_text())
    }
    return frozenset({*tables, *formats, *ours, *PLAIN}) - REPLACED


@cache
def _by_line(file: str) -> dict[int, list[ast.AST]]:
    """The functions of a file by their first lines."""
    found: defaultdict[int, list[ast.AST]] = defaultdict(list)
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[first].append(node)
        elif isinstance(node, ast.Lambda):
            found[node.lineno].append(node)
    return found


def sources(function: types.FunctionType) -> list[ast.AST]:
    """The trees of a function, of lambdas those of its line."""
    code = function.__code__
    if not function.__module__.startswith(("sqlglot.", "fuseline.sql.")):
        return []
    return _by_line(code.co_filename).get(code.co_firstlineno, [])


def is_kind(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, exp.Expr)


def parts(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body, without annotations."""
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    yield from _of_block(body)


def _of_block(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of statements that may run: not those behind a token that no text has, or a switch of another dialect."""
    for node in body:
        yield from _of_node(node)
        if isinstance(node, ast.Return | ast.Raise):
            return
        if isinstance(node, ast.If) and always(node.test) is True and _leaves(node.body):
            return


def _leaves(body: Sequence[ast.AST]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue)


def _of_node(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        value = always(node.test)
        yield from _of_node(node.test)
        for part, wanted in ((node.body, True), (node.orelse, False)):
            if value is not (not wanted):
                yield from _of_block(part if isinstance(part, list) else [part])
        return
    if isinstance(node, ast.BoolOp):
        ends = isinstance(node.op, ast.Or)
        for operand in node.values:
            yield from _of_node(operand)
            if always(operand) is ends:
                return
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        if name in ("body", "finalbody", "handlers") and isinstance(value, list):
            yield from _of_block(value)
        else:
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from _of_node(part)


def always(test: ast.AST) -> bool | None:
    """What a condition always is: a token that no text has never matches, and the dialect's switches are known."""
    match test:
        case ast.Constant(value=constant):
            return bool(constant)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = always(operand)
            return None if value is None else not value
        case ast.BoolOp(op=op, values=operands):
            values = [always(operand) for operand in operands]
            ends = isinstance(op, ast.Or)
            return ends if ends in values else None if None in values else not ends
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            value = inspect.getattr_static(Parser, name, None)
            return value if isinstance(value, bool) else None
        case ast.Attribute(value=ast.Attribute(attr="dialect") | ast.Name(id="dialect"), attr=name):
            value = inspect.getattr_static(DuckDB, name, "")
            return bool(value) if isinstance(value, bool | None) else None
        case ast.Call(func=ast.Attribute(attr="_match" | "_match_pair"), args=args):
            kinds = [_token(a) for a in args]
            return False if any(k is not None and k not in token_kinds() for k in kinds) else None
        case ast.Compare(ops=[ast.Eq()], comparators=[kind]) if _token(kind) is not None:
            return None if _token(kind) in token_kinds() else False
        case ast.Call(func=ast.Attribute(attr="_match_set"), args=[ast.Tuple(elts=kinds), *_]):
            return None if any(_token(k) in {None, *token_kinds()} for k in kinds) else False
        case ast.Call(
            func=ast.Attribute(attr="_match_texts" | "_match_set"),
            args=[ast.Attribute(attr=name), *_],
        ):
            table = inspect.getattr_static(Parser, name, None)
            if table is None:
                return None
            made = [k for k in table if not isinstance(k, TokenType) or k in token_kinds()]
            return None if made else False
        case ast.Compare(
            left=ast.Attribute(value=ast.Attribute(attr="dialect"), attr="version"),
            ops=[ast.Lt()],
            comparators=[ast.Tuple() as version],
        ):
            return DUCKDB.version < ast.literal_eval(version)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            chosen = always(test)
            return None if chosen is None else always(body if chosen else orelse)
        case ast.NamedExpr(value=value):
            return always(value)
    return None


def _token(node: ast.AST) -> TokenType | None:
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "TokenType"
    ):
        return T[node.attr]
    return None


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def class_meant(node: ast.AST | None, known: dict[str, Any]) -> Any:
    """The class that an expression names, if it is one."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "exp"
    ):
        return getattr(exp, node.attr, None)
    return None


def texts_of(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def surely(statement: ast.stmt, name: str) -> bool:
    """Whether a statement assigns to a name in each of its branches."""
    if isinstance(statement, ast.If):
        return all(
            any(surely(s, name) for s in block) for block in (statement.body, statement.orelse)
        )
    return isinstance(statement, ast.Assign) and name_of(statement.targets[0]) == name


def all_of(test: ast.AST) -> Iterator[ast.AST]:
    """The conditions that hold where a test does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from all_of(part)
    else:
        yield test


def any_of(test: ast.AST) -> list[ast.expr]:
    """The conditions of which none holds where a test does not."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]


def bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """The names that a node assigns to, with what they get where that is one expression."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield target, value
                for part in getattr(target, "elts", ()):
                    yield part, None
        case (
            ast.AnnAssign(target=target, value=ast.AST() as value)
            | ast.NamedExpr(target=target, value=value)
        ):
            yield target, value
        case (
            ast.For(target=target) | ast.comprehension(target=target) | ast.AugAssign(target=target)
        ):
            yield target, None
            for part in getattr(target, "elts", ()):
                yield part, None


def before(outer: ast.AST, inner: ast.AST) -> list[ast.stmt]:
    """The statements of a block before one of them."""
    for block in (getattr(outer, "body", None), getattr(outer, "orelse", None)):
        if isinstance(block, list) and inner in block:
            return block[: block.index(inner)]
    return []


def closed(kind: type[exp.Expr]) -> set[type[exp.Expr]]:
    """A class and all below it."""
    found, waiting = {kind}, [kind]
    for one in waiting:
        more = [sub for sub in one.__subclasses__() if sub not in found]
        found.update(more)
        waiting += more
    return found
