"""How the state of a Python aggregate grows, found in the terms of its code: by sums or extremes of what its step has for a row alone.

Such a part of a state is folded as SQL's sum, count, min or max of that is, by any kernel and in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ...plan.types import DataType
from ...plan.udf.code_image import CodeImage
from ...plan.udf.python_function import PythonFold
from ...records import dataclass
from ..expressions.arithmetic import WHOLE_I64
from ..loop import Apply, Convert, Let, Machine, Name, Number, Select, Term, names_in
from ..program_builder import ProgramBuilder
from ..row_sources import LeafColumns
from ..typed_values import Value
from .bytecode_terms import MOST_INSTRUCTIONS, FunctionWalk, function_of
from .function_text import machine_of_kind, register_kind
from .python_operators import NoTerm, as_whole, is_real, value_of_constant

_STATES = {int: Machine.I64, float: Machine.F64}
_LESS, _MORE = ("<", "<="), (">", ">=")
Given = tuple[object, ...]


def fold_kinds(fold: PythonFold) -> tuple[str, ...] | None:
    """Return what folds each part of the state (sum, count, min or max), None where its step or merge do something else with one."""
    aggregate = fold.function
    step, merge, _ = fold.images
    if any(image.has_loops for image in (step, merge)) or any(
        type(value) not in _STATES for value in aggregate.initial
    ):
        return None
    row = tuple(_argument(f"argument_{i}", t) for i, t in enumerate(aggregate.parameters))
    made: list[str] = []
    try:
        for place, first in enumerate(aggregate.initial):
            stepped = _read(fold, step, row, place).kind()
            other = f"other_{place}"
            merged = _read(fold, merge, (_states(fold, "other"),), place).kind(other)
            if stepped is None or merged != stepped.replace("count", "sum"):
                return None
            if merged == "sum" and first != 0:
                return None
            made.append(stepped)
    except NoTerm:
        return None
    return tuple(made)


def _argument(name: str, data_type: DataType) -> Value:
    machine = machine_of_kind(register_kind(data_type))
    if machine is Machine.F32:
        machine = Machine.F64
    return Value(Name(name, machine), None, WHOLE_I64 if machine is Machine.I64 else None)


def _states(fold: PythonFold, name: str) -> object:
    """Return a state as its functions get it."""
    machines = [_STATES[type(v)] for v in fold.function.initial]
    parts = tuple(
        Value(Name(f"{name}_{i}", m), None, WHOLE_I64 if m is Machine.I64 else None)
        for i, m in enumerate(machines)
    )
    return parts[0] if fold.function.scalar else parts


def _read(fold: PythonFold, image: CodeImage, rest: Given, place: int) -> _NextPart:
    """Return what a function of a state and others gives for a part of the state; raises `NoTerm`."""
    is_whole = type(fold.function.initial[place]) is int

    def settle(found: object) -> Value:
        if not fold.function.scalar:
            if not isinstance(found, tuple) or len(found) != len(fold.function.initial):
                raise NoTerm
            found = found[place]
        value = value_of_constant(found)
        if is_real(value) is is_whole:
            raise NoTerm
        return as_whole(value) if is_whole else value

    kernel = ProgramBuilder(cast("LeafColumns", None))  # which reads no column
    walk = FunctionWalk(kernel, (), [MOST_INSTRUCTIONS])
    given = (_states(fold, "state"), *rest)
    found = settle(walk.value(function_of(image.text), given, settle))
    lets = {s.name.text: s.value for s in kernel.blocks[0].statements if isinstance(s, Let)}
    return _NextPart(found.term, f"state_{place}", lets)


@dataclass(frozen=True, slots=True)
class _NextPart:
    """A part of the next state as a term, the name of the part before, and what other names stand for."""

    term: Term
    own: str
    lets: Mapping[str, Term]

    def kind(self, other: str | None = None) -> str | None:
        """Return what folds the part; with `other`, a name, of that alone."""
        if self._is_sum(self.term, other):
            return "count" if other is None and self._counts(self.term) else "sum"
        return None if is_real(Value(self.term)) else self._extreme(self.term, other)

    def _bare(self, term: Term) -> Term:
        """Return a term without conversions and names for it."""
        while True:
            if isinstance(term, Convert) and term.type is not Machine.F32:
                term = term.operand
            elif isinstance(term, Name) and term.text in self.lets:
                term = self.lets[term.text]
            else:
                return term

    def _is_free(self, term: Term) -> bool:
        """Whether a term reads no part of the state."""
        names = names_in(term)
        return not any(n.startswith("state_") for n in names) and all(
            self._is_free(self.lets[n]) for n in names if n in self.lets
        )

    def _is_own(self, term: Term) -> bool:
        bare = self._bare(term)
        return isinstance(bare, Name) and bare.text == self.own

    def _is_other(self, term: Term, other: str | None) -> bool:
        if other is None:
            return self._is_free(term)
        bare = self._bare(term)
        return isinstance(bare, Name) and bare.text == other

    def _is_sum(self, term: Term, other: str | None) -> bool:
        match bare := self._bare(term):
            case Name():
                return other is None and self._is_own(bare)
            case Apply("+", (a, b)):
                return any(
                    (self._is_own(x) if other else self._is_sum(x, None))
                    and self._is_other(y, other)
                    for x, y in ((a, b), (b, a))
                )
            case Apply("-", (a, b)):
                return other is None and self._is_sum(a, None) and self._is_free(b)
            case Select(condition, yes, no):
                branches = self._is_sum(yes, None) and self._is_sum(no, None)
                return other is None and self._is_free(condition) and branches
        return False

    def _counts(self, term: Term) -> bool:
        """Whether a sum is one more in each row."""
        match self._bare(term):
            case Apply("+", (a, b)):
                return any(
                    self._is_own(x)
                    and self._bare(y) in (Number(1, Machine.I32), Number(1, Machine.I64))
                    for x, y in ((a, b), (b, a))
                )
        return False

    def _extreme(self, term: Term, other: str | None) -> str | None:
        """Return min or max for the smaller or larger of the part and something of the row."""
        match self._bare(term):
            case Select(condition, yes, no):
                compared = self._bare(condition)
                taken, left = self._bare(yes), self._bare(no)
                one, two = (taken, left) if self._is_own(taken) else (left, taken)
                if not self._is_own(one) or not self._is_other(two, other):
                    return None
                opposite = isinstance(compared, Apply) and compared.operator == "not"
                if isinstance(compared, Apply) and opposite:
                    compared = self._bare(compared.args[0])
                if isinstance(compared, Apply) and compared.operator in (*_LESS, *_MORE):
                    a, b = map(self._bare, compared.args)
                    if (a, b) in ((taken, left), (left, taken)):
                        smaller = (compared.operator in _LESS) is (a == taken)
                        return "min" if smaller is not opposite else "max"
        return None
