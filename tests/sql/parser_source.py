"""What the source of the parser can make: each class of sqlglot's tree with the arguments that a line sets.

Beginning at `Parser.parse`, each function is read that a name in a function read before may mean: a method or table of the parser, an
attribute of its dialect, a global.  Of tables by kinds of tokens those entries count whose token the tokenizer makes.  What a
function calls through a variable counts for each class that is handed about.  So too much may be found, and too little may not.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlglot import TokenType, exp

from fuseline.sql.parsing.parse import Parser
from fuseline.sql.parsing.tokens import DUCKDB
from tests.sql.parser_receivers import Receivers
from tests.sql.parser_syntax import (
    class_meant,
    is_kind,
    name_of,
    parts,
    sources,
    token_kinds,
)

Pair = tuple[str, str]
MODULES = ("sqlglot.", "fuseline.sql.parsing.", "fuseline.sql.grammar.ranks")
MANY = 20  # arguments of a call with *
Names = defaultdict[str, set[str]]
T = TokenType
# Calls and annotations that name a class and make none
LOOKS = {"isinstance", "issubclass", "find", "find_all", "find_ancestor", "cast", "is_type"}
DIALECTS = {"get_or_raise"}  # what it calls through a variable makes no node


@dataclass
class Source:
    """What was read, and what it makes."""

    functions: set[types.CodeType] = field(default_factory=set)
    keywords: Names = field(default_factory=lambda: defaultdict(set))
    whole: set[str] = field(default_factory=set)  # classes that may get each argument
    handed: set[str] = field(default_factory=set)  # classes that are called through variables
    by_variable: set[str] = field(default_factory=set)  # arguments of calls through variables
    # The same by the function whose parameter is called, and which classes it is called with
    by_parameter: Names = field(default_factory=lambda: defaultdict(set))
    given: Names = field(default_factory=lambda: defaultdict(set))
    places: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # of calls
    passed: Names = field(default_factory=lambda: defaultdict(set))  # keywords of calls, by name
    set_later: Names = field(default_factory=lambda: defaultdict(set))  # arguments of its nodes
    # Classes that get arguments of nodes of others
    copies: list[tuple[set[str], set[str], set[str]]] = field(default_factory=list)
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
            case type() if is_kind(value):
                self.handed.add(value.__name__)
            case dict():
                for key, entry in value.items():
                    if value is Parser.FUNCTIONS and key in Parser.FUNCTION_PARSERS:
                        continue  # which are looked up first
                    if not isinstance(key, TokenType) or key in token_kinds():
                        self.waiting.append(entry)
                    if is_kind(key):
                        self.waiting.append(key)
            case list() | tuple() | set() | frozenset():
                self.waiting += value
            case types.MethodType():
                if is_kind(value.__self__) and value.__name__ == "from_arg_list":
                    self.whole.add(value.__self__.__name__)
                else:
                    self.waiting.append(value.__func__)
            case functools.partial():
                self.waiting += [value.func, *value.args, *value.keywords.values()]
            case classmethod() | staticmethod():
                self.waiting.append(value.__func__)
            case property():
                self.waiting.append(value.fget)
            case types.FunctionType() if value.__module__.startswith(MODULES):
                self._function(value)

    def _function(self, function: types.FunctionType) -> None:
        free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closed = {name: cell.cell_contents for name, cell in free}
        self.waiting += [value for value in closed.values() if not is_kind(value)]
        self.waiting += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        if hasattr(function, "__wrapped__"):
            self.waiting.append(function.__wrapped__)
        code = function.__code__
        self.functions.add(code)
        for node in sources(function):
            self._body(node, {**function.__globals__, **closed})

    def _body(self, function: ast.AST, known: dict[str, Any]) -> None:
        named: set[int] = set()  # nodes that name a class without handing it about
        receivers = Receivers(function, known)
        for node in parts(function):
            if isinstance(node, ast.Call):
                kinds = receivers.called(node.func)
                if kinds:
                    named.update(id(n) for n in ast.walk(node.func) if receivers.called(n))
                    for kind in kinds:
                        self._made(kind, node, receivers)
                elif name_of(node.func) in LOOKS:
                    named.update(id(n) for a in node.args for n in ast.walk(a))
                elif name_of(node.func) in ("set", "append"):
                    self._set(node, receivers)
                else:
                    named |= self._called(node, receivers)
            elif isinstance(node, ast.Compare):
                named.update(id(n) for n in ast.walk(node))
        for node in parts(function):
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in named:
                self._meaning(node, known)

    def _made(self, kind: type[exp.Expr], call: ast.Call, receivers: Receivers) -> None:
        self.keywords[kind.__name__] |= self._keywords(call, receivers)

    def _keywords(self, call: ast.Call, receivers: Receivers) -> set[str]:
        """The arguments of a call, without those that are never anything; what ** stands for is a dictionary of the function, or its own."""
        function = receivers.function
        found = set()
        for k in call.keywords:
            if k.arg and not receivers.never(k.value):
                given = receivers.parameter(k.value)
                found.add(k.arg if given is None else f"{k.arg}?{' '.join(map(str, given))}")
        if any(k.arg is None for k in call.keywords):
            found |= receivers.dictionary_keys()
            if getattr(getattr(function, "args", None), "kwarg", None) is not None:
                found.add("**" + getattr(function, "name", ""))
        return found

    def _set(self, call: ast.Call, receivers: Receivers) -> None:
        if (
            isinstance(call.func, ast.Attribute)
            and len(call.args) > 1
            and not receivers.never(call.args[1])
        ):
            keys = receivers.keys(call.args[0])
            kinds = {kind.__name__ for kind in receivers.receivers(call)}
            if keys and (copied := receivers.copied(call.args[1], call.args[0])):
                self.copies.append((kinds, keys, {kind.__name__ for kind in copied}))
            else:
                for kind in kinds:
                    self.set_later[kind] |= {"*"} if keys is None else keys

    def _called(self, call: ast.Call, receivers: Receivers) -> set[int]:
        known, function = receivers.known, receivers.function
        name = name_of(call.func)
        self.places[name] = max(
            self.places[name],
            *(i + 1 for i, a in enumerate(call.args) if not receivers.never(a)),
            0,
            0,
        )
        if any(isinstance(a, ast.Starred) for a in call.args):
            self.places[name] = len(call.args) + MANY
        called = receivers.method(call.func)
        handled = set()
        for place, argument in (*enumerate(call.args), *((k.arg, k.value) for k in call.keywords)):
            if is_kind(kind := class_meant(argument, known)):
                self.given[name].add(kind.__name__)
                if called is not None and place is not None and called.only_calls(place):
                    handled.update(id(n) for n in ast.walk(argument))
        self.passed[name] |= self._keywords(call, receivers)
        if name == "from_arg_list" and isinstance(call.func, ast.Attribute):
            owner = class_meant(call.func.value, known)
            if is_kind(owner):
                self.whole.add(owner.__name__)
            else:
                self._by(call.func.value, function).add("*")
        elif (
            not isinstance(call.func, ast.Attribute)
            and not isinstance(known.get(name), types.FunctionType | types.BuiltinFunctionType)
            and getattr(function, "name", "") not in DIALECTS
        ):
            self._by(call.func, function).update(self._keywords(call, receivers))
        elif is_kind(getattr(Parser, name, None)):
            self.by_variable |= self._keywords(call, receivers)
        return handled

    def _by(self, called: ast.AST, function: ast.AST) -> set[str]:
        parameters = getattr(function, "args", None)
        names = {a.arg for a in parameters.args + parameters.kwonlyargs} if parameters else set()
        if isinstance(function, ast.FunctionDef) and name_of(called) in names:
            return self.by_parameter[function.name]
        return self.by_variable

    def _meaning(self, node: ast.Name | ast.Attribute, known: dict[str, Any]) -> None:
        """Read what a name may mean, but not `convert`, which makes nodes of Python's values."""
        name = name_of(node)
        found = []
        if isinstance(node, ast.Name):
            found = [known[name]] if name in known else []
        elif isinstance(node.value, ast.Call) and name_of(node.value.func) == "super":
            found = [vars(base)[name] for base in Parser.__mro__[1:] if name in vars(base)]
        else:
            found = [inspect.getattr_static(o, name, None) for o in (Parser, type(DUCKDB), exp)]
        self.waiting += [f for f in found if not inspect.ismodule(f) and f is not exp.convert]

    def is_made(self, name: str) -> bool:
        given = any(
            name in classes
            for function, classes in self.given.items()
            if self.by_parameter[function]
        )
        return given or name in self.keywords or name in self.handed

    def makes(self, name: str, argument: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class may get an argument, maybe as a copy of one of another class."""
        if argument in self.arguments(name):
            return True
        return any(
            name in kinds
            and argument in keys
            and any(self.makes(other, argument, seen | {name}) for other in others - seen - {name})
            for kinds, keys, others in self.copies
        )

    def arguments(self, name: str) -> set[str]:
        """The arguments that a class may get, and those that functions are called with which hand their keywords on."""
        found = {*self.keywords.get(name, ()), *self.set_later.get(name, ())}
        for function, classes in self.given.items():
            if name in classes:
                found |= self.by_parameter[function]
        if name in self.handed:
            found |= self.by_variable
        while more := {a for f in found if f[:2] == "**" for a in self._handed_on(f[2:])} - found:
            found |= more
        return {f.split("?")[0] for f in found if "?" not in f or self._is_given(f.split("?")[1])}

    def _is_given(self, parameter: str) -> bool:
        """Whether a call gives a function its parameter."""
        function, place, name = parameter.split()
        keywords = set(self.passed[function])
        for handed in [k for k in keywords if k[:2] == "**"]:
            keywords |= self._handed_on(handed[2:])
        return name in keywords or int(place) < self.places[function]

    def _handed_on(self, function: str) -> set[str]:
        return self.passed[function] if function else self.by_variable


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
    if not source.is_made(name):
        return False
    return "*" in source.arguments(name) or source.makes(name, argument)
