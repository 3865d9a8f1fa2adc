"""SQL expressions -> terms over registers.

Three-valued logic ends here, and so do decimals, dates and strings: a decimal is its unscaled integer, a date its day number, a
string the code of its dictionary.  What has no rule below and reads one column of few codes is evaluated on that column's
values beforehand and becomes a table (`lookup`): LIKE, substring, EXTRACT, casts of strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...plan.expr import Call, Case, Cast, ColumnRef, Expr, InList, Literal, columns_of
from ...plan.functions import COMPARISONS, MIRRORED, SCALAR
from ...plan.temporal.ticks import steps
from ...plan.text.concealed_text import concealed_name
from ...plan.types import INT64_DECIMAL_DIGITS, DataType, Kind
from ...plan.udf.python_function import runs_in_python
from .. import loop as ir
from ..program_builder import ProgramBuilder
from ..ranges import I32_MAX, IntegerRange
from ..typed_values import Input, NotFusable, Value, machine_of, machine_of_float, truth
from ..udf.udf_terms import python_value
from .arithmetic import (
    RULES as INTEGER_RULES,
    add,
    as_integer,
    checked,
    convert,
    multiply,
    negate,
    of_doubles,
    rounded,
    subtract,
)
from .calendar_terms import RULES as CALENDAR_RULES, counted_anew
from .compare import compare, compare_with_constant
from .constants import compared_constant, literal, whole_constant
from .lookup import beforehand, has_table, through_table
from .one_dictionary import in_one_dictionary, results_in_one_dictionary

MOST_TESTS = 16  # of a list of values, one after the other


def translate(expr: Expr, kernel: ProgramBuilder) -> Value:
    """Return the value of an expression; raises `NotFusable` with the reason when a kernel cannot hold it."""
    found = kernel.recall(expr)
    if found is None:
        made = _direct(expr, kernel) or through_table(expr, kernel) or _computed(expr, kernel)
        found = kernel.remember(expr, made or _beforehand(expr, kernel))
    return found


def _direct(expr: Expr, kernel: ProgramBuilder) -> Value | None:
    """Translate by rule, or None where only a table can do it."""
    if (called := python_value(expr, kernel, translate, through_table)) is not None:
        return called
    match expr:
        case ColumnRef(column):
            if column in kernel.deferred:
                return kernel.deferred[column]()
            return load(kernel.input(column), kernel)
        case Literal():
            return literal(expr, kernel)
        case Call(function=name, args=args) if name in COMPARISONS:
            return _comparison(name, args, kernel)
        case Call(function=name, args=args) if name in RULES:
            if not all(a.type.fits_register for a in (*args, expr)):
                return None
            return RULES[name](expr, [translate(a, kernel) for a in args], kernel)
        case Case():
            return _case(expr, kernel)
        case InList():
            return _in_list(expr, kernel)
        case Cast():
            return _cast(expr, kernel)
    return None


def _computed(expr: Expr, kernel: ProgramBuilder) -> Value | None:
    """Translate by a rule of many operations, which a table would spare."""
    match expr:
        case Call(function=name, args=args) if name in COMPUTED:
            given = [a for a in args if a.type.fits_register]
            if not given or any(columns_of(a) for a in args if a not in given):
                return None  # parts of an INTERVAL, say
            return COMPUTED[name](expr, [translate(a, kernel) for a in given], kernel)
        case Case():
            return _case(expr, kernel, results_in_one_dictionary(expr, kernel, translate))
        case Cast(operand) if _counts_fewer(operand.type, expr.type):
            return counted_anew(expr, translate(operand, kernel), kernel)
        case Cast(operand, target) if _has_fewer_digits(operand.type, target) and not expr.safe:
            factor = 10 ** (operand.type.scale - target.scale)
            return rounded(translate(operand, kernel), factor, target, kernel)
    return None


def _beforehand(expr: Expr, kernel: ProgramBuilder) -> Value:
    """Have numpy or libcudf evaluate a function, or its argument of two columns.

    Vectors of a CPU do so several times quicker than kernels.  A device would store what it has computed: three functions of doubles
    over 60 M rows took an H200 1.6 ms of 2.0.
    """
    if runs_in_python(expr):
        raise NotFusable("a Python function is not called for rows that no one asked about")
    if not isinstance(expr, Call) or not SCALAR[expr.function].math:
        return beforehand(expr, kernel)
    # Conditions on groups read no table, so that they have no source
    vectors = getattr(kernel.source, "has_vectors", True)
    first, second = (beforehand, _of_doubles) if vectors else (_of_doubles, beforehand)
    try:
        return first(expr, kernel)
    except NotFusable:
        return second(expr, kernel)


def _of_doubles(expr: Expr, kernel: ProgramBuilder) -> Value:
    """Translate a call of a function that kernels have of `math`."""
    assert isinstance(expr, Call)
    return of_doubles(expr, [translate(a, kernel) for a in expr.args])


# Columns and constants


def load(source: Input, kernel: ProgramBuilder) -> Value:
    """Decode a column in registers: base + step * code."""
    valid = kernel.validity(source)
    raw = kernel.code(source)
    if source.machine is not None:
        return Value(raw, valid)
    if source.raw is not None:
        return Value(raw, valid, source.raw)
    if source.column.type.kind is Kind.BOOLEAN:
        if source.base:  # TRUE alone, as code 0
            return truth(ir.Number(True, ir.Machine.BOOL), valid)
        return truth(ir.Apply("!=", (raw, ir.Number(0, raw.type)), ir.Machine.BOOL), valid)
    if source.values is not None:
        return Value(raw, valid, source.interval, source.values)
    interval = source.interval
    machine = machine_of(interval, source.column.type)
    if source.step > I32_MAX:  # as between -2**31 and 0
        machine = ir.Machine.I64
    term: ir.Term = raw if raw.type is machine else ir.Convert(raw, machine)
    if source.step != 1:
        meaning = f"step of {concealed_name(source.column.name)}"
        step = kernel.parameter(source.step, machine, meaning)
        term = ir.Apply("*", (term, step), machine)
    if source.base != 0:
        meaning = f"base of {concealed_name(source.column.name)}"
        base = kernel.parameter(source.base, machine, meaning)
        term = ir.Apply("+", (term, base), machine)
    return Value(term, valid, interval, step=source.step, code=raw)


# Logic


def is_false(value: Value) -> ir.Term:
    """Where a BOOLEAN is FALSE, neither TRUE nor NULL."""
    false = ir.negated(value.term)
    return false if value.valid is None else ir.Apply("&", (false, value.valid), ir.Machine.BOOL)


def _and(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    term = ir.true_and([a.term for a in args])
    assert term is not None
    if all(a.valid is None for a in args):
        return Value(term)
    return Value(term, ir.all_together("|", [term, *(is_false(a) for a in args)]))


def _or(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    term = ir.all_together("|", [a.term for a in args])
    if all(a.valid is None for a in args):
        return Value(term)
    all_false = ir.true_and([is_false(a) for a in args])
    assert all_false is not None
    return Value(term, ir.all_together("|", [term, all_false]))


def _not(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    return Value(is_false(args[0]), args[0].valid)


def _is_null(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    valid = args[0].valid
    return Value(ir.Number(False, ir.Machine.BOOL) if valid is None else ir.negated(valid))


def _is_not_null(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    valid = args[0].valid
    return Value(ir.Number(True, ir.Machine.BOOL) if valid is None else valid)


def _comparison(name: str, args: tuple[Expr, ...], kernel: ProgramBuilder) -> Value | None:
    left, right = args
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return _comparison(MIRRORED[name], (right, left), kernel)
    if isinstance(left, ColumnRef) and isinstance(right, Literal):
        source = kernel.described(left.column)
        is_coded = source is not None and source.codes is not None and source.values is None
        value = whole_constant(right) if is_coded else None
        if source is not None and value is not None:
            raw, valid = kernel.code(source), kernel.validity(source)
            return compare_with_constant(name, raw, source, value, valid, kernel)
    if left.type.kind is not Kind.VARCHAR:
        other = compared_constant(right, kernel) if isinstance(right, Literal) else None
        return compare(name, translate(left, kernel), other or translate(right, kernel))
    if len(columns_of(left) | columns_of(right)) < 2:
        return None
    a, b = in_one_dictionary(translate(left, kernel), translate(right, kernel), kernel)
    return compare(name, a, b)


def _in_list(expr: InList, kernel: ProgramBuilder) -> Value | None:
    if not expr.operand.type.fits_register or _is_long(expr, kernel):
        return None
    tests = [Call("eq", (expr.operand, v), expr.type) for v in expr.values]
    return translate(tests[0] if len(tests) == 1 else Call("or", tuple(tests), expr.type), kernel)


def _is_long(expr: InList, kernel: ProgramBuilder) -> bool:
    """Whether one look into a table is quicker than to compare with each value."""
    if len(expr.values) <= MOST_TESTS or not isinstance(expr.operand, ColumnRef):
        return False
    source = kernel.described(expr.operand.column)
    return source is not None and has_table(source, kernel)


# Arithmetic


def _arithmetic(operation: Callable[[Value, Value, ProgramBuilder], Value]) -> Rule:
    def rule(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
        return checked(operation(args[0], args[1], kernel), expr.type, kernel)

    return rule


def _neg(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    return checked(negate(args[0]), expr.type, kernel)


def _abs(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    value = args[0]
    zero = ir.Number(0, value.term.type)
    minus = negate(value)
    if value.interval is None:
        below: ir.Term = ir.Apply("<", (value.term, zero), ir.Machine.BOOL)
        return Value(ir.Select(below, minus.term, value.term, value.term.type), value.valid)
    interval = value.interval.absolute()
    machine = (
        machine_of(minus.interval.union(value.interval), expr.type)
        if minus.interval
        else ir.Machine.I64
    )
    below = ir.Apply("<", (value.term, zero), ir.Machine.BOOL)
    term = ir.Select(below, convert(minus.term, machine), convert(value.term, machine), machine)
    return checked(Value(term, value.valid, interval), expr.type, kernel)


def _div(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    machine = machine_of_float(expr.type)
    term = ir.Apply("/", (convert(args[0].term, machine), convert(args[1].term, machine)), machine)
    return Value(term, ir.true_and([a.valid for a in args if a.valid is not None]))


def _coalesce(expr: Call, args: list[Value], kernel: ProgramBuilder) -> Value:
    result = args[-1]
    for value in reversed(args[:-1]):
        if value.valid is None:
            result = value
        else:
            known = (
                None if result.valid is None else ir.all_together("|", [value.valid, result.valid])
            )
            chosen = _choose(value.valid, replace(value, valid=None), replace(result, valid=None))
            result = replace(chosen, valid=known)
    return result


# Conditions


def _choose(condition: ir.Term, yes: Value, no: Value) -> Value:
    """CASE WHEN condition THEN yes ELSE no, in registers of the wider type."""
    valid: ir.Term | None = None
    if yes.valid is not None or no.valid is not None:
        always: ir.Term = ir.Number(True, ir.Machine.BOOL)
        valid = ir.Select(condition, yes.valid or always, no.valid or always, ir.Machine.BOOL)
    if yes.values is not no.values:
        raise NotFusable("a CASE over strings of different dictionaries")
    interval, machine = None, yes.term.type
    if yes.interval is not None and no.interval is not None:
        interval = yes.interval.union(no.interval)
        machine = ir.Machine.I32 if interval.fits_i32 else ir.Machine.I64
    term = ir.Select(condition, convert(yes.term, machine), convert(no.term, machine), machine)
    return Value(term, valid, interval, yes.values)


def _case(expr: Case, kernel: ProgramBuilder, texts: Sequence[Value] = ()) -> Value | None:
    """Translate a CASE; where it gives text, `texts` are its results and what it gives else."""
    if not expr.type.fits_register and not texts:
        return None
    result = texts[-1] if texts else translate(expr.default, kernel)
    for place in reversed(range(len(expr.conditions))):
        condition = translate(expr.conditions[place], kernel).term
        then = texts[place] if texts else translate(expr.results[place], kernel)
        result = _choose(condition, then, result)
    return result


# Casts


def _cast(expr: Cast, kernel: ProgramBuilder) -> Value | None:
    source, target = expr.operand.type, expr.type
    exact = source.is_integer or source.is_decimal or source.kind is Kind.BOOLEAN
    if source == target:
        return translate(expr.operand, kernel)
    if exact and target.is_float:
        return _to_float(translate(expr.operand, kernel), source, target)
    if source.kind is Kind.FLOAT and target.kind is Kind.DOUBLE:
        value = translate(expr.operand, kernel)
        return Value(convert(value.term, ir.Machine.F64), value.valid)
    if source.is_temporal and target.is_temporal and not _counts_fewer(source, target):
        return counted_anew(expr, translate(expr.operand, kernel), kernel)
    if source.kind is Kind.DOUBLE and target.is_integer and not expr.safe:
        return as_integer(expr, kernel, translate)
    widened = target.scale - source.scale
    fits = 0 <= widened <= INT64_DECIMAL_DIGITS  # the factor is an int64
    if exact and (target.is_integer or target.is_decimal) and fits and not expr.safe:
        return _scaled(translate(expr.operand, kernel), 10**widened, expr, kernel)
    return None


def _counts_fewer(source: DataType, target: DataType) -> bool:
    """Whether a cast divides dates or ticks, which takes many operations."""
    both = source.is_temporal and target.is_temporal
    return both and (target.kind is Kind.TIME or steps(source, target)[1] > 1)


def _has_fewer_digits(source: DataType, target: DataType) -> bool:
    """Whether a cast rounds a decimal."""
    exact = target.is_integer or target.is_decimal
    return source.is_decimal and source.fits_register and exact and source.scale > target.scale


def _to_float(value: Value, source: DataType, target: DataType) -> Value:
    machine = machine_of_float(target)
    term = convert(value.term, ir.Machine.F64)
    if source.scale:
        # 10**scale is exact in a double up to 22 digits, so one rounding remains, as in DuckDB
        term = ir.Apply(
            "/", (term, ir.Number(float(10**source.scale), ir.Machine.F64)), ir.Machine.F64
        )
    exact = value if value.interval is not None else None
    return Value(convert(term, machine), value.valid, exact=exact, scale=source.scale)


def _scaled(value: Value, factor: int, expr: Cast, kernel: ProgramBuilder) -> Value:
    if value.interval is None:  # a BOOLEAN
        number: ir.Term = ir.Convert(value.term, ir.Machine.I32)
        value = Value(number, value.valid, IntegerRange(0, 1))
    assert value.interval is not None
    if factor == 1:
        return checked(value, expr.type, kernel)
    scale = Value(ir.Number(factor, ir.Machine.I64), None, IntegerRange(factor, factor))
    return checked(multiply(value, scale, kernel), expr.type, kernel)


Rule = Callable[[Call, list[Value], ProgramBuilder], Value]

RULES: dict[str, Rule] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "coalesce": _coalesce,
    "add": _arithmetic(add),
    "sub": _arithmetic(subtract),
    "mul": _arithmetic(multiply),
    "neg": _neg,
    "abs": _abs,
    "div": _div,
    "add_days": _arithmetic(add),
    "sub_days": _arithmetic(subtract),
    "date_minus_date": _arithmetic(subtract),
}
COMPUTED = CALENDAR_RULES | INTEGER_RULES
