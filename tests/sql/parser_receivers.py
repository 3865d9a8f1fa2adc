"""Which classes a node may be of that a line of the parser sets an argument of: by what was assigned to its name, by `isinstance`, and
by the types that sqlglot's own check holds for true.
"""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.sql.parsing.parse import Parser
from tests.sql.parser_syntax import (
    all_of,
    always,
    any_of,
    before,
    bindings,
    class_meant,
    closed,
    is_kind,
    name_of,
    parts,
    sources,
    surely,
    texts_of,
    token_kinds,
)

GROW = ("append", "extend", "add", "update", "insert")
# What a name is where the source does not say so: what _parse_types makes is a type until it puts it into a cast, as its last step
SURE = {("_parse_types", "this", "expressions"): exp.DataType}
DEPTH = 6  # of names that stand for others


class Receivers:
    """The names of one function."""

    def __init__(self, function: ast.AST, known: dict[str, Any]) -> None:
        self.function = function
        imported = [n for n in ast.walk(function) if isinstance(n, ast.ImportFrom)]
        names = [alias for statement in imported for alias in statement.names]
        self.known = {**known, **{a.asname or a.name: getattr(exp, a.name, None) for a in names}}
        self.parents = {id(c): n for n in ast.walk(function) for c in ast.iter_child_nodes(n)}
        arguments = [a for a in ast.walk(function) if isinstance(a, ast.arg)]
        self.hints = {a.arg: a.annotation for a in arguments}
        self.written = {
            name_of(n.target): n.annotation
            for n in ast.walk(function)
            if isinstance(n, ast.AnnAssign)
        }

    def called(self, function: ast.AST) -> list[type[exp.Expr]]:
        """The classes that a call makes: of one, or of a choice between some."""
        if isinstance(function, ast.IfExp):
            both = [self.called(function.body), self.called(function.orelse)]
            return [*both[0], *both[1]] if all(both) else []
        if isinstance(function, ast.Name) and function.id not in self.hints:
            bound = [pair for node in parts(self.function) for pair in bindings(node)]
            chosen = [v and self.called(v) for t, v in bound if name_of(t) == function.id]
            if chosen:
                return [kind for kinds in chosen for kind in kinds] if all(chosen) else []
        kind = class_meant(function, self.known)
        return [kind] if is_kind(kind) else []

    def keys(self, key: ast.AST) -> set[str] | None:
        """The arguments that a key names; None where a table names them."""
        if isinstance(key, ast.Constant):
            return texts_of([key])
        if found := self._of_table(key):
            return found
        for node in ast.walk(self.function):
            if isinstance(node, ast.For) and name_of(key) in map(
                name_of, getattr(node.target, "elts", ())
            ):
                own = getattr(getattr(self.function, "args", None), "kwarg", None)
                if own is not None and ast.unparse(node.iter) == f"{own.arg}.items()":
                    return {"**" + self.function.name}
            if isinstance(node, ast.For) and name_of(node.target) == name_of(key):
                if found := texts_of(getattr(node.iter, "elts", ())):
                    return found
                if isinstance(node.iter, ast.Attribute) and self.called(node.iter.value):
                    return set(getattr(self.called(node.iter.value)[0], node.iter.attr))
                table = inspect.getattr_static(Parser, name_of(node.iter), None)
                table = table or getattr(exp, name_of(node.iter), None)
                if table and all(isinstance(name, str) for name in table):
                    return set(table)
        return None

    def _of_table(self, key: ast.AST) -> set[str]:
        """The arguments that the functions of a table return: `key, value = parser(self)`, where `parser = self.TABLE[kind]`."""
        found: set[str] = set()
        values = {name_of(t): v for n in parts(self.function) for t, v in bindings(n)}
        for node in parts(self.function):
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=[named, *_])], value=ast.Call(func=called)):
                    table = values.get(name_of(called))
                    if name_of(named) == name_of(key) and isinstance(table, ast.Subscript):
                        entries = inspect.getattr_static(Parser, name_of(table.value))
                        for kind, entry in entries.items():
                            if kind in token_kinds():
                                for tree in sources(entry):
                                    found |= texts_of(n for n in ast.walk(tree))
        return found

    def parameter(self, value: ast.AST) -> tuple[str, int, str] | None:
        """The function, place and name of a parameter that a value is, and that is nothing unless a call gives it."""
        if not isinstance(self.function, ast.FunctionDef) or not isinstance(value, ast.Name):
            return None
        names = [a.arg for a in self.function.args.args]
        defaults = dict(zip(reversed(names), reversed(self.function.args.defaults), strict=False))
        assigned = [
            t for n in parts(self.function) for t, _ in bindings(n) if name_of(t) == value.id
        ]
        if value.id not in defaults or always(defaults[value.id]) is not False or assigned:
            return None
        return self.function.name, names.index(value.id) - (names[0] == "self"), value.id

    def never(self, value: ast.AST, depth: int = 0) -> bool:
        """Whether an expression is never anything: False, None, or a name or call that is nothing else."""
        if depth > DEPTH or always(value) is False:
            return always(value) is False
        match value:
            case ast.BoolOp(op=ast.Or(), values=values):
                return all(self.never(v, depth + 1) for v in values)
            case ast.BoolOp(op=ast.And(), values=values):
                return any(self.never(v, depth + 1) for v in values)
            case ast.Name(id=name) if name not in self.hints:
                walk = [pair for node in parts(self.function) for pair in bindings(node)]
                values = [v for t, v in walk if name_of(t) == name]
                grows = any(
                    isinstance(n, ast.Attribute) and name_of(n.value) == name and n.attr in GROW
                    for n in parts(self.function)
                )
                return (
                    bool(values)
                    and not grows
                    and all(v is not None and self.never(v, depth + 1) for v in values)
                )
            case ast.List(elts=[]):
                return True
            case ast.Call():
                function = self._function(value.func)
                trees = sources(function) if isinstance(function, types.FunctionType) else []
                return bool(trees) and all(
                    node.value is None
                    or Receivers(tree, function.__globals__).never(node.value, depth + 2)
                    for tree in trees
                    for node in parts(tree)
                    if isinstance(node, ast.Return | ast.Yield)
                )
        return False

    def dictionary_keys(self) -> set[str]:
        """The keys of dictionaries that the function writes."""
        found = set()
        for node in parts(self.function):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= texts_of(key for key, value in pairs if not self.never(value))
            elif isinstance(node, ast.Assign) and not self.never(node.value):
                keys = [t.slice for t in node.targets if isinstance(t, ast.Subscript)]
                found |= texts_of(keys) | {"*" for key in keys if not isinstance(key, ast.Constant)}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Subscript):
                key = node.value.slice  # elements[key].append(x)
                found |= texts_of([key]) if isinstance(key, ast.Constant) else {"*"}
            elif isinstance(node, ast.Call) and name_of(node.func) in ("dict", "update"):
                found |= {k.arg for k in node.keywords if k.arg and not self.never(k.value)}
        return found

    def only_calls(self, place: int | str) -> bool:
        """Whether the function does nothing with a parameter but to call it and to compare it."""
        if not isinstance(self.function, ast.FunctionDef):
            return False
        names = [a.arg for a in (*self.function.args.args, *self.function.args.kwonlyargs)]
        names = names[1:] if names[:1] == ["self"] else names
        name = place if isinstance(place, str) else names[place] if place < len(names) else ""
        used = [n for n in ast.walk(self.function) if isinstance(n, ast.Name) and n.id == name]
        parents = [self.parents[id(n)] for n in used]
        return bool(name) and all(
            isinstance(p, ast.Compare) or (isinstance(p, ast.Call) and p.func is n)
            for p, n in zip(parents, used, strict=True)
        )

    def copied(self, value: ast.AST, key: ast.AST) -> set[type[exp.Expr]]:
        """The classes whose argument of the same name a value is; none where it is none."""
        walk = [pair for node in ast.walk(self.function) for pair in bindings(node)]
        for source in [v for t, v in walk if name_of(t) == name_of(value) != ""] or [value]:
            match source:
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(value=owner, attr="args"), attr="get"),
                    args=[ast.Name() as got],
                ) if got.id == name_of(key):
                    return self.kinds(owner)
        return set()

    def receivers(self, call: ast.Call) -> set[type[exp.Expr]]:
        """The classes of a node that gets an argument."""
        of, name = getattr(self.function, "name", ""), name_of(call.func.value)
        for key in self.keys(call.args[0]) or ():
            if (of, name, key) in SURE:
                return closed(SURE[of, name, key])
        return self.kinds(call.func.value)

    def kinds(self, node: ast.AST, depth: int = 0) -> set[type[exp.Expr]]:
        """The classes that an expression may have; all where nothing is known."""
        match node:
            case _ if depth > DEPTH:
                return closed(exp.Expr)
            case ast.Constant(value=None):
                return set()
            case ast.IfExp(body=one, orelse=other):
                return self.kinds(one, depth + 1) | self.kinds(other, depth + 1)
            case ast.BoolOp(op=op, values=values):
                possible = values if isinstance(op, ast.Or) else values[-1:]
                return set().union(*(self.kinds(part, depth + 1) for part in possible))
            case ast.Attribute():
                return self._around(node) or closed(exp.Expr)
            case ast.Name():
                return self._named(node, depth)
            case ast.Call():
                return self._returned(node, depth)
        return closed(exp.Expr)

    def _named(self, node: ast.Name, depth: int) -> set[type[exp.Expr]]:
        """What a name may be at a place: the walk goes up through the statements before it, to one that says what it is."""
        found: set[type[exp.Expr]] = set()
        inner: ast.AST = node
        while id(inner) in self.parents:
            outer = self.parents[id(inner)]
            for earlier in reversed(before(outer, inner)):
                if surely(earlier, node.id):
                    return found | self._assigned(earlier, node.id, depth)
                if kinds := self._left_by_return(earlier, node.id):
                    return found | kinds
                found |= self._assigned(earlier, node.id, depth)
            if isinstance(outer, ast.If | ast.While) and inner in outer.body:
                if kinds := self._tested(outer.test, node.id):
                    return found | kinds
                if kinds := self._assigned(outer.test, node.id, depth):
                    return found | kinds
            if isinstance(outer, ast.For | ast.While):
                found |= self._assigned(outer, node.id, depth)
            inner = outer
        return found | (
            self._annotated(self.written.get(node.id) or self.hints.get(node.id))
            or closed(exp.Expr)
        )

    def _assigned(self, statement: ast.AST, name: str, depth: int) -> set[type[exp.Expr]]:
        """What a name may get in a statement."""
        found: set[type[exp.Expr]] = set()
        for node in ast.walk(statement):
            for target, value in bindings(node):
                if isinstance(target, ast.Name) and target.id == name:
                    found |= closed(exp.Expr) if value is None else self.kinds(value, depth + 1)
        return found

    def _left_by_return(self, statement: ast.stmt, name: str) -> set[type[exp.Expr]]:
        """The classes of a name behind `if not isinstance(name, ...): return`."""
        if not isinstance(statement, ast.If) or not isinstance(statement.body[-1], ast.Return):
            return set()
        for test in any_of(statement.test):
            if isinstance(test, ast.UnaryOp) and (found := self._is_instance(test.operand, name)):
                return found
        return set()

    def _around(self, node: ast.AST) -> set[type[exp.Expr]]:
        """The classes that the conditions around an attribute leave for it."""
        inner = node
        while id(inner) in self.parents:
            outer = self.parents[id(inner)]
            tested = isinstance(outer, ast.If) and inner in outer.body
            if tested and (kinds := self._tested(outer.test, ast.unparse(node))):
                return kinds
            inner = outer
        return set()

    def _tested(self, test: ast.AST, name: str) -> set[type[exp.Expr]]:
        for part in all_of(test):
            if found := self._is_instance(part, name):
                return found
        return set()

    def _returned(self, call: ast.Call, depth: int) -> set[type[exp.Expr]]:
        if made := self.called(call.func):
            return set(made)
        name = name_of(call.func)
        if name == "expression" and call.args:
            return self.kinds(call.args[0], depth + 1)
        if ast.unparse(call.func) == "t.cast":
            return self._annotated(call.args[0]) or closed(exp.Expr)
        function = self._function(call.func)
        hint = getattr(function, "__annotations__", {}).get("return")
        owner = class_meant(getattr(call.func, "value", None), self.known)
        if hint == "Self" and is_kind(owner):
            return closed(owner)
        found = (
            self._annotated(ast.parse(hint, mode="eval").body) if isinstance(hint, str) else set()
        )
        if found and exp.Expr not in found:
            return found
        return self._by_returns(function, depth) or closed(exp.Expr)

    def _function(self, called: ast.AST) -> Any:
        if isinstance(called, ast.Name):
            return self.known.get(called.id)
        if not isinstance(called, ast.Attribute):
            return None
        if isinstance(called.value, ast.Call) and name_of(called.value.func) == "super":
            owner: Any = DuckDBParser
        else:
            known = {"self": Parser, "exp": exp}.get(name_of(called.value))
            owner = known or class_meant(called.value, self.known)
        found = inspect.getattr_static(owner, called.attr, None)
        return getattr(found, "__func__", found)

    def method(self, called: ast.AST) -> Receivers | None:
        """The names of a function that is called."""
        function = self._function(called)
        trees = sources(function) if isinstance(function, types.FunctionType) else []
        return Receivers(trees[0], function.__globals__) if len(trees) == 1 else None

    def _by_returns(self, function: Any, depth: int) -> set[type[exp.Expr]]:
        """What the return statements of a function say, whose type says nothing."""
        if not isinstance(function, types.FunctionType):
            return set()
        found: set[type[exp.Expr]] = set()
        for tree in sources(function):
            inside = Receivers(tree, function.__globals__)
            for node in ast.walk(tree):
                if isinstance(node, ast.Return) and node.value is not None:
                    found |= inside.kinds(node.value, depth + 1)
                    if exp.Expr in found:
                        return found
        return found

    def _annotated(self, hint: ast.AST | None) -> set[type[exp.Expr]]:
        """The classes of a type; none where it is none of the tree's."""
        match hint:
            case None:
                return set()
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                one, other = self._annotated(left), self._annotated(right)
                empty = [s for s, f in ((left, one), (right, other)) if not f]
                if all(isinstance(s, ast.Constant) and s.value is None for s in empty):
                    return one | other
                return set()
            case ast.Constant(value=str(text)):
                return self._annotated(ast.parse(text, mode="eval").body)
        kind = class_meant(hint, {**vars(exp), **self.known})
        return closed(kind) if is_kind(kind) else set()

    def _is_instance(self, test: ast.AST, name: str) -> set[type[exp.Expr]]:
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[tested, kinds]) if (
                ast.unparse(getattr(tested, "target", tested)) == name
            ):
                if isinstance(kinds, ast.Tuple):
                    found = [class_meant(kind, self.known) for kind in kinds.elts]
                elif isinstance(kinds, ast.Attribute) and name_of(kinds.value) == "self":
                    found = list(inspect.getattr_static(Parser, kinds.attr))
                else:
                    meant = class_meant(kinds, self.known)
                    found = list(meant) if isinstance(meant, tuple) else [meant]
                if all(map(is_kind, found)):
                    return set().union(*(closed(kind) for kind in found))
        return set()
