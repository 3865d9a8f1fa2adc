"""The shape of a row in the table of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

from ..types import DataType
from .value_bounds import BoundsOf

# Argument types -> (types to cast the arguments to, result type); None when the function does not take them.
# Raises nothing: the caller words the error.
Resolve = Callable[[Sequence[DataType]], tuple[tuple[DataType, ...], DataType] | None]

# What makes calls of names, expressions and constants; arguments -> the expression that plans have instead of an aggregate of these
Means = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function: its name in plans, SQL spellings, types, NULL rule, and what the planner may do with it.

    Each backend's table KERNELS has its way to compute it, by name, unless the row says which function of its library does.
    """

    name: str
    resolve: Resolve
    signature: str  # for error messages: "substring(VARCHAR, BIGINT[, BIGINT])"
    aliases: tuple[str, ...] = ()
    kind: OneOf["scalar", "aggregate", "operator", "window"] = "scalar"
    # propagate: NULL in any argument gives NULL; all: NULLs in all of them do, a value in one may give a value; never: there is a
    # value for any arguments; own: anything else, as a list of NULLs, which is a value
    nulls: OneOf["propagate", "all", "own", "never"] = "propagate"
    total: bool = False  # has a value whenever its arguments have, of one row at least; others may make a NULL of their own
    raises: bool = True  # for some values, rather than to give one for all
    # Of an infinite moment among its arguments: NULL; that infinity, of the first moment; an error
    infinite: OneOf["", "null", "kept", "error"] = ""
    # Functions that compute it of values that are not NULL, "" where there is none
    numpy: str = ""
    libcudf: str = ""  # of its unary or binary operators
    math: str = ""  # of Python's, which kernels have for both targets
    bounds: BoundsOf | None = None  # of its values, where those of its arguments are known
    # Its values are whole numbers though their type may have others: of any argument alone, or of arguments that are
    whole: OneOf["", "alone", "of whole"] = ""
    of_lists: str = ""  # the function that its name is for lists
    of_bits: str = ""  # and for BIT
    takes_lists: bool = False  # and arrays as lists
    sorts: bool = False  # elements, in an order that its text may leave out
    reverses: str = ""  # the function that sorts the other way
    # Of operators
    negated: str = ""  # the operator that is TRUE where this is FALSE, FALSE where it is TRUE, and NULL where it is
    mirrored: str = ""  # the comparison that says the same of exchanged sides
    bound: OneOf["", "lower", "upper", "both"] = (
        ""  # what a comparison says that the right side is for the left
    )
    or_equal: bool = False  # a bound that the left side may reach
    # Of aggregates
    means: Means | None = None
    merge: str = ""  # the aggregate that makes that of all rows of those of parts, if one does
    in_order: bool = False  # and the parts have to come in their order
    fold: str = ""  # with which a kernel adds a row's value to a group's accumulator, if one can
    keeps_values: bool = False  # of each group, until all of its rows have come
    idempotent: bool = False  # a value that comes again changes nothing, and so DISTINCT does not
    ordered: bool = False  # the result may depend on the order of the rows
    counts: bool = False  # is 0 for no rows, where others are NULL
    moments: bool = (
        False  # is made of counts, means and products of deviations, which parts add up to
    )
    # Of what goes over windows
    reach: OneOf["frame", "peers", "partition"] = (
        "frame"  # rows that it reads, peers with all before them
    )
    is_rank: bool = False  # is at least the row's rank
    orderable: bool = True  # may have an ORDER BY of its own

    ddof: int = 0  # by how many values less than there are it divides: of fewer it is NULL
    root: bool = False  # is the square root of what it divides

    @property
    def orders(self) -> bool:
        """Whether a comparison asks which of two values is the larger one."""
        return self.bound in ("lower", "upper")

    @property
    def adds_values(self) -> bool:
        """Whether a kernel adds up values, so that many rows may make more than an accumulator holds."""
        return self.fold == "add" and self.merge in ("", self.name)

    @property
    def tested(self) -> bool:
        """Whether a kernel can have its result in a condition on groups: 64 bits hold what that is made of."""
        return bool(self.fold) and not self.moments

    @property
    def merges(self) -> bool:
        """Whether the aggregate of the aggregates of parts, in any order, is that of all rows."""
        return self.merge == self.name and not self.in_order

    @property
    def sign(self) -> str:
        """What an operator has between its arguments, "" for a function and before a single argument."""
        return " ".join(self.signature.split()[1:-1]).lower() if self.kind == "operator" else ""


def operator(
    name: str, resolve: Resolve, signature: str, *aliases: str, **traits: Any
) -> FunctionRow:
    """Return the row of a function that SQL writes with a sign or a keyword."""
    return FunctionRow(name, resolve, signature, aliases, "operator", **traits)
