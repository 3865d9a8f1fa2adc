"""What translation works on: the encoded columns that come in, and the typed values that expressions become."""

from __future__ import annotations

import pyarrow as pa

from ..errors import FuselineError
from ..plan.expr import Column
from ..plan.physical import Physical
from ..plan.types import DataType, Kind
from ..records import dataclass
from ..storage.columns.encodings import Array, Encoding
from .loop import Apply, Convert, Function, Lookup, Machine, Name, Number, Term
from .ranges import IntegerRange


class NotFusable(FuselineError):
    """A step that no kernel can hold, with the reason; the pipeline then runs one operator at a time."""


def unnumbered(what: str, data_type: DataType) -> NotFusable:
    """Return why kernels do not read a column or an expression, and what they would read."""
    if data_type.kind is Kind.VARCHAR:
        advice = "join and group by a number where there is one"
        return NotFusable(f"{what} is text with too many different values to number: {advice}")
    return NotFusable(f"{what} is a {data_type}, which kernels do not read")


class Multiplied(NotFusable):
    """Joins of a build side find several rows for one of its leaf's, so that rows of `side` have no numbers."""

    def __init__(self, side: Physical) -> None:
        super().__init__("a row of a build side may be found several times by its own joins")
        self.side = side


@dataclass(frozen=True, slots=True)
class Input:
    """One encoded column as a pipeline reads it: what a code stands for, its `encoding` says.

    `codes` is how many different codes there may be, None where the code is the value itself: for floats (`machine` F32 or F64) and
    for integers of 8 bytes (`raw`, their interval).  `ascending`: no row's value is NULL, and each is greater than that of the row
    before; `clustered`: none is NULL or less than that of the row before, and few rows have the same.
    """

    column: Column
    encoding: Encoding
    nullable: bool
    codes: int | None = None
    raw: IntegerRange | None = None
    ascending: bool = False
    clustered: bool = False

    @property
    def width(self) -> int:
        """The bytes of a code."""
        return self.encoding.width

    @property
    def base(self) -> int:
        return self.encoding.base

    @property
    def step(self) -> int:
        return self.encoding.step

    @property
    def values(self) -> pa.Array | None:
        """The sorted dictionary."""
        return self.encoding.values

    @property
    def machine(self) -> Machine | None:
        if not self.encoding.is_float:
            return None
        return Machine.F32 if self.encoding.width == 4 else Machine.F64

    @property
    def interval(self) -> IntegerRange:
        """The decoded values, or for a dictionary the codes."""
        if self.raw is not None:
            return self.raw
        assert self.codes is not None
        last = max(self.codes - 1, 0)
        return IntegerRange(self.base, self.base + self.step * last)

    @property
    def register(self) -> Machine:
        """The register type of a code."""
        if self.machine is not None:
            return self.machine
        return Machine.I32 if self.codes is not None and self.codes <= 2**31 else Machine.I64

    def arrays(self, name: str) -> list[tuple[str, str]]:
        """The arguments of a kernel that reads the column row by row, called `name`, and the NumPy types of their elements."""
        found = [(f"{name}{ending}", kind) for ending, kind in self.encoding.arrays]
        return [*found, (f"{name}_bits", "uint8")] if self.nullable else found

    def code_at(self, name: str, row: Term) -> Term:
        """The code of a row, in a register."""
        place = self.encoding.place(row, _PlaceTerms(name))
        return Convert(Lookup(name, place, self.register), self.register)

    def valid_at(self, name: str, row: Term) -> Term:
        """Whether a row of a column that has NULLs has a value."""
        return Function("bit_at", (Name(f"{name}_bits", Machine.I32), row), Machine.BOOL)


@dataclass(frozen=True, slots=True)
class _PlaceTerms:
    """A `storage.columns.encodings.PlaceTerms` of a column whose arrays are called so."""

    name: str

    def element(self, ending: str, place: Term) -> Term:
        return Convert(Lookup(f"{self.name}{ending}", place, Machine.I64), Machine.I64)

    def apply(self, operator: str, left: Term | int, right: Term | int) -> Term:
        wide = [
            Number(v, Machine.I64) if isinstance(v, int) else Convert(v, Machine.I64)
            for v in (left, right)
        ]
        return Apply(operator, tuple(wide), Machine.I64)


@dataclass(frozen=True, slots=True)
class Value:
    """An expression translated: a term, when it is valid, and what is known of it.

    `valid` None means never NULL.  A BOOLEAN's term is False where it is NULL, so that it can filter as it is; other terms
    hold anything there.  `interval` is set for everything that is an integer in a register; `values` is the dictionary
    that a string's code points into.  A float that an integer or decimal was cast to is `exact` / 10**`scale`.
    All values are `interval.low` and a multiple of `step` more, which is `code` where that is a register already.
    """

    term: Term
    valid: Term | None = None
    interval: IntegerRange | None = None
    values: pa.Array | None = None
    exact: Value | None = None
    scale: int = 0
    step: int = 1
    code: Term | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar argument of the kernel: a constant of the query, so that `< 24` and `< 25` share a kernel."""

    name: str
    machine: Machine
    value: int | float
    meaning: str = ""  # what it stands for, without its value


@dataclass(frozen=True, slots=True)
class TableParameter:
    """An array argument: the values of an expression for each code of one column.

    `array` is a NumPy array; the entry after the last code is what NULL gives.
    """

    name: str
    machine: Machine
    array: Array


@dataclass(frozen=True, slots=True)
class Element:
    """A column of a relation other than 0, which the kernel reads at that relation's row; its array is a parameter.

    Its parameters are `names[input.column]` (the codes) and, where it has NULLs, `<name>_bits` (a byte bitmap).  Loads are
    statements of the body.
    """

    input: Input
    relation: int


def truth(term: Term, valid: Term | None) -> Value:
    """A BOOLEAN, which is False where it is NULL."""
    return Value(term if valid is None else Apply("&", (term, valid), Machine.BOOL), valid)


def machine_of(interval: IntegerRange, data_type: DataType) -> Machine:
    """The smallest register type that holds an interval; raises `NotFusable` beyond 64 bits."""
    if interval.fits_i32:
        return Machine.I32
    if interval.fits_i64:
        return Machine.I64
    raise NotFusable(f"a {data_type} may need more than 64 bits here")


def machine_of_float(data_type: DataType) -> Machine:
    return Machine.F32 if data_type.kind is Kind.FLOAT else Machine.F64
