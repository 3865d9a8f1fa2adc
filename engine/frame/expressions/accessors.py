"""`.str`, `.dt`, `.list` and `.struct` of an expression: functions of one type under the names of dataframe libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

from ...errors import WrongArguments, shown
from ...fence import fenced
from ...plan import derived, infer
from ...plan.composed.lambdas import mapped
from ...plan.composed.nested_values import cut, field
from ...plan.expr import Column, ColumnRef, Expr
from ..api_hints import missing
from .unbound import Operand, Resolve, made_by, operand

if TYPE_CHECKING:
    from .expression import Expression

# The units of SQL, by the names that Polars and Narwhals have for them
UNITS = {
    "y": "year",
    "q": "quarter",
    "mo": "month",
    "w": "week",
    "d": "day",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "ms": "millisecond",
    "us": "microsecond",
}

# How many functions of elements the one that is bound stands in, since each has parameters of its own
_lambda_depth: ContextVar[int] = ContextVar("lambda_depth", default=0)


def _from_one(place: object) -> int:
    """Return a place that counts from 0 as SQL counts it."""
    if not isinstance(place, int) or isinstance(place, bool):
        raise WrongArguments(f"A place in a list is a whole number, not {shown(place)}.")
    return place + 1 if place >= 0 else place


class Accessor:
    """Functions of the values of an expression, by the names that dataframe libraries have for them."""

    def __init__(self, expression: Expression) -> None:
        self._of = expression

    def _call(self, function: str, *others: Operand) -> Expression:
        return self._of._call(function, *others, how=derived.function)

    def __getattr__(self, name: str) -> NoReturn:
        """Say what a method of other libraries is called here."""
        raise missing(type(self), name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._of.name}>"


@fenced
class TextMethods(Accessor):
    """`.str`: functions of text; patterns are regular expressions unless `literal` says otherwise."""

    def lower(self) -> Expression:
        return self._call("lower")

    def upper(self) -> Expression:
        return self._call("upper")

    def len(self) -> Expression:
        """How many characters there are."""
        return self._call("length")

    def len_bytes(self) -> Expression:
        return self._call("strlen")

    def contains(self, pattern: Operand, literal: bool = False) -> Expression:
        return self._call("contains" if literal else "regexp_matches", pattern)

    def starts_with(self, prefix: Operand) -> Expression:
        return self._call("starts_with", prefix)

    def ends_with(self, suffix: Operand) -> Expression:
        return self._call("ends_with", suffix)

    def replace(self, pattern: Operand, value: Operand, literal: bool = False) -> Expression:
        """Replace the first match of a regular expression, or with `literal` each place of a text."""
        return self._call("replace" if literal else "regexp_replace", pattern, value)

    def replace_all(self, pattern: Operand, value: Operand, literal: bool = False) -> Expression:
        if literal:
            return self._call("replace", pattern, value)
        return self._call("regexp_replace", pattern, value, "g")

    def extract(self, pattern: Operand, group: int = 0) -> Expression:
        """The first match of a regular expression, or a group of it."""
        return self._call("regexp_extract", pattern, group)

    def extract_all(self, pattern: Operand) -> Expression:
        return self._call("regexp_extract_all", pattern)

    def slice(self, start: int, length: int | None = None) -> Expression:
        """Characters from a place on, counted from 0, or from the end below 0."""
        if not isinstance(start, int):
            raise WrongArguments(f"slice() takes a place, not {shown(start)}.")
        place = start + 1 if start >= 0 else start
        return self._call("substring", place, *([] if length is None else [length]))

    def head(self, n: int) -> Expression:
        return self._call("left", n)

    def tail(self, n: int) -> Expression:
        return self._call("right", n)

    def split(self, by: Operand) -> Expression:
        """A LIST of the parts between a separator."""
        return self._call("string_split", by)

    def strip(self, characters: str | None = None) -> Expression:
        """Without spaces, or these characters, at both ends."""
        return self._call("trim", *([] if characters is None else [characters]))

    def strip_start(self, characters: str | None = None) -> Expression:
        return self._call("ltrim", *([] if characters is None else [characters]))

    def strip_end(self, characters: str | None = None) -> Expression:
        return self._call("rtrim", *([] if characters is None else [characters]))

    strip_chars, strip_chars_start, strip_chars_end = strip, strip_start, strip_end

    def pad_start(self, length: int, fill: str = " ") -> Expression:
        """LPAD for texts that are shorter; longer ones stay whole."""
        return self._padded("lpad", length, fill)

    def pad_end(self, length: int, fill: str = " ") -> Expression:
        return self._padded("rpad", length, fill)

    def _padded(self, function: str, length: int, fill: str) -> Expression:
        width = self._call("length")._call("greatest", length)
        return self._call(function, width.cast("integer"), fill)

    def zfill(self, length: int) -> Expression:
        return self._padded("lpad", length, "0")

    def reverse(self) -> Expression:
        return self._call("reverse")

    def concat(self, *others: Operand) -> Expression:
        """The text with others behind it, NULLs left out."""
        return self._call("concat", *others)

    def to_date(self, form: str | None = None) -> Expression:
        """A DATE, of a format of strptime or as CAST reads it."""
        return self._of.cast("date") if form is None else self._call("strptime", form).cast("date")

    def to_datetime(self, form: str | None = None) -> Expression:
        """A TIMESTAMP, of a format of strptime or as CAST reads it."""
        return self._of.cast("timestamp") if form is None else self._call("strptime", form)

    def to_integer(self) -> Expression:
        return self._of.cast("bigint")


@fenced
class MomentMethods(Accessor):
    """`.dt`: parts of dates and timestamps."""

    def year(self) -> Expression:
        return self._call("year")

    def quarter(self) -> Expression:
        return self._call("quarter")

    def month(self) -> Expression:
        return self._call("month")

    def week(self) -> Expression:
        """The number of the week by ISO 8601."""
        return self._call("week")

    def day(self) -> Expression:
        return self._call("day")

    def weekday(self) -> Expression:
        """The day of the week by ISO 8601: 1 is Monday, 7 Sunday."""
        return self._call("isodow")

    def day_of_year(self) -> Expression:
        return self._call("dayofyear")

    ordinal_day = day_of_year

    def hour(self) -> Expression:
        return self._call("hour")

    def minute(self) -> Expression:
        return self._call("minute")

    def second(self) -> Expression:
        return self._call("second")

    def millisecond(self) -> Expression:
        """The milliseconds of the second, from 0 to 999."""
        return self._call("millisecond") % 1_000

    def microsecond(self) -> Expression:
        """The microseconds of the second, from 0 to 999,999."""
        return self._call("microsecond") % 1_000_000

    def date(self) -> Expression:
        return self._of.cast("date")

    def time(self) -> Expression:
        return self._of.cast("time")

    def truncate(self, unit: str) -> Expression:
        """DATE_TRUNC to a unit: "month", or "1mo" as Polars calls it."""
        if not isinstance(unit, str):
            raise WrongArguments(f"truncate() takes the name of a unit, not {shown(unit)}.")
        known = UNITS.get(unit[1:], unit) if unit.startswith("1") else unit
        name = f"date_trunc({known!r}, {self._of.name})"
        return self._of._made(
            lambda bound: derived.function("date_trunc", bound[::-1]), name, known
        )

    def epoch(self) -> Expression:
        """Seconds since 1970."""
        return self._call("epoch")

    def strftime(self, form: str) -> Expression:
        return self._call("strftime", form)

    to_string = strftime

    def month_name(self) -> Expression:
        return self._call("monthname")

    def day_name(self) -> Expression:
        return self._call("dayname")

    def month_end(self) -> Expression:
        return self._call("last_day")


@fenced
class ListMethods(Accessor):
    """`.list`: functions of LIST values; places count from 0, and from the end below 0."""

    def len(self) -> Expression:
        return self._call("len")

    def get(self, place: int) -> Expression:
        """The element at a place, NULL where there is none."""
        return self._call("list_extract", _from_one(place))

    def first(self) -> Expression:
        return self.get(0)

    def last(self) -> Expression:
        return self.get(-1)

    def slice(self, start: int, length: int | None = None) -> Expression:
        """Elements from a place on."""
        begin = _from_one(start)
        if length is not None and (not isinstance(length, int) or length < 0):
            raise WrongArguments(f"The length of a slice is a whole number, not {shown(length)}.")
        end = -1
        if length is not None and (start >= 0 or start + length < 0):
            end = start + length if start >= 0 else start + length - 1
        first, last = infer.literal(begin), infer.literal(end)
        name = f"list_slice({self._of.name}, {begin}, {end})"
        return self._of._made(lambda bound: cut([bound[0], first, last], None), name)

    def contains(self, value: Operand) -> Expression:
        return self._call("list_contains", value)

    def sum(self) -> Expression:
        return self._call("list_sum")

    def mean(self) -> Expression:
        return self._call("list_avg")

    def min(self) -> Expression:
        return self._call("list_min")

    def max(self) -> Expression:
        return self._call("list_max")

    def median(self) -> Expression:
        return self._call("list_median")

    def std(self) -> Expression:
        return self._call("list_stddev_samp")

    def n_unique(self) -> Expression:
        return self._call("list_unique")

    def sort(self, descending: bool = False, nulls_last: bool = True) -> Expression:
        order = "DESC" if descending else "ASC"
        return self._call("list_sort", order, f"NULLS {'LAST' if nulls_last else 'FIRST'}")

    def reverse(self) -> Expression:
        return self._call("list_reverse")

    def unique(self) -> Expression:
        """The different elements, NULLs left out."""
        return self._call("list_distinct")

    def join(self, separator: str) -> Expression:
        """The elements as one text."""
        return self._call("array_to_string", separator)

    def concat(self, other: Operand) -> Expression:
        return self._call("list_concat", other)

    def transform(self, change: Callable[[Expression], Operand]) -> Expression:
        """What a function of expressions makes of each element: `transform(lambda x: x * 2)`."""
        return self._mapped("list_transform", change, None)

    def filter(self, condition: Callable[[Expression], Operand]) -> Expression:
        """The elements for which a function of expressions is true: `filter(lambda x: x > 1)`."""
        return self._mapped("list_filter", None, condition)

    def _mapped(
        self,
        function: str,
        change: Callable[[Expression], Operand] | None,
        condition: Callable[[Expression], Operand] | None,
    ) -> Expression:
        given = change or condition
        if not callable(given):
            raise WrongArguments(f"{function} takes a function of an element, not {shown(given)}.")
        body = given

        def bind(resolve: Resolve) -> Expr:
            depth = _lambda_depth.get()

            def inner(parameters: Mapping[str, Column]) -> Expr:
                (column,) = parameters.values()
                element = self._of._new(lambda _: ColumnRef(column), "x")
                made = operand(made_by(body, function, element))
                token = _lambda_depth.set(depth + 1)
                try:
                    return made.bind(resolve)
                finally:
                    _lambda_depth.reset(token)

            one = inner if change is not None else None
            two = inner if condition is not None else None
            return mapped(self._of.bind(resolve), ["x"], one, two, depth, None)

        return self._of._new(bind, f"{function}({self._of.name})")


@fenced
class StructMethods(Accessor):
    """`.struct`: fields of STRUCT values."""

    def field(self, name: str) -> Expression:
        """The value of a field, under its name."""
        if not isinstance(name, str):
            raise WrongArguments(f"A field is named by a string, not by {shown(name)}.")
        return self._of._made(lambda bound: field(bound[0], name, None), name)

    def __getitem__(self, name: str) -> Expression:
        return self.field(name)
