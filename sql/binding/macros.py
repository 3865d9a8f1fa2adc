"""Calls of macros, bound as if the macro's text stood in their place, with arguments for its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

from sqlglot import exp

from fuseline.errors import InvalidQuery, ViewText
from fuseline.plan.changes.catalog_objects import Macro
from fuseline.plan.coercion import implicit
from fuseline.plan.types import NULL, DataType, Kind
from fuseline.sql.parsing.parse import parse
from fuseline.sql.parsing.pieces import Piece, mark, span_of

from ..parsing.unread import tree_of, use_all
from .scope import Scope
from .system_macros import SYSTEM_MACROS

_MOST_NESTED = 100  # macros that call others
# How far values widen, beside the bits of integers
_OF_NUMBERS = {Kind.DECIMAL: 200, Kind.FLOAT: 300, Kind.DOUBLE: 400}
_OF_OTHERS, _OF_ANY_TYPE = 1000, 10_000


def macro_of(
    node: exp.Expr, scope: Scope, is_table: bool, around: Sequence[str] = ()
) -> Macro | None:
    """Return the macro that a call of no known function names; `around` are the names of its schema."""
    if not isinstance(node, exp.Anonymous):
        return None
    catalog = scope.session.catalog
    name = catalog.qualified([*around, node.name]) if around else node.name
    found = None if name is None else catalog.macro(name)
    if not around:
        found = found or SYSTEM_MACROS.get(node.name.lower())
    return found if found is not None and found.is_table == is_table else None


def in_schema(call: exp.Expr, scope: Scope) -> exp.Expr | None:
    """Return the text of a macro that is called behind the name of its schema, as of a method's value; None for other calls."""
    around = call.meta.get("around")
    macro = macro_of(call, scope, False, around) if around else None
    if macro is None:
        return None
    schema, *given = call.expressions
    use_all(schema)
    call.set("expressions", given)
    return expanded(macro, call, scope)


def expanded(macro: Macro, node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the tree of a macro's text with the arguments of a call in it; all of it has to be used."""
    if len(scope.session.trees) > _MOST_NESTED * 10:
        raise InvalidQuery(f'The macro "{macro.name}" calls itself.', span_of(node))
    macro, given = _chosen(macro, node, scope)
    for argument in node.expressions:
        use_all(argument)  # copies of it are bound
    tree = parse(Piece(macro.text, 0, len(macro.text)))
    view = ViewText(macro.name, macro.text, "macro")
    mark(tree.root, view)
    body = tree.root if macro.is_table else tree.root.expressions[0].pop()
    holder = exp.Paren(this=body)
    tables = {node.alias_or_name.lower() for node in body.find_all(exp.Table, exp.Subquery)}
    for part in list(holder.find_all(exp.Column)):
        name, fields = part.parts[0].name.lower(), part.parts[1:]
        is_other = name not in given or (fields and name in tables) or is_of_lambda(part, name)
        if is_other or isinstance(part.this, exp.Star):
            continue
        value = _named_here(given[name].copy(), scope)
        if fields:
            value = reduce(_field, fields, cast("exp.Expr", exp.Paren(this=value)))
        written = part.meta.get("written")
        part.replace(value)
        if written is not None:
            value.meta["written"] = written
    root: exp.Expr = holder.this
    root.pop()
    scope.session.trees.append(tree_of(root))
    return root


def _field(struct: exp.Expr, name: exp.Expr) -> exp.Expr:
    return exp.Dot(this=struct, expression=name)


def is_of_lambda(node: exp.Expr, name: str) -> bool:
    """Whether a name in a macro's text is a parameter of a lambda or list comprehension around it."""
    inside, around = node, node.parent
    while around is not None:
        own: list[exp.Expr] = []
        if isinstance(around, exp.Lambda):
            own = around.expressions
        elif isinstance(around, exp.Comprehension) and inside.arg_key != "iterator":
            own = [around.expression, *filter(None, [around.args.get("position")])]
        if name in (parameter.name.lower() for parameter in own):
            return True
        inside, around = around, around.parent
    return False


def _named_here(argument: exp.Expr, scope: Scope) -> exp.Expr:
    """Have the names and subqueries of an argument stand for what they do in the scope of its call, wherever in the macro's text it is."""
    for inner in argument.walk(prune=lambda node: isinstance(node, exp.Query)):
        name = inner.parts[0].name.lower() if isinstance(inner, exp.Column) else ""
        if isinstance(inner, exp.Query) or (name and not is_of_lambda(inner, name)):
            inner.meta.setdefault("scope", scope)
    for inner in argument.walk():
        inner.meta.pop("used", None)
    return argument


def _chosen(macro: Macro, node: exp.Expr, scope: Scope) -> tuple[Macro, dict[str, exp.Expr]]:
    """Return the text of a macro that takes the arguments of a call, and what stands for its parameters.

    Of several it is the one to whose types they widen least, and one without types comes last, as in DuckDB.
    """
    found: list[tuple[int, Macro, dict[str, exp.Expr]]] = []
    for each in (macro, *macro.overloads):
        given = _arguments(each, node)
        far = None if given is None else _widening(each, given, scope)
        if given is not None and far is not None:
            found.append((far, each, given))
    if not found:
        forms = " or ".join(f"({m.written_parameters})" for m in (macro, *macro.overloads))
        raise InvalidQuery(
            f'The arguments do not fit the macro "{macro.name}", which takes {forms}.',
            span_of(node),
        )
    least = min(far for far, _, _ in found)
    nearest = [(each, given) for far, each, given in found if far == least]
    if len(nearest) > 1 and any(not each.types for each, _ in nearest):
        raise InvalidQuery(
            f'Several texts of the macro "{macro.name}" take these arguments: name them.',
            span_of(node),
        )
    chosen, given = nearest[0]
    for name in chosen.parameters:
        if name.lower() not in given:
            default = chosen.defaults[name.lower()]
            given[name.lower()] = parse(Piece(default, 0, len(default))).root
    for name, target in chosen.types.items():
        kind = exp.DataType.build(str(target), dialect="duckdb")
        given[name] = exp.Paren(this=exp.Cast(this=given[name].copy(), to=kind))
    return chosen, given


def _arguments(macro: Macro, node: exp.Expr) -> dict[str, exp.Expr] | None:
    """Return the arguments of a call by parameters, None where they do not fit."""
    given: dict[str, exp.Expr] = {}
    parameters = [name.lower() for name in macro.parameters]
    count = 0
    for argument in node.expressions:
        if isinstance(argument, exp.PropertyEQ | exp.Kwarg):
            name, value = argument.this.name.lower(), argument.expression
        else:
            name, value = parameters[count] if count < len(parameters) else "", argument
            count += 1
        if name not in parameters or name in given:
            return None
        given[name] = value
    return given if {*parameters} <= {*given, *macro.defaults} else None


def _widening(macro: Macro, given: dict[str, exp.Expr], scope: Scope) -> int | None:
    """Return how far the arguments of a call widen to the types of parameters, None where they do not."""
    far = 0
    for name, value in given.items():
        target = macro.types.get(name)
        source = NULL if target is None else scope.bind(value.copy()).type
        if target is not None and not _widens(source, target):
            return None
        if target is None:
            far += _OF_ANY_TYPE
        elif source not in (NULL, target):
            far += _width(target)
    return far


def _widens(source: DataType, target: DataType) -> bool:
    if target.is_decimal and (source.is_integer or source.is_decimal):
        return True  # even to one that does not hold all of its values
    return implicit(source, target)


def _width(target: DataType) -> int:
    """Return which of two types a value widens to: the one for which this is less."""
    if target.is_integer:
        low, high = target.integer_range
        return (high - low).bit_length()
    return _OF_NUMBERS.get(target.kind, _OF_OTHERS)
