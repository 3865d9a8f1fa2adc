"""Expressions as text, close to SQL: `l_extendedprice * (1 - l_discount)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime

from .. import expr as ex
from ..functions import COMPARISONS, SCALAR
from ..logical import Logical
from ..temporal import ticks
from ..types import Kind
from ..udf.python_function import PythonCall, PythonFold
from ..window.window_call import WHOLE, Over, WindowCall, WindowFrame
from .uuid_text import uuid_text

# Binding strength: a part is put in parentheses when it binds less than its place asks for.
OR, AND, NOT, COMPARISON, OTHER, SUM, PRODUCT, UNARY, ATOM = range(9)

_STRENGTHS = {
    **{SCALAR[name].sign: COMPARISON for name in COMPARISONS},
    **dict.fromkeys(("&", "|", "<<", ">>", "||"), OTHER),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", "/", "//", "%"), PRODUCT),
}
_INFIX = {r.name: (r.sign, _STRENGTHS[r.sign]) for r in SCALAR.values() if r.sign in _STRENGTHS}
_PREFIX = {r.name: r.signature[0] for r in SCALAR.values() if r.signature[:2] in ("- ", "~ ")}

NameOf = Callable[[ex.Column], str]
SubqueryOf = Callable[[Logical], str]
LiteralOf = Callable[[ex.Literal], str]


def _name(column: ex.Column) -> str:
    return column.name


def _subquery(plan: Logical) -> str:
    return "subquery"


def literal_text(literal: ex.Literal) -> str:
    """Return a constant as SQL writes it."""
    value = literal.value
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if literal.type.is_enum:
            return "'" + literal.type.names[value].replace("'", "''") + "'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes() if literal.type.kind is Kind.UUID:
            return f"uuid '{uuid_text(value)}'"
        case bytes():
            return "'" + "".join(f"\\x{b:02X}" for b in value) + "'::blob"
        case datetime():
            return f"timestamp '{value}'"
        case date():
            return f"date '{value}'"
        case ex.Interval():
            return f"interval '{interval_text(value)}'"
        case int() if literal.type.is_ticks:
            return f"{str(literal.type).lower()} '{ticks.text(value, literal.type)}'"
        case float() if literal.type.kind in (Kind.DOUBLE, Kind.FLOAT):
            return repr(value)
    return f"{value:f}" if literal.type.is_decimal else str(value)


def expression(
    expr: ex.Expr,
    name_of: NameOf = _name,
    subquery_of: SubqueryOf = _subquery,
    literal_of: LiteralOf = literal_text,
) -> str:
    """Return an expression as text; `name_of` names columns, `subquery_of` stands for the plan of a subquery."""
    return _Printer(name_of, subquery_of, literal_of).text(expr)


class _Printer:
    def __init__(self, name_of: NameOf, subquery_of: SubqueryOf, literal_of: LiteralOf) -> None:
        self.name_of = name_of
        self.subquery_of = subquery_of
        self.literal_of = literal_of

    def text(self, expr: ex.Expr, strength: int = OR) -> str:
        written, own = self._write(expr)
        return f"({written})" if own < strength else written

    def list(self, exprs: Sequence[ex.Expr]) -> str:
        return ", ".join(self.text(e) for e in exprs)

    def _write(self, expr: ex.Expr) -> tuple[str, int]:
        """Return the text and how strongly its outermost operator binds."""
        match expr:
            case ex.Literal():
                return self.literal_of(expr), ATOM
            case ex.ColumnRef(column=column):
                return self.name_of(column), ATOM
            case ex.Call(function="not", args=(ex.InList() as inner,)):
                return self._membership(inner, "not in"), COMPARISON
            case ex.Call():
                return self._call(expr)
            case ex.Cast():
                return self._cast(expr), ATOM
            case ex.Case():
                return self._case(expr), ATOM
            case ex.InList():
                return self._membership(expr, "in"), COMPARISON
            case ex.ListMap() | ex.ListReduce() | ex.Try() | PythonCall() | PythonFold():
                return self._with_function(expr), ATOM
            case ex.AggregateCall():
                return self._aggregate(expr), ATOM
            case WindowCall() | Over():
                return self._window(expr), ATOM
            case ex.SortKey():
                return self.text(expr.expr) + order_text(expr.descending, expr.nulls_first), OR
            case ex.ScalarSubquery(plan=plan):
                return f"scalar({self.subquery_of(plan)})", ATOM
            case ex.Exists(plan=plan):
                return f"exists({self.subquery_of(plan)})", ATOM
            case ex.Quantified():
                return self._quantified(expr), COMPARISON
        return f"{type(expr).__name__}({self.list(expr.children)})", ATOM

    def _call(self, call: ex.Call) -> tuple[str, int]:
        function, args = call.function, call.args
        if function in ("and", "or"):
            own = AND if function == "and" else OR
            return f" {function} ".join(self.text(a, own + 1) for a in args), own
        if function == "not":
            return f"not {self.text(args[0], NOT)}", NOT
        if function in ("is_null", "is_not_null"):
            words = function.replace("_", " ")
            return f"{self.text(args[0], OTHER)} {words}", COMPARISON
        if function in ("like", "ilike"):
            escape = f" escape {self.text(args[2])}" if len(args) > 2 else ""
            sides = f"{self.text(args[0], OTHER)} {function} {self.text(args[1], OTHER)}"
            return sides + escape, COMPARISON
        if function in _PREFIX:
            return f"{_PREFIX[function]}{self.text(args[0], UNARY)}", UNARY
        symbol, own = _INFIX.get(function, ("", ATOM))
        if symbol:
            # Left-associative: the right side of a - b needs parentheses where the left does not.
            first, *rest = args
            left = self.text(first, own + 1 if own == COMPARISON else own)
            return f" {symbol} ".join([left, *(self.text(a, own + 1) for a in rest)]), own
        return f"{function}({self.list(args)})", ATOM

    def _cast(self, cast: ex.Cast) -> str:
        if cast.safe:
            return f"try_cast({self.text(cast.operand)} as {cast.type})"
        return f"{self.text(cast.operand, ATOM)}::{cast.type}"

    def _case(self, case: ex.Case) -> str:
        branches = "".join(
            f" when {self.text(c)} then {self.text(r)}"
            for c, r in zip(case.conditions, case.results, strict=True)
        )
        return f"case{branches} else {self.text(case.default)} end"

    def _membership(self, expr: ex.InList, word: str) -> str:
        return f"{self.text(expr.operand, OTHER)} {word} ({self.list(expr.values)})"

    def _with_function(
        self, expr: ex.ListMap | ex.ListReduce | ex.Try | PythonCall | PythonFold
    ) -> str:
        if isinstance(expr, PythonCall | PythonFold):
            return f"{expr.function.name}({self.list(expr.args)})"
        if isinstance(expr, ex.Try):
            given = dict(zip(expr.captured, expr.captures, strict=True))
            return f"try({self.text(ex.substitute(expr.body, given.get))})"
        operand, body = self.text(expr.operand), self.text(expr.body)
        if isinstance(expr, ex.ListReduce):
            names = ", ".join(self.name_of(p) for p in expr.parameters if p.name)
            initial = "" if expr.initial is None else f", {self.text(expr.initial)}"
            return f"list_reduce({operand}, lambda {names}: {body}{initial})"
        names = ", ".join(self.name_of(p) for p in (expr.element, expr.place) if p.name)
        condition = "" if expr.condition is None else f" if {self.text(expr.condition)}"
        return f"[{body} for {names} in {operand}{condition}]"

    def _aggregate(self, call: ex.AggregateCall) -> str:
        if call.function == "count_star":
            inside = "*"
        else:
            inside = ("distinct " if call.distinct else "") + self.list(call.args)
        if call.order:
            inside += f" order by {self.list(call.order)}"
        name = "count" if call.function == "count_star" else call.function
        condition = "" if call.filter is None else f" filter (where {self.text(call.filter)})"
        return f"{name}({inside}){condition}"

    def _window(self, expr: WindowCall | Over) -> str:
        if isinstance(expr, Over):
            parts = [f"partition by {self.list(expr.partition)}"] if expr.partition else []
            parts += [f"order by {self.list(expr.order)}"] if expr.order else []
            return f"{self._window(expr.call)} over ({' '.join(parts)})"
        text = self._aggregate(expr.aggregate)
        if expr.ignore_nulls:
            text = text.replace(")", " ignore nulls)", 1)
        if expr.frame in (WindowFrame(), WHOLE):
            return text
        bounds = [self.text(e) for e in (expr.start, expr.end) if e is not None]
        return f"{text} [{expr.frame.text}{': ' if bounds else ''}{', '.join(bounds)}]"

    def _quantified(self, expr: ex.Quantified) -> str:
        operands = self.list(expr.operands)
        left = self.text(expr.operands[0], OTHER) if len(expr.operands) == 1 else f"({operands})"
        return f"{left} {_INFIX[expr.op][0]} {expr.quantifier}({self.subquery_of(expr.plan)})"


def order_text(descending: bool, nulls_first: bool) -> str:
    """Return what follows a sort key; ascending with NULLs last is not worth a word."""
    return (" desc" if descending else "") + (" nulls first" if nulls_first else "")


def interval_text(value: ex.Interval) -> str:
    """Return the parts of an interval that are not zero."""
    parts = [
        f"{amount} {unit}{'' if amount in (1, -1) else 's'}"
        for amount, unit in (
            (value.months, "month"),
            (value.days, "day"),
            (value.micros, "microsecond"),
        )
        if amount
    ]
    return " ".join(parts) or "0 days"
