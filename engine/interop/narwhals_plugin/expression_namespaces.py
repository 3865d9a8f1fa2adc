"""`.str`, `.dt`, `.list`, `.map` and `.struct` of Narwhals' expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from narwhals._compliant import LazyExprNamespace
from narwhals._compliant.any_namespace import ListNamespace, MapNamespace, StructNamespace
from narwhals._duration import Interval
from narwhals._sql.expr_dt import SQLExprDateTimeNamesSpace
from narwhals._sql.expr_str import SQLExprStringNamespace

from ...frame.expressions.accessors import UNITS
from ...frame.expressions.expression import Expression, lit
from ...frame.functions import fn, when

if TYPE_CHECKING:
    from narwhals.typing import NonNestedLiteral

    from .lazy_expression import NarwhalsExpression
    from .lazy_frame import NarwhalsFrame

_ZONE = r":\d\d.*([+-]\d\d(:?\d\d)?|[A-Za-z])\s*$"
_NO_NANOSECONDS = "An INTERVAL counts microseconds, so there are no steps of nanoseconds."


class NarwhalsTexts(SQLExprStringNamespace["NarwhalsExpression"]):
    """`.str`: what the base has not, or says otherwise."""

    def replace(
        self, value: NarwhalsExpression, pattern: str, *, literal: bool, n: int
    ) -> NarwhalsExpression:
        if n == -1:
            return self.replace_all(value, pattern, literal=literal)
        if n != 1:
            raise NotImplementedError(f"str.replace replaces one match or all, and n is {n}.")
        found = re.escape(pattern) if literal else pattern

        def replaced(expr: Expression, value: Expression) -> Expression:
            # In the text that comes for a match \1 is a group
            put = value.str.replace("\\", "\\\\", literal=True) if literal else value
            return expr.str.replace(found, put)

        return self.compliant._with_elementwise(replaced, expression_args={"value": value})

    def replace_all(
        self, value: NarwhalsExpression, pattern: str, *, literal: bool
    ) -> NarwhalsExpression:
        return self.compliant._with_elementwise(
            lambda expr, value: expr.str.replace_all(pattern, value, literal=literal),
            expression_args={"value": value},
        )

    def strip_chars_start(self, characters: str) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.str.strip_start(characters))

    def strip_chars_end(self, characters: str) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.str.strip_end(characters))

    def to_datetime(self, format: str | None) -> NarwhalsExpression:
        def parsed(expr: Expression) -> Expression:
            if format is not None:
                return expr.str.to_datetime(format)
            # A cast would leave the zone out: it is made to fail, and to say why
            zoned = expr.str.concat(" has a time zone")
            return when(expr.str.contains(_ZONE)).then(zoned).otherwise(expr).str.to_datetime()

        return self.compliant._with_elementwise(parsed)

    def to_date(self, format: str | None) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.str.to_date(format))

    def to_time(self, format: str | None) -> NarwhalsExpression:
        return self.compliant._with_elementwise(
            lambda expr: (expr if format is None else fn.strptime(expr, format)).cast("time")
        )

    def to_titlecase(self) -> NarwhalsExpression:
        def titled(expr: Expression) -> Expression:
            words = expr.str.lower().str.extract_all(r"\p{L}+\P{L}*|\P{L}+")
            capitals = words.list.transform(
                lambda word: word.str.head(1).str.upper().str.concat(word.str.slice(1))
            )
            return capitals.list.join("")

        return self.compliant._with_elementwise(titled)


class NarwhalsMoments(SQLExprDateTimeNamesSpace["NarwhalsExpression"]):
    """`.dt`: what the base has not, or says otherwise."""

    def millisecond(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.dt.millisecond())

    def microsecond(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.dt.microsecond())

    def nanosecond(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: fn.nanosecond(expr) % 1_000_000_000)

    def weekday(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.dt.weekday())

    def date(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.dt.date())

    def to_string(self, format: str) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.dt.strftime(format))

    def timestamp(self, time_unit: str) -> NarwhalsExpression:
        name = {"ns": "epoch_ns", "us": "epoch_us", "ms": "epoch_ms"}[time_unit]
        return self.compliant._with_elementwise(getattr(fn, name))

    def total_minutes(self) -> NarwhalsExpression:
        return self._total(60_000_000)

    def total_seconds(self) -> NarwhalsExpression:
        return self._total(1_000_000)

    def total_milliseconds(self) -> NarwhalsExpression:
        return self._total(1_000)

    def total_microseconds(self) -> NarwhalsExpression:
        return self._total(1)

    def total_nanoseconds(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: fn.epoch_us(expr) * 1_000)

    def _total(self, microseconds: int) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: fn.epoch_us(expr) // microseconds)

    def truncate(self, every: str) -> NarwhalsExpression:
        step = Interval.parse(every)
        if step.unit == "ns":
            raise NotImplementedError(_NO_NANOSECONDS)
        if step.multiple != 1:
            raise ValueError(
                f"Only multiple 1 is currently supported for Fuseline.\nGot {step.multiple}."
            )
        return self.compliant._with_elementwise(lambda expr: expr.dt.truncate(UNITS[step.unit]))

    def offset_by(self, by: str) -> NarwhalsExpression:
        step = Interval.parse_no_constraints(by)
        if step.unit == "ns":
            raise NotImplementedError(_NO_NANOSECONDS)
        offset = lit(f"{step.multiple} {UNITS[step.unit]}").cast("interval")
        return self.compliant._with_elementwise(lambda expr: expr + offset)

    def convert_time_zone(self, time_zone: str) -> NarwhalsExpression:
        return self._of_connection(time_zone)

    def replace_time_zone(self, time_zone: str | None) -> NarwhalsExpression:
        if time_zone is None:
            return self.compliant._with_elementwise(lambda expr: expr.cast("timestamp"))
        return self._of_connection(time_zone)

    def _of_connection(self, time_zone: str) -> NarwhalsExpression:
        """Return the timestamps as they are; raises `NotImplementedError` for another zone than the connection's."""

        def unchanged(frame: NarwhalsFrame) -> Sequence[Expression]:
            if frame.zone != time_zone:
                raise NotImplementedError(
                    f"Timestamps are in the time zone of the connection, {frame.zone}: SET TimeZone = '{time_zone}' changes it."
                )
            return self.compliant(frame)

        return self.compliant._alike(unchanged, None)


class NarwhalsLists(LazyExprNamespace["NarwhalsExpression"], ListNamespace["NarwhalsExpression"]):
    """`.list`."""

    def len(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.len())

    def unique(self, *, maintain_order: bool) -> NarwhalsExpression:
        if maintain_order:
            raise NotImplementedError("list.unique keeps no order: leave out `maintain_order`.")

        def different(expr: Expression) -> Expression:
            found = expr.list.unique()
            has_null = expr.list.len() > fn.list_count(expr)
            return when(has_null).then(fn.list_append(found, None)).otherwise(found)

        return self.compliant._with_elementwise(different)

    def contains(self, item: NonNestedLiteral) -> NarwhalsExpression:
        if item is None:
            return self.compliant._with_elementwise(
                lambda expr: expr.list.len() > fn.list_count(expr)
            )
        return self.compliant._with_elementwise(lambda expr: expr.list.contains(item))

    def get(self, index: int) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.get(index))

    def min(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.min())

    def max(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.max())

    def mean(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.mean())

    def median(self) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.median())

    def sum(self) -> NarwhalsExpression:
        def total(expr: Expression) -> Expression:
            return when(expr.is_not_null()).then(expr.list.sum().fill_null(0))

        return self.compliant._with_elementwise(total)

    def sort(self, *, descending: bool, nulls_last: bool) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.list.sort(descending, nulls_last))


class NarwhalsMaps(LazyExprNamespace["NarwhalsExpression"], MapNamespace["NarwhalsExpression"]):
    """`.map`."""

    def get(self, key: NonNestedLiteral) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: fn.map_extract_value(expr, lit(key)))


class NarwhalsStructs(
    LazyExprNamespace["NarwhalsExpression"], StructNamespace["NarwhalsExpression"]
):
    """`.struct`."""

    def field(self, name: str) -> NarwhalsExpression:
        return self.compliant._with_elementwise(lambda expr: expr.struct.field(name)).alias(name)
