"""A Python function's bytecode as terms: what has no loops is the same as an expression of SQL, on every target.

One walk goes over the instructions, all jumps of which lead forward.  Where paths meet, a variable is that of the path that was taken; a
doubt counts on its own path alone.  What no term stands for raises `NoTerm`, and Numba compiles the function as a whole.
"""

from __future__ import annotations

import dis
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, ModuleType

from ...records import dataclass
from ..loop import Machine, Name, Number, Term, all_together, negated, true_and
from ..program_builder import ProgramBuilder
from ..typed_values import Value
from .python_image import python_of
from .python_operators import (
    NoTerm,
    PythonOperators,
    as_real,
    as_truth,
    as_whole,
    chosen,
    is_real,
    value_of_constant,
)

MOST_INSTRUCTIONS = 400  # of a function, and of those that it calls
_NULL = object()  # what CPython puts beside a callable
_NOTHING = object()  # a variable that has no value, or one of two kinds
_SIGNS: Mapping[str, Callable[..., object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_MATH: Mapping[object, tuple[str, int]] = {
    getattr(math, name): (name, count)
    for names, count in (("sqrt exp log log10 log2 sin cos tan asin acos atan", 1), ("atan2", 2))
    for name in names.split()
}
_IDLE = ("RESUME", "NOP", "PRECALL", "CACHE", "COPY_FREE_VARS", "TO_BOOL", "EXTENDED_ARG")


@lru_cache(maxsize=256)
def function_of(image: str) -> FunctionType:
    """Return the function of an image as Python has it."""
    made: FunctionType = python_of(image, lambda function: function, {})
    return made


@dataclass(frozen=True)
class _State:
    """What holds where a path of a function is: its conditions, all of them true, its variables and its stack."""

    path: tuple[Term, ...]
    known: Mapping[str, object]
    stack: tuple[object, ...]

    def pushed(self, *values: object) -> _State:
        return replace(self, stack=(*self.stack, *values))

    def popped(self, count: int = 1) -> _State:
        return replace(self, stack=self.stack[: len(self.stack) - count])


@dataclass(frozen=True)
class Mixed:
    """A whole number on one path and a double on another, as a double: it can be returned where that is declared."""

    real: Value


class FunctionWalk:
    """One call of a function; `reached` are conditions of the call, `budget` counts instructions."""

    def __init__(
        self, kernel: ProgramBuilder, reached: tuple[Term, ...], budget: list[int]
    ) -> None:
        self._kernel = kernel
        self._reached = reached
        self._budget = budget
        self._waiting: defaultdict[int, list[_State]] = defaultdict(list)
        self._returned: list[tuple[tuple[Term, ...], object]] = []
        self._function: FunctionType

    def value(
        self,
        function: FunctionType,
        args: tuple[object, ...],
        settle: Callable[[object], Value] = value_of_constant,
    ) -> object:
        """Return what a function gives for arguments, each result settled; raises `NoTerm`."""
        self._function, code = function, function.__code__
        self._budget[0] -= len(code.co_code) // 2
        if self._budget[0] < 0 or code.co_cellvars or code.co_exceptiontable:
            raise NoTerm
        defaults = function.__defaults__ or ()
        wanted = code.co_argcount - len(args)
        if not 0 <= wanted <= len(defaults):
            raise NoTerm
        given = (*args, *defaults[len(defaults) - wanted :])
        state: _State | None = _State((), dict(zip(code.co_varnames, given, strict=False)), ())
        for step in dis.get_instructions(code):
            for other in self._waiting.pop(step.offset, ()):
                state = other if state is None else self._met(state, other)
            if state is not None and step.opname not in _IDLE:
                state = self._after(step, state)
        *others, (_, found) = self._returned
        for path, made in reversed(others):
            found = self._chosen(self._all(path), made, found, settle)
        return found

    def _chosen(
        self, condition: Term, yes: object, no: object, settle: Callable[[object], Value]
    ) -> object:
        """One of two results, of tuples part by part: Python 3.12 returns in several places where code ends in a condition."""
        if yes is no or (type(yes) is type(no) and yes == no):
            return yes
        if isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no):
            pairs = zip(yes, no, strict=True)
            return tuple(self._chosen(condition, a, b, value_of_constant) for a, b in pairs)
        return chosen(condition, settle(yes), settle(no))

    # Paths

    def _all(self, path: tuple[Term, ...]) -> Term:
        return true_and(list(path)) or Number(True, Machine.BOOL)

    def _operators(self, state: _State) -> PythonOperators:
        return PythonOperators(self._kernel, true_and([*self._reached, *state.path]))

    def _met(self, one: _State, other: _State) -> _State:
        """Return the state where two paths meet."""
        shared = 0
        for a, b in zip(one.path, other.path, strict=False):
            if a != b:
                break
            shared += 1
        first, second = one.path[shared:], other.path[shared:]
        condition = self._all(first)
        if not isinstance(condition, Name | Number):
            condition = self._kernel.name(condition, "path")
        if len(one.stack) != len(other.stack):
            raise NoTerm
        known = {
            name: self._either(condition, value, other.known[name])
            for name, value in one.known.items()
            if name in other.known
        }
        stack = tuple(
            self._either(condition, a, b) for a, b in zip(one.stack, other.stack, strict=True)
        )
        return _State((*one.path[:shared], *_or(first, second)), known, stack)

    def _either(self, condition: Term, one: object, other: object) -> object:
        if one is other or (type(one) is type(other) and one == other):
            return one
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            pairs = zip(one, other, strict=True)
            return tuple(self._either(condition, a, b) for a, b in pairs)
        try:
            values = value_of_constant(one), value_of_constant(other)
        except NoTerm:
            return _NOTHING  # an error where it is read
        mixed = is_real(values[0]) is not is_real(values[1])
        try:
            found = chosen(condition, *(map(as_real, values) if mixed else values))
        except NoTerm:
            return _NOTHING
        named = replace(found, term=self._kernel.name(found.term, "either"))
        return Mixed(named) if mixed else named

    def _jump(self, to: int, state: _State, condition: object, when: bool) -> _State | None:
        """Have a path go to another place where a condition is `when`; return the one that goes on."""
        if not isinstance(condition, Value):
            if bool(condition) is when:
                self._waiting[to].append(state)
                return None
            return state
        truth = self._kernel.name(as_truth(condition), "condition")
        taken, other = (truth, negated(truth)) if when else (negated(truth), truth)
        self._waiting[to].append(replace(state, path=(*state.path, taken)))
        return replace(state, path=(*state.path, other))

    # Instructions

    def _after(self, step: dis.Instruction, state: _State) -> _State | None:
        """Return the state after an instruction, None where the path ends; raises `NoTerm`."""
        name, argument = step.opname, step.argval
        jumps = _JUMPS.get(name)
        if jumps is not None:
            return self._jump(argument, state.popped(), state.stack[-1], jumps)
        if name.endswith("_NONE"):  # which no argument is
            is_none = state.stack[-1] is None
            return self._jump(argument, state.popped(), is_none, not name.endswith("_NOT_NONE"))
        match name:
            case "RETURN_VALUE" | "RETURN_CONST":
                found = argument if name == "RETURN_CONST" else state.stack[-1]
                self._returned.append((state.path, found))
                return None
            case "JUMP_FORWARD":
                self._waiting[argument].append(state)
                return None
            case "JUMP_IF_TRUE_OR_POP" | "JUMP_IF_FALSE_OR_POP":
                kept = self._jump(argument, state, state.stack[-1], name == "JUMP_IF_TRUE_OR_POP")
                return None if kept is None else kept.popped()
        return self._moved(step, state) or self._computed(step, state)

    def _moved(self, step: dis.Instruction, state: _State) -> _State | None:
        """Return the state after an instruction that moves values, None for another."""
        stack, argument = state.stack, step.argval
        match step.opname:
            case "LOAD_CONST" | "LOAD_SMALL_INT":
                return state.pushed(argument)
            case "LOAD_FAST" | "LOAD_FAST_CHECK" | "LOAD_FAST_BORROW":
                return state.pushed(self._read(state, argument))
            case "LOAD_FAST_LOAD_FAST" | "LOAD_FAST_BORROW_LOAD_FAST_BORROW":
                return state.pushed(*(self._read(state, name) for name in argument))
            case "STORE_FAST":
                return self._stored(state, argument)
            case "STORE_FAST_STORE_FAST":
                first, second = argument
                return self._stored(self._stored(state, first), second)
            case "STORE_FAST_LOAD_FAST":
                first, second = argument
                after = self._stored(state, first)
                return after.pushed(self._read(after, second))
            case "POP_TOP":
                return state.popped()
            case "PUSH_NULL":
                return state.pushed(_NULL)
            case "COPY":
                return state.pushed(stack[-argument])
            case "SWAP":
                top, other = stack[-1], stack[-argument]
                return replace(
                    state, stack=(*stack[:-argument], top, *stack[1 - argument : -1], other)
                )
        return self._of_tuple(step, state)

    def _of_tuple(self, step: dis.Instruction, state: _State) -> _State | None:
        """Return the state after an instruction that makes or takes a tuple, as the state of an aggregate is, None for another."""
        stack, count = state.stack, int(step.arg or 0)
        match step.opname:
            case "BUILD_TUPLE":
                made = [self._named(v, "part") for v in stack[len(stack) - count :]]
                return state.popped(count).pushed(tuple(made))
            case "BINARY_SUBSCR":
                many, place = stack[-2:]
                if isinstance(many, tuple) and type(place) is int and 0 <= place < len(many):
                    return state.popped(2).pushed(many[place])
            case "UNPACK_SEQUENCE":
                if isinstance(stack[-1], tuple) and len(stack[-1]) == count:
                    return state.popped().pushed(*reversed(stack[-1]))
        return None

    def _named(self, value: object, name: str) -> object:
        """Return a value of which a variable has the term, so that it is computed once."""
        if isinstance(value, Value):
            return replace(value, term=self._kernel.name(value.term, name))
        return value

    def _read(self, state: _State, name: str) -> object:
        found = state.known.get(name, _NOTHING)
        if found is _NOTHING:
            raise NoTerm
        return found

    def _stored(self, state: _State, name: str) -> _State:
        value = self._named(state.stack[-1], name)
        return replace(state.popped(), known={**state.known, name: value})

    def _computed(self, step: dis.Instruction, state: _State) -> _State:
        stack, argument = state.stack, step.argval
        match step.opname:
            case "LOAD_GLOBAL":
                names = self._function.__globals__
                inside = names if argument in names else vars(names["__builtins__"])
                found = inside[argument]
                return state.pushed(*([_NULL] if (step.arg or 0) & 1 else []), found)
            case "LOAD_DEREF":
                code = self._function.__code__
                cells = dict(zip(code.co_freevars, self._function.__closure__ or (), strict=True))
                return state.pushed(cells[argument].cell_contents)
            case "LOAD_METHOD" | "LOAD_ATTR":
                if not isinstance(stack[-1], ModuleType):
                    raise NoTerm
                called = step.opname == "LOAD_METHOD" or _calls_attribute(step)
                found = getattr(stack[-1], argument)
                return state.popped().pushed(*([_NULL] if called else []), found)
            case "BINARY_OP":
                return self._applied(step.argrepr.removesuffix("="), state)
            case "COMPARE_OP":
                return self._applied(str(argument).removeprefix("bool(").removesuffix(")"), state)
            case "IS_OP" if None in stack[-2:]:
                is_none = stack[-1] is stack[-2]
                return state.popped(2).pushed(is_none is not bool(step.arg))
            case "CONTAINS_OP":
                return state.popped(2).pushed(self._contained(stack[-2], stack[-1], step, state))
            case "UNARY_NEGATIVE" | "UNARY_INVERT" | "UNARY_NOT":
                value = value_of_constant(stack[-1])
                at = self._operators(state)
                if step.opname == "UNARY_NOT":
                    return state.popped().pushed(Value(negated(as_truth(value))))
                made = at.negative if step.opname == "UNARY_NEGATIVE" else at.inverted
                return state.popped().pushed(made(value))
            case "CALL":
                count = int(step.arg or 0)
                args = stack[len(stack) - count :]
                callee = [c for c in stack[-count - 2 : len(stack) - count] if c is not _NULL]
                if len(callee) != 1:
                    raise NoTerm
                return state.popped(count + 2).pushed(self._called(callee[0], args, state))
        raise NoTerm

    def _applied(self, sign: str, state: _State) -> _State:
        if sign not in _SIGNS:
            raise NoTerm
        left, right = map(value_of_constant, state.stack[-2:])
        return state.popped(2).pushed(self._operators(state).apply(_SIGNS[sign], left, right))

    def _contained(
        self, value: object, many: object, step: dis.Instruction, state: _State
    ) -> Value:
        if not isinstance(many, tuple | frozenset) or not many or len(many) > len(_SIGNS):
            raise NoTerm
        at, given = self._operators(state), value_of_constant(value)
        ordered = sorted(many, key=repr)
        tests = [at.apply(operator.eq, given, value_of_constant(v)).term for v in ordered]
        found = all_together("|", tests)
        return Value(negated(found) if step.arg else found)

    def _called(self, callee: object, args: tuple[object, ...], state: _State) -> object:
        if isinstance(callee, FunctionType):
            reached = (*self._reached, *state.path)
            return FunctionWalk(self._kernel, reached, self._budget).value(callee, args)
        values, at = [value_of_constant(a) for a in args], self._operators(state)
        if isinstance(callee, BuiltinFunctionType) and _MATH.get(callee, ("", 0))[1] == len(values):
            return at.of_math(_MATH[callee][0], values)
        if (callee is min or callee is max) and len(values) > 1:
            return at.extreme(operator.lt if callee is min else operator.gt, values)
        if len(values) != 1:
            raise NoTerm
        (value,) = values
        if callee is abs:
            return at.size(value)
        if callee is float:
            return as_real(value)
        if callee is int or callee is round:
            return as_whole(value)
        if callee is bool:
            return Value(as_truth(value))
        raise NoTerm


_JUMPS = {
    f"POP_JUMP_{way}IF_{word}": word == "TRUE"
    for way in ("", "FORWARD_")
    for word in ("TRUE", "FALSE")
}


def _calls_attribute(step: dis.Instruction) -> bool:
    """Whether an attribute is read to be called, which CPython 3.12 says in its argument."""
    return dis.opmap.get("LOAD_METHOD") is None and bool((step.arg or 0) & 1)


def _or(one: tuple[Term, ...], other: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return conditions that hold where all of one path do or all of another: none where these are opposite."""
    if len(other) == 1:
        one, other = other, one
    if len(one) == 1 and other and _opposite(one[0], other[0]):
        other = other[1:]  # a | (not a & b) is a | b
    if not one or not other:
        return ()
    return (all_together("|", [all_together("&", one), all_together("&", other)]),)


def _opposite(one: Term, other: Term) -> bool:
    return one == negated(other) or other == negated(one)
