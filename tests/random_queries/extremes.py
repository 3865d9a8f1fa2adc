"""The one pool of extremes that generated tests draw constants and data from: the ends of every type, and what is odd in the middle.

Values are Python's where it has them; dates and timestamps are days and microseconds since 1970, for Python's end in 9999.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

NAN, INF = float("nan"), float("inf")
WIDE = Context(prec=100)
LONG_TEXT = "ab" * 2500


def _integers(bits: int, signed: bool) -> tuple[int, ...]:
    high = 2 ** (bits - signed) - 1
    low = -high - 1 if signed else 0
    inside = (low + 1, -1000, -7, -1, 0, 1, 2, 7, 10, 100, high - 1, 2**31, 2**53 + 1)
    return (low, *(v for v in dict.fromkeys(inside) if low < v < high), high)


def decimals(precision: int, scale: int) -> tuple[Decimal, ...]:
    """Return the ends of a decimal type, and what is around 0 and 1."""
    high = 10**precision - 1
    unscaled = (
        -high, -(10 ** (precision - 1)), -15, -5, -1, 0, 1, 5, 15, 10**scale, high - 1, high,
    )  # fmt: skip
    return tuple(Decimal(v).scaleb(-scale, WIDE) for v in dict.fromkeys(unscaled) if abs(v) <= high)


@dataclass(frozen=True)
class Extremes:
    """A type's name in SQL, its Arrow type, and its extreme values."""

    sql: str
    arrow: pa.DataType
    values: tuple[Any, ...]

    def draw(self, random: random.Random, nulls: float = 0.1) -> Any:
        return None if random.random() < nulls else random.choice(self.values)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Return values as a column; moments are numbers."""
        if pa.types.is_date32(self.arrow):
            return pa.array(values, pa.int32()).cast(self.arrow)
        if pa.types.is_timestamp(self.arrow):
            return pa.array(values, pa.int64()).cast(self.arrow)
        return pa.array(values, self.arrow)

    def column(self, name: str) -> str:
        """Return a column as a value of this type: Arrow has no HUGEINT."""
        return f"{name}::hugeint" if self.sql == "hugeint" else name

    def literal(self, value: Any) -> str:
        """Return a value as a constant of SQL, of exactly this type."""
        if value is None:
            return f"null::{self.sql}"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, bool):
            return str(value).lower()
        if pa.types.is_date32(self.arrow):
            return (
                f"(date '1970-01-01' + {value}::integer)"
                if value >= 0
                else (f"(date '1970-01-01' - {-value}::integer)")
            )
        if pa.types.is_timestamp(self.arrow):
            return f"make_timestamp({value}::bigint)"
        if self.sql == "interval":
            months, days, nanos = value
            return f"interval '{months} months {days} days {nanos // 1000} microseconds'"
        shown = format(value, "f") if isinstance(value, Decimal) else value
        return f"'{shown}'::{self.sql}"


FLOATS = (-INF, -1.7976931348623157e308, -1e20, -2.5, -0.5, -5e-324, -0.0, 0.0, 5e-324, 1e-10, 0.1,
          0.49999999999999994, 0.5, 1.0, 1.5, 2.5, 9007199254740993.0, 9.3e18, 1e20, 1.7976931348623157e308, INF, NAN)  # fmt: skip
SINGLES = (-INF, -3.4028234663852886e38, -2.5, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 16777216.0, 3.4028234663852886e38, INF, NAN)  # fmt: skip
TEXTS = ("", " ", "a", "A", "ab", "abc", "Abc", "aaa", "%", "_", "\\", "a\nb", "'", "héé", "ß", "ÀÉ", "日本語", "😀x", "e\u0301",
         "1", "-2.5", " 7 ", "1e3", "nan", "true", "2020-02-29", "9223372036854775808", "a,b,,c", LONG_TEXT)  # fmt: skip
DAYS = (
    -719162, -719528, -1, 0, 1, 58, 59, 11016, 18320, 18321, 2932896, 2932897, -5000000, 5000000,
)  # fmt: skip
_DAY = 86_400_000_000
MOMENTS = (-719162 * _DAY, -1, 0, 1, 951_827_696_789_012, 1_582_934_400_000_000, 1_709_251_199_999_999,
           2932896 * _DAY + _DAY - 1, 2932897 * _DAY, -(2**62), 2**62)  # fmt: skip
INTERVALS = (
    (0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1000), (0, 0, -1000), (13, 45, 3_600_000_000_000),
    (-12000, 0, 0), (0, 40000, 0), (0, 0, 86_400_000_000_000),
)  # fmt: skip

# Texts that some type reads, or nearly.
SPELLINGS = (
    "", " ", "+", "-", ".", "e5", "0", "-0", "+7", " 7 ", "7x", "0x1F", "0b101", "1_000", "1__0", "_1", "1.", ".5", "-.5", "1e3", "1E-3", "1e400", "1e-400", "1e5000000000",
    "0e999999999", "127", "128", "-129", "32768", "2147483647.5", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551615.4", "9" * 38, "1" + "0" * 38,
    "-" + "9" * 39, "0." + "9" * 40, "0." + "0" * 37 + "5", "0." + "0" * 38 + "5", "99999999999999.9995", "999.94", "999.95", "1.7976931348623157e308", "1.8e308", "5e-324", "2e-324", "3.4028235e38", "3.5e38",
    "nan", "-NaN", "+nan", "inf", "-inf", "+Infinity", "infinit", "true", "TRUE", "t", "Y", "no", " true", "on", "off", "null", "1 2",
    "2024-02-29", "2023-02-29", "2024-2-3", "24-02-03", "2024/02/03", "2024 02 03", "2024-02/03", "2024-02-29 ", "2024-02-29 24:00:00", "2024-02-29 12:30", "2024-02-29T12:30:15.1234567",
    "2024-02-29 12:30:15+02", "2024-02-29 12:30:15 UTC", "2024-02-29 12:60:00", "9999-12-31", "10000-01-01", "0000-01-01", "-0001-01-01", "0001-01-01 (BC)", "5881580-07-10", "5881580-07-11",
    "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775807", "290309-12-22 (BC) 00:00:00", "epoch", "infinity", "1 day", "-1 days 02:03:04", "3 months ago", "1.5 years", "1 year 2 fortnights",
    "١", "１２", "1\u00a02", "\t5\n", "1'", LONG_TEXT, "9" * 5000,
)  # fmt: skip

POOL: dict[str, Extremes] = {
    e.sql: e
    for e in (
        Extremes("boolean", pa.bool_(), (True, False)),
        Extremes("tinyint", pa.int8(), _integers(8, True)),
        Extremes("smallint", pa.int16(), _integers(16, True)),
        Extremes("integer", pa.int32(), _integers(32, True)),
        Extremes("bigint", pa.int64(), _integers(64, True)),
        Extremes("utinyint", pa.uint8(), _integers(8, False)),
        Extremes("usmallint", pa.uint16(), _integers(16, False)),
        Extremes("uinteger", pa.uint32(), _integers(32, False)),
        Extremes("ubigint", pa.uint64(), _integers(64, False)),
        Extremes("hugeint", pa.decimal128(38, 0), decimals(38, 0)),
        Extremes("decimal(4,1)", pa.decimal128(4, 1), decimals(4, 1)),
        Extremes("decimal(9,2)", pa.decimal128(9, 2), decimals(9, 2)),
        Extremes("decimal(18,3)", pa.decimal128(18, 3), decimals(18, 3)),
        Extremes("decimal(18,0)", pa.decimal128(18, 0), decimals(18, 0)),
        Extremes("decimal(38,0)", pa.decimal128(38, 0), decimals(38, 0)),
        Extremes("decimal(38,10)", pa.decimal128(38, 10), decimals(38, 10)),
        Extremes("decimal(38,38)", pa.decimal128(38, 38), decimals(38, 38)),
        Extremes("float", pa.float32(), SINGLES),
        Extremes("double", pa.float64(), FLOATS),
        Extremes("varchar", pa.string(), TEXTS),
        Extremes("date", pa.date32(), DAYS),
        Extremes("timestamp", pa.timestamp("us"), MOMENTS),
        Extremes("interval", pa.month_day_nano_interval(), INTERVALS),
    )
}  # fmt: skip
