"""What the source of the parser can make: each class of sqlglot's tree with the arguments that a line sets.

Beginning at `Parser.parse`, each function is read that a name in a function read before may mean: a method or table of the parser, an
attribute of its dialect, a global.  Of tables by kinds of tokens those entries count whose token the tokenizer makes.  What a
function calls through a variable counts for each class that is handed about.  So too much may be found, and too little may not.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

from fuseline.sql.parsing.parse import Parser
from fuseline.sql.parsing.tokens import DUCKDB

Pair = tuple[str, str]
T = TokenType
# Calls and annotations that name a class and make none
LOOKS = {"isinstance", "issubclass", "find", "find_all", "find_ancestor", "cast", "is_type"}


def _is_kind(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, exp.Expr)


@cache
def _sources(file: str) -> dict[int, list[ast.AST]]:
    """The functions of a file by their first lines."""
    found: defaultdict[int, list[ast.AST]] = defaultdict(list)
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[first].append(node)
        elif isinstance(node, ast.Lambda):
            found[node.lineno].append(node)
    return found


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


@cache
def _tokens() -> frozenset[TokenType]:
    """The kinds of tokens that a text may have: by the tokenizer's tables, and what our reading makes of them."""
    tokenizer = DuckDB.Tokenizer
    tables = (*tokenizer.KEYWORDS.values(), *tokenizer.SINGLE_TOKENS.values())
    formats = (kind for _, kind in tokenizer._FORMAT_STRINGS.values())
    ours = {
        T[name]
        for path in Path(inspect.getfile(Parser)).parent.glob("*.py")
        for name in re.findall(r"TokenType\.([A-Z_]+)", path.read_text())
    }
    return frozenset({*tables, *formats, *ours, *PLAIN})


@dataclass
class Source:
    """What was read, and what it makes."""

    functions: set[types.CodeType] = field(default_factory=set)
    keywords: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    whole: set[str] = field(default_factory=set)  # classes that may get each argument
    handed: set[str] = field(default_factory=set)  # classes that are called through variables
    by_variable: set[str] = field(default_factory=set)  # arguments of calls through variables
    # The same by the function whose parameter is called, and which classes it is called with
    by_parameter: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    given: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    set_later: set[str] = field(default_factory=set)  # arguments that are set in any node
    waiting: list[Any] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    kept: list[Any] = field(default_factory=list)  # so that no id comes again

    def read(self) -> None:
        while self.waiting:
            value = self.waiting.pop()
            if id(value) in self.seen:
                continue
            self.seen.add(id(value))
            self.kept.append(value)
            self._value(value)

    def _value(self, value: Any) -> None:
        match value:
            case type() if _is_kind(value):
                self.handed.add(value.__name__)
            case dict():
                for key, entry in value.items():
                    if not isinstance(key, TokenType) or key in _tokens():
                        self.waiting.append(entry)
                    if _is_kind(key):
                        self.waiting.append(key)
            case list() | tuple() | set() | frozenset():
                self.waiting += value
            case types.MethodType():
                if _is_kind(value.__self__) and value.__name__ == "from_arg_list":
                    self.whole.add(value.__self__.__name__)
                else:
                    self.waiting.append(value.__func__)
            case functools.partial():
                self.waiting += [value.func, *value.args, *value.keywords.values()]
            case classmethod() | staticmethod():
                self.waiting.append(value.__func__)
            case property():
                self.waiting.append(value.fget)
            case types.FunctionType() if value.__module__.startswith(("sqlglot.", "fuseline.sql.")):
                self._function(value)

    def _function(self, function: types.FunctionType) -> None:
        free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closed = {name: cell.cell_contents for name, cell in free}
        self.waiting += [value for value in closed.values() if not _is_kind(value)]
        self.waiting += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if hasattr(function, "__wrapped__"):
            self.waiting.append(function.__wrapped__)
        code = function.__code__
        self.functions.add(code)
        for node in _sources(code.co_filename).get(code.co_firstlineno, ()):
            self._body(node, {**function.__globals__, **closed})

    def _body(self, function: ast.AST, known: dict[str, Any]) -> None:
        named: set[int] = set()  # nodes that name a class without handing it about
        for node in _parts(function):
            if isinstance(node, ast.Call):
                kind = _meant(node.func, known)
                if _is_kind(kind):
                    named.add(id(node.func))
                    self._made(kind, node)
                elif _name(node.func) in LOOKS:
                    named.update(id(n) for a in node.args for n in ast.walk(a))
                else:
                    self._called(node, known, function)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._assigned(node)
            elif isinstance(node, ast.For):
                self.set_later.update(_texts(getattr(node.iter, "elts", ())))
            elif isinstance(node, ast.Dict):
                self.set_later.update(_texts(node.keys))
            elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                self.set_later.update(_texts(node.value.elts))
            elif isinstance(node, ast.Tuple) and node is getattr(function, "body", None):
                self.set_later.update(_texts(node.elts))
            elif isinstance(node, ast.Compare):
                named.update(id(n) for n in ast.walk(node))
        for node in _parts(function):
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in named:
                self._meaning(node, known)

    def _made(self, kind: type[exp.Expr], call: ast.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                self.handed.add(kind.__name__)
            else:
                self.keywords[kind.__name__].add(keyword.arg)
        self.keywords.setdefault(kind.__name__, set())

    def _called(self, call: ast.Call, known: dict[str, Any], function: ast.AST) -> None:
        name = _name(call.func)
        arguments = {k.arg for k in call.keywords if k.arg is not None}
        for argument in (*call.args, *(k.value for k in call.keywords)):
            if _is_kind(kind := _meant(argument, known)):
                self.given[name].add(kind.__name__)
        if name in ("set", "setdefault", "append"):
            self.set_later.update(_texts(call.args[:1]))
        elif name in ("dict", "update"):
            self.set_later |= arguments
        elif name == "from_arg_list" and isinstance(call.func, ast.Attribute):
            owner = _meant(call.func.value, known)
            if _is_kind(owner):
                self.whole.add(owner.__name__)
            else:
                self._by(call.func.value, function).add("*")
        elif isinstance(call.func, ast.Name):
            found = self._by(call.func, function)
            found |= arguments  # and what ** stands for is in a dictionary
            if isinstance(function, ast.FunctionDef) and function.args.kwarg is not None:
                found.add("*")
        elif _is_kind(getattr(Parser, name, None)):
            self.by_variable |= arguments

    def _by(self, called: ast.AST, function: ast.AST) -> set[str]:
        parameters = getattr(function, "args", None)
        names = {a.arg for a in parameters.args + parameters.kwonlyargs} if parameters else set()
        if isinstance(function, ast.FunctionDef) and _name(called) in names:
            return self.by_parameter[function.name]
        return self.by_variable

    def _assigned(self, node: ast.Assign | ast.AnnAssign) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                self.set_later.update(_texts([target.slice]))
            self.set_later.update(_texts(getattr(node.value, "elts", ())))  # of keys in turn

    def _meaning(self, node: ast.Name | ast.Attribute, known: dict[str, Any]) -> None:
        name = _name(node)
        found = []
        if isinstance(node, ast.Name):
            found = [known[name]] if name in known else []
        else:
            tables = [inspect.getattr_static(o, name, None) for o in (Parser, type(DUCKDB), exp)]
            hidden = [vars(base).get(name) for base in Parser.__mro__[1:]]  # what super() means
            found = [*tables, *(h for h in hidden if not isinstance(h, dict))]
        self.waiting += [f for f in found if not inspect.ismodule(f)]


def _parts(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body, without annotations."""
    body = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    yield from _of_block(body)


def _of_block(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of statements that may run: not those behind a token that no text has, or a switch of another dialect."""
    for node in body:
        yield from _of_node(node)
        if isinstance(node, ast.Return | ast.Raise):
            return
        if isinstance(node, ast.If) and _value(node.test) is True and _leaves(node.body):
            return


def _leaves(body: Sequence[ast.AST]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue)


def _of_node(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        value = _value(node.test)
        yield from _of_node(node.test)
        for part, wanted in ((node.body, True), (node.orelse, False)):
            if value is not (not wanted):
                yield from _of_block(part if isinstance(part, list) else [part])
        return
    if isinstance(node, ast.BoolOp):
        ends = isinstance(node.op, ast.Or)
        for operand in node.values:
            yield from _of_node(operand)
            if _value(operand) is ends:
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


def _value(test: ast.AST) -> bool | None:
    """What a condition always is: a token that no text has never matches, and the dialect's switches are known."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = _value(operand)
            return None if value is None else not value
        case ast.BoolOp(op=op, values=operands):
            values = [_value(operand) for operand in operands]
            ends = isinstance(op, ast.Or)
            return ends if ends in values else None if None in values else not ends
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            value = inspect.getattr_static(Parser, name, None)
            return value if isinstance(value, bool) else None
        case ast.Attribute(value=ast.Attribute(attr="dialect"), attr=name):
            value = inspect.getattr_static(DuckDB, name, None)
            return value if isinstance(value, bool) else None
        case ast.Call(func=ast.Attribute(attr="_match" | "_match_pair"), args=args):
            kinds = [_token(a) for a in args]
            return False if any(k is not None and k not in _tokens() for k in kinds) else None
        case ast.Call(
            func=ast.Attribute(attr="_match_texts" | "_match_set"),
            args=[ast.Attribute(attr=name), *_],
        ):
            table = inspect.getattr_static(Parser, name, None)
            return False if table is not None and not table else None
        case ast.NamedExpr(value=value):
            return _value(value)
    return None


def _token(node: ast.AST) -> TokenType | None:
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "TokenType"
    ):
        return T[node.attr]
    return None


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _meant(node: ast.AST, known: dict[str, Any]) -> Any:
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


def _texts(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


@cache
def made() -> Source:
    source = Source()
    source.waiting.append(Parser.parse)
    source.waiting.append(Parser._parse_statement)
    source.read()
    return source


def can_make(name: str, argument: str) -> bool:
    """Whether a line that the parser may reach sets an argument of a class."""
    source = made()
    if name in source.whole:
        return True
    explicit = source.keywords.get(name, set()) | {
        given
        for function, classes in source.given.items()
        if name in classes
        for given in source.by_parameter[function]
    }
    if name in source.handed:
        explicit |= source.by_variable
    elif name not in source.keywords:
        return False
    return bool({"*", argument} & (explicit | source.set_later))
