"""SQL types with DuckDB's rules, and their Arrow counterparts.

A `DataType` is a value: two are equal when kind, precision and scale are.  Backends choose their own physical form from
`storage_bits` (a DECIMAL of up to 18 digits fits an int64, as in DuckDB).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Context
from enum import Enum, auto
from operator import attrgetter
from typing import TYPE_CHECKING

from ..errors import TypeMismatch
from ..records import dataclass
from .node import Once
from .text.quoted_name import quoted_field

if TYPE_CHECKING:
    import pyarrow as pa


class Kind(Enum):
    """The families of types; DECIMAL, LIST, STRUCT and MAP have parameters."""

    NULL = auto()
    BOOLEAN = auto()
    TINYINT = auto()
    SMALLINT = auto()
    INTEGER = auto()
    BIGINT = auto()
    UTINYINT = auto()
    USMALLINT = auto()
    UINTEGER = auto()
    UBIGINT = auto()
    DECIMAL = auto()
    FLOAT = auto()
    DOUBLE = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    TIMESTAMP_S = auto()
    TIMESTAMP_MS = auto()
    TIMESTAMP_NS = auto()
    TIMESTAMPTZ = auto()
    INTERVAL = auto()
    VARCHAR = auto()
    BLOB = auto()
    UUID = auto()
    LIST = auto()
    STRUCT = auto()
    MAP = auto()
    OTHER = auto()  # of a column that no query can read (`storage.tables.other_types`)

    __hash__ = object.__hash__  # in C, unlike that of Enum; each member is one object


MAX_DECIMAL_DIGITS = 38
LARGEST_DECIMAL = 10**MAX_DECIMAL_DIGITS - 1  # unscaled
DIGITS = Context(prec=400)  # for Decimals: Python's own context rounds to 28 digits
MOST_OF_ARRAY = 100_000
INT64_DECIMAL_DIGITS = 18  # a DECIMAL of this many digits fits an int64


@dataclass(frozen=True, repr=False)
class DataType:
    """One SQL type; `precision` (digits) and `scale` (digits after the point) are set for DECIMAL alone.

    `children` are the type of a LIST's elements or those of a STRUCT's fields, whose `names` are beside them; a
    MAP's is that of its entries, STRUCT(key, value), and it is stored as a list of those. A LIST with a `precision` is
    an ARRAY, all of whose values that are not NULL have so many elements; operators see a list.
    `name` is set for OTHER, and for HUGEINT, JSON, BIT, ENUM and TUPLE: types of their own wherever types choose what happens, and to all that
    only holds, compares or computes values a DECIMAL(38,0), VARCHAR, VARCHAR of 0 and 1, an unsigned integer that is the place of a value among the `names`,
    and a STRUCT whose fields are called element1, element2 ..., as they are in Arrow, and not in SQL, where they go by their places.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    name: str = ""
    children: tuple[DataType, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL and not (
            1 <= self.precision <= MAX_DECIMAL_DIGITS and 0 <= self.scale <= self.precision
        ):
            raise TypeMismatch(
                f"DECIMAL({self.precision},{self.scale}) does not exist: "
                f"a decimal has 1 to {MAX_DECIMAL_DIGITS} digits and a scale between 0 and that."
            )

    @Once
    def _hash(self) -> int:
        return hash((self.kind, self.precision, self.scale, self.name, self.children, self.names))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        """The fields alone: hashes differ from process to process."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        if self.is_enum:
            return "ENUM({})".format(
                ", ".join("'" + n.replace("'", "''") + "'" for n in self.names)
            )
        if self.is_tuple:
            return f"TUPLE({', '.join(map(str, self.children))})"
        if self.name:
            return self.name
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind is Kind.LIST:
            return f"{self.children[0]}[{self.precision or ''}]"
        if self.kind is Kind.MAP:
            return f"MAP({', '.join(map(str, self.children[0].children))})"
        if self.kind is Kind.STRUCT:
            fields = zip(map(quoted_field, self.names), self.children, strict=True)
            return f"STRUCT({', '.join(f'{name} {child}' for name, child in fields)})"
        return UNLIKE_KIND.get(self.kind) or self.kind.name

    def __repr__(self) -> str:
        return str(self)

    @Once
    def is_integer(self) -> bool:
        return self.kind in INTEGER_BITS and not self.is_enum

    @Once
    def is_enum(self) -> bool:
        return self.name == "ENUM"

    @Once
    def is_tuple(self) -> bool:
        return self.name == "TUPLE"

    @Once
    def codes(self) -> DataType:
        """Return the integers that the values of an ENUM are."""
        return DataType(self.kind)

    @Once
    def is_signed_integer(self) -> bool:
        return self.kind in SIGNED_INTEGERS

    @Once
    def is_decimal(self) -> bool:
        """Whether values are unscaled integers of so many digits: DECIMAL and HUGEINT."""
        return self.kind is Kind.DECIMAL

    @Once
    def is_whole(self) -> bool:
        """Whether SQL counts the type among the integers: HUGEINT too."""
        return self.is_integer or self.name == "HUGEINT"

    @Once
    def is_float(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @Once
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_decimal or self.is_float

    @Once
    def is_nested(self) -> bool:
        """Whether a value is made of other values: LIST, STRUCT and MAP."""
        return bool(self.children)

    @Once
    def is_array(self) -> bool:
        """Whether a value is a list of a fixed length."""
        return self.kind is Kind.LIST and self.precision > 0

    @Once
    def is_ranked(self) -> bool:
        """Whether operators see nothing of a value but its rank among others: LIST, STRUCT, BLOB and UUID, which Arrow's arrays hold."""
        return self.is_nested or self.kind in (Kind.BLOB, Kind.UUID)

    def holds(self, kind: Kind) -> bool:
        """Whether values are of a kind, or have some of it inside."""
        return self.kind is kind or any(child.holds(kind) for child in self.children)

    @Once
    def holds_tuple(self) -> bool:
        return self.is_tuple or any(child.holds_tuple for child in self.children)

    @Once
    def varies_in_width(self) -> bool:
        """Whether only an Arrow array holds values of the type, and no array of numbers."""
        return self.kind is Kind.VARCHAR or self.is_ranked

    @Once
    def is_temporal(self) -> bool:
        return self.kind is Kind.DATE or self.is_ticks

    @Once
    def is_ticks(self) -> bool:
        """Whether a value is a count in 64 bits: of microseconds since midnight, or of a unit of time since 1970."""
        return self.kind in TICKS

    @Once
    def fits_register(self) -> bool:
        """Whether a kernel can compute with a value: not with text, which it compares by codes, nor with an INTERVAL or what has a rank alone."""
        return not self.varies_in_width and self.kind not in (Kind.INTERVAL, Kind.NULL)

    @Once
    def is_wide_decimal(self) -> bool:
        """A decimal whose unscaled value needs 128 bits."""
        return self.is_decimal and self.precision > INT64_DECIMAL_DIGITS

    @Once
    def arrow(self) -> pa.DataType:
        """The Arrow type in which results leave the engine."""
        return _arrow_type(self)

    @Once
    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type, or unscaled value of a decimal one."""
        if self.is_decimal:
            limit = 10**self.precision - 1
            return -limit, limit
        bits = INTEGER_BITS[self.kind]
        if self.kind in SIGNED_INTEGERS:
            return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return 0, (1 << bits) - 1


INTEGER_BITS: dict[Kind, int] = {
    Kind.TINYINT: 8,
    Kind.SMALLINT: 16,
    Kind.INTEGER: 32,
    Kind.BIGINT: 64,
    Kind.UTINYINT: 8,
    Kind.USMALLINT: 16,
    Kind.UINTEGER: 32,
    Kind.UBIGINT: 64,
}
UNLIKE_KIND = {Kind.NULL: '"NULL"', Kind.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE"}
# A second's
TICKS: dict[Kind, int] = {
    Kind.TIME: 10**6,
    Kind.TIMESTAMP: 10**6,
    Kind.TIMESTAMP_S: 1,
    Kind.TIMESTAMP_MS: 10**3,
    Kind.TIMESTAMP_NS: 10**9,
    Kind.TIMESTAMPTZ: 10**6,
}
SIGNED_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)

NULL = DataType(Kind.NULL)
BOOLEAN = DataType(Kind.BOOLEAN)
TINYINT = DataType(Kind.TINYINT)
SMALLINT = DataType(Kind.SMALLINT)
INTEGER = DataType(Kind.INTEGER)
BIGINT = DataType(Kind.BIGINT)
UTINYINT = DataType(Kind.UTINYINT)
USMALLINT = DataType(Kind.USMALLINT)
UINTEGER = DataType(Kind.UINTEGER)
UBIGINT = DataType(Kind.UBIGINT)
FLOAT = DataType(Kind.FLOAT)
DOUBLE = DataType(Kind.DOUBLE)
DATE = DataType(Kind.DATE)
TIME = DataType(Kind.TIME)
TIMESTAMP = DataType(Kind.TIMESTAMP)
TIMESTAMP_S = DataType(Kind.TIMESTAMP_S)
TIMESTAMP_MS = DataType(Kind.TIMESTAMP_MS)
TIMESTAMP_NS = DataType(Kind.TIMESTAMP_NS)
TIMESTAMPTZ = DataType(Kind.TIMESTAMPTZ)
INTERVAL = DataType(Kind.INTERVAL)
VARCHAR = DataType(Kind.VARCHAR)
BLOB = DataType(Kind.BLOB)
UUID = DataType(Kind.UUID)
HUGEINT = DataType(Kind.DECIMAL, MAX_DECIMAL_DIGITS, 0, "HUGEINT")  # of SUM over integers
JSON = DataType(Kind.VARCHAR, name="JSON")  # text that is JSON
BIT = DataType(Kind.VARCHAR, name="BIT")  # text of 0 and 1, whose order is that of bits


def room_for(data_type: DataType) -> str:
    """Return what to do about a result that its type does not hold."""
    if data_type == HUGEINT:
        return f"HUGEINT has {MAX_DECIMAL_DIGITS} digits here: cast an argument to DOUBLE."
    return "cast an argument to a wider type."


def decimal(precision: int, scale: int) -> DataType:
    """Return DECIMAL(precision, scale); raises `TypeMismatch` beyond 38 digits."""
    return DataType(Kind.DECIMAL, precision, scale)


def list_of(child: DataType) -> DataType:
    """Return the type of lists whose elements are of one type."""
    return DataType(Kind.LIST, children=(child,))


def array_of(child: DataType, length: int) -> DataType:
    """Return the type of lists that have `length` elements; raises `TypeMismatch` where that is no such number."""
    if not 1 <= length <= MOST_OF_ARRAY:
        raise TypeMismatch(f"An ARRAY has 1 to {MOST_OF_ARRAY:,} elements.")
    return DataType(Kind.LIST, length, children=(child,))


def struct_of(fields: Iterable[tuple[str, DataType]]) -> DataType:
    """Return STRUCT(name type, ...); raises `TypeMismatch` for none, and for a name that comes twice."""
    names, children = zip(*fields, strict=True) or ((), ())
    folded = [name.lower() for name in names]
    again = next((n for i, n in enumerate(folded) if n in folded[:i]), None)
    if again is not None:
        raise TypeMismatch(f'A STRUCT has one field "{again}", and here are two.')
    return DataType(Kind.STRUCT, children=children, names=names)


def tuple_of(children: Iterable[DataType]) -> DataType:
    """Return the type of row values, (1, 'a'), whose fields have places and no names."""
    types = tuple(children)
    names = tuple(f"element{place}" for place in range(1, len(types) + 1))
    return DataType(Kind.STRUCT, name="TUPLE", children=types, names=names)


def map_of(key: DataType, value: DataType) -> DataType:
    """Return the type of maps from keys, which are not NULL and differ from each other, to values."""
    return DataType(Kind.MAP, children=(struct_of((("key", key), ("value", value))),))


# A function in C: each column of each answer is asked for it
to_arrow: Callable[[DataType], pa.DataType] = attrgetter("arrow")


def _arrow_type(data_type: DataType) -> pa.DataType:
    import pyarrow as pa

    if data_type.is_decimal:
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.kind is Kind.MAP:
        key, value = data_type.children[0].children
        untyped = key.kind is Kind.NULL  # of a map without entries, for which pyarrow has no type
        return pa.map_(pa.int32() if untyped else to_arrow(key), to_arrow(value))
    if data_type.is_array:
        return pa.list_(pa.field("", to_arrow(data_type.children[0])), data_type.precision)
    if data_type.is_nested:
        return nested_arrow(data_type, [to_arrow(child) for child in data_type.children])
    if data_type.is_enum:
        return pa.dictionary(to_arrow(data_type.codes), pa.string())
    return {
        Kind.NULL: pa.null(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.TINYINT: pa.int8(),
        Kind.SMALLINT: pa.int16(),
        Kind.INTEGER: pa.int32(),
        Kind.BIGINT: pa.int64(),
        Kind.UTINYINT: pa.uint8(),
        Kind.USMALLINT: pa.uint16(),
        Kind.UINTEGER: pa.uint32(),
        Kind.UBIGINT: pa.uint64(),
        Kind.FLOAT: pa.float32(),
        Kind.DOUBLE: pa.float64(),
        Kind.DATE: pa.date32(),
        Kind.TIME: pa.time64("us"),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.TIMESTAMP_S: pa.timestamp("s"),
        Kind.TIMESTAMP_MS: pa.timestamp("ms"),
        Kind.TIMESTAMP_NS: pa.timestamp("ns"),
        Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
        Kind.INTERVAL: pa.month_day_nano_interval(),
        Kind.VARCHAR: pa.string(),
        Kind.BLOB: pa.binary(),
        Kind.UUID: pa.uuid(),
    }[data_type.kind]


def nested_arrow(data_type: DataType, children: Sequence[pa.DataType]) -> pa.DataType:
    """Return the Arrow type of lists or structs whose children have these; a map is a list of its entries, and an array a list."""
    import pyarrow as pa

    if data_type.kind in (Kind.LIST, Kind.MAP):
        return pa.list_(pa.field("l", children[0]))
    return pa.struct(list(zip(data_type.names, children, strict=True)))
