"""What sqlglot's classes are to us: its type nodes as types, its function classes as names in the table of functions, with the order
in which their arguments go.

sqlglot gives many functions a class of their own with arguments of its own names.  A class that is not here is looked up by
its SQL name and has to keep its arguments in `this`, `expression` and `expressions`, in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sqlglot import exp

from fuseline.errors import Located, ParseError, Unsupported
from fuseline.plan import derived, types as ty
from fuseline.plan.changes.catalog_objects import UserType
from fuseline.plan.coercion import decimal_type, enum_of, parse_type
from fuseline.plan.functions import aggregate_name, scalar_name, window_name
from fuseline.sql.parsing.pieces import span_of
from fuseline.sql.parsing.tokens import TUPLE
from fuseline.sql.parsing.unread import use

UserTypes: TypeAlias = Mapping[str, UserType]  # by names in lower case

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.IntDiv: "int_div",
    exp.Mod: "mod",
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shift_left",
    exp.BitwiseRightShift: "shift_right",
    exp.DPipe: "concat",
    exp.ArrayContainsAll: "list_has_all",
    exp.ArrayOverlaps: "list_has_any",
}

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "is_not_distinct",
    exp.NullSafeNEQ: "is_distinct",
}

# Class -> name, keys of the arguments in the order of the table.
Classes = dict[type[exp.Expr], tuple[str, tuple[str, ...]]]

SCALARS: Classes = {
    exp.Ceil: ("ceil", ("this", "decimals")),
    exp.Floor: ("floor", ("this", "decimals")),
    exp.Round: ("round", ("this", "decimals")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Pow: ("power", ("this", "expression")),
    exp.IsNan: ("isnan", ("this",)),
    exp.IsInf: ("isinf", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Concat: ("concat", ("expressions",)),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Chr: ("chr", ("expressions",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.CurrentSchemas: ("current_schemas", ("this",)),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.StrPosition: ("position", ("this", "substr")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    exp.RegexpLike: ("regexp_matches", ("this", "expression", "flag")),
    exp.RegexpFullMatch: ("regexp_full_match", ("this", "expression", "options")),
    exp.RegexpReplace: ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    exp.RegexpExtract: ("regexp_extract", ("this", "expression", "group", "parameters")),
    exp.Format: ("format", ("this", "expressions")),
    exp.JarowinklerSimilarity: (
        "jaro_winkler_similarity",
        ("this", "expression", "case_insensitive"),
    ),
    exp.SHA2: ("sha256", ("this",)),
    exp.ArraySlice: ("array_slice", ("this", "start", "end", "step")),
    exp.Glob: ("glob", ("this", "expression")),
    exp.SimilarTo: ("regexp_full_match", ("this", "expression")),
    exp.If: ("if", ("this", "true", "false")),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.TimeToUnix: ("epoch", ("this",)),
    exp.DayOfWeekIso: ("isodow", ("this",)),
    exp.DayOfWeek: ("dayofweek", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.WeekOfYear: ("week", ("this",)),
    exp.Week: ("week", ("this", "mode")),
    exp.Date: ("date", ("this",)),
    exp.DateAdd: ("date_add", ("this", "expression")),
    exp.DateFromParts: ("make_date", ("year", "month", "day")),
    exp.TimeFromParts: ("make_time", ("hour", "min", "sec")),
    exp.TimestampFromParts: (
        "make_timestamp",
        ("year", "month", "day", "hour", "min", "sec"),
    ),
    exp.LastDay: ("last_day", ("this",)),
    exp.TimeToStr: ("strftime", ("this", "format")),
    exp.StrToTime: ("strptime", ("this", "format")),
}


# Words without parentheses -> the function of the same moment
MOMENTS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "today",
    exp.CurrentTimestamp: "now",
    exp.Localtimestamp: "current_localtimestamp",
    exp.Localtime: "current_localtime",
}

# Classes whose SQL names are not those of the table.
AGGREGATES: Classes = {
    exp.LogicalAnd: ("bool_and", ("this",)),
    exp.LogicalOr: ("bool_or", ("this",)),
    exp.BitwiseAndAgg: ("bit_and", ("this",)),
    exp.BitwiseOrAgg: ("bit_or", ("this",)),
    exp.BitwiseXorAgg: ("bit_xor", ("this",)),
    exp.Variance: ("var_samp", ("this",)),
    exp.VariancePop: ("var_pop", ("this",)),
    exp.ArrayAgg: ("list", ("this",)),
    exp.GroupConcat: ("string_agg", ("this", "separator")),
    exp.PercentileCont: ("quantile_cont", ("this", "expression")),
    exp.PercentileDisc: ("quantile_disc", ("this", "expression")),
    exp.Quantile: ("quantile_disc", ("this", "quantile")),
    exp.ApproxQuantile: ("approx_quantile", ("this", "quantile")),
    exp.ApproxDistinct: ("approx_count_distinct", ("this",)),
    exp.Min: ("min", ("this", "count")),
    exp.Max: ("max", ("this", "count")),
    exp.ArgMin: ("arg_min", ("this", "expression", "count")),
    exp.ArgMax: ("arg_max", ("this", "expression", "count")),
}

WINDOWS: Classes = {
    exp.Lag: ("lag", ("this", "offset", "default")),
    exp.Lead: ("lead", ("this", "offset", "default")),
    exp.NthValue: ("nth_value", ("this", "offset")),
}


def scalar(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """Return the name and arguments of a scalar function, None for what is none of the table's."""
    if isinstance(node, exp.Anonymous):
        return node.name, list(node.expressions)
    if isinstance(node, exp.Pad):
        name = "lpad" if node.args.get("is_left") else "rpad"
        return name, arguments(node, ("this", "expression", "fill_pattern"))
    if isinstance(node, exp.Trim):
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            node.args.get("position") or "", "trim"
        )
        return name, arguments(node, ("this", "expression"))
    if isinstance(node, exp.SHA2) and span_of(length := node.args["length"]) is None:
        use(length)  # which sqlglot adds to sha256
    if type(node) in SCALARS:
        name, keys = SCALARS[type(node)]
        return name, arguments(node, keys)
    return _by_sql_name(node, lambda n: scalar_name(n) is not None or derived.is_function(n))


def aggregate(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """Return the name and arguments of an aggregate function, None for anything else."""
    return _called(node, aggregate_name, AGGREGATES)


def window(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """Return the name and arguments of a window function that is no aggregate of that name, None for anything else."""
    found = _called(node, window_name, WINDOWS)
    return None if found is None else (window_name(found[0]) or found[0], found[1])


def _called(
    node: exp.Expr, name_of: Callable[[str], str | None], classes: Classes
) -> tuple[str, list[exp.Expr]] | None:
    if isinstance(node, exp.Anonymous):
        known = name_of(node.name)
        return None if known is None else (known, list(node.expressions))
    if type(node) in classes:
        name, keys = classes[type(node)]
        return name, arguments(node, keys)
    return _by_sql_name(node, lambda n: name_of(n) is not None)


def _by_sql_name(node: exp.Expr, known: Callable[[str], bool]) -> tuple[str, list[exp.Expr]] | None:
    """Find a function by the names that SQL has for its class."""
    if not isinstance(node, exp.Func):
        return None
    name = next((n.lower() for n in type(node).sql_names() if known(n.lower())), None)
    return None if name is None else (name, arguments(node, ("this", "expression", "expressions")))


def arguments(node: exp.Expr, keys: tuple[str, ...]) -> list[exp.Expr]:
    """Return the arguments under `keys`; `refuse_unused` finds others."""
    found: list[exp.Expr] = []
    for key in keys:
        value = node.args.get(key)
        if isinstance(value, list):
            found.extend(value)
        elif value is not None:
            found.append(value)
    return found


# sqlglot's names that are not SQL's.
_RENAMED = {
    "INT": "INTEGER",
    "TEXT": "VARCHAR",
    "VARBINARY": "BLOB",
    "TIMESTAMPNTZ": "TIMESTAMP",
    "INT128": "HUGEINT",
    "TIMESTAMPLTZ": "TIMESTAMPTZ",
    "UINT": "UINTEGER",
}
# Types of DuckDB that this engine does not have.
_MISSING = {
    "TIMETZ": "TIME WITH TIME ZONE",
    "UINT128": "UHUGEINT",
    "UNION": "UNION",
}


def _list_type(node: exp.DataType, types: UserTypes) -> ty.DataType:
    child = data_type(node.expressions[0], types)
    length = node.args.get("values")
    if not length:
        return ty.list_of(child)
    use(*length)
    if len(length) != 1 or not length[0].name.isdigit():
        raise ParseError("The length of an ARRAY is a number: INTEGER[3].", span_of(node))
    with Located(span_of(node)):
        return ty.array_of(child, int(length[0].name))


def _enum_type(node: exp.DataType, _: UserTypes) -> ty.DataType:
    use(*node.expressions)
    if not all(isinstance(v, exp.Literal) and v.is_string for v in node.expressions):
        raise ParseError("The values of an ENUM are texts: ENUM('a', 'b').", span_of(node))
    return enum_of(v.name for v in node.expressions)


def _map_type(node: exp.DataType, types: UserTypes) -> ty.DataType:
    if len(node.expressions) != 2:
        raise ParseError(
            "A MAP has a type of keys and one of values: MAP(VARCHAR, INTEGER).", span_of(node)
        )
    return ty.map_of(*(data_type(part, types) for part in node.expressions))


def _struct_type(node: exp.DataType, types: UserTypes) -> ty.DataType:
    for field in node.expressions:
        if not isinstance(field, exp.ColumnDef):
            raise ParseError("A field of a STRUCT is a name and a type.", span_of(node))
        use(field, field.this)
    return ty.struct_of((f.name, data_type(f.args["kind"], types)) for f in node.expressions)


def _tuple_type(node: exp.DataType, types: UserTypes) -> ty.DataType:
    return ty.tuple_of(data_type(part, types) for part in node.expressions)


def _decimal_type(node: exp.DataType, _: UserTypes) -> ty.DataType:
    place = span_of(node)
    for parameter in node.expressions:
        use(parameter, parameter.this)
    parameters = [p.name for p in node.expressions]
    if not all(parameter.isdigit() for parameter in parameters):
        raise ParseError("DECIMAL takes numbers of digits: DECIMAL(18, 3).", place)
    precision, scale = (*parameters, None, None)[:2]
    return decimal_type(precision, scale, place)


def _text_type(node: exp.DataType, _: UserTypes) -> ty.DataType:
    """CHARACTER(n) and its like are VARCHAR, whose values have any length, as in DuckDB."""
    if len(_numbers(node)) > 1:
        raise ParseError("A type of text takes one length: VARCHAR(20).", span_of(node))
    return ty.VARCHAR


def _float_type(node: exp.DataType, _: UserTypes) -> ty.DataType:
    """FLOAT(p) has at least p binary digits: up to 24 of them FLOAT has, up to 53 DOUBLE."""
    digits = _numbers(node)
    if len(digits) > 1 or not all(1 <= n <= 53 for n in digits):
        raise ParseError("FLOAT takes a number of binary digits from 1 to 53.", span_of(node))
    return ty.DOUBLE if digits and digits[0] > 24 else ty.FLOAT


def _numbers(node: exp.DataType) -> list[int]:
    """Return the parameters of a type that takes whole numbers."""
    use(*node.expressions, *(p.this for p in node.expressions))
    names = [p.name for p in node.expressions]
    if not all(name.isdigit() for name in names):
        raise ParseError("The parameter of this type is a whole number.", span_of(node))
    return [int(name) for name in names]


def _timestamp_type(node: exp.DataType, _: UserTypes) -> ty.DataType:
    """TIMESTAMP(p) is the type that keeps p digits of a second, of those that keep none, three, six and nine."""
    digits = _numbers(node)
    if len(digits) > 1 or max(digits, default=6) > 9:
        raise ParseError("TIMESTAMP takes a number of digits from 0 to 9.", span_of(node))
    by_digits = (ty.TIMESTAMP_S, ty.TIMESTAMP_MS, ty.TIMESTAMP, ty.TIMESTAMP_NS)
    return by_digits[(digits[0] + 2) // 3] if digits else ty.TIMESTAMP


def _named_type(node: exp.DataType, types: UserTypes) -> ty.DataType:
    """Return a type that CREATE TYPE gave a name, or that sqlglot does not know."""
    name = str(node.args.get("kind") or "")
    own = types.get(name.lower().removeprefix("main."))
    return parse_type(name, span_of(node)) if own is None else own.type


# What has parts
_TYPES: dict[str, Callable[[exp.DataType, UserTypes], ty.DataType]] = {
    **dict.fromkeys(("ARRAY", "LIST"), _list_type),
    "ENUM": _enum_type,
    "MAP": _map_type,
    "STRUCT": _struct_type,
    TUPLE.name: _tuple_type,
    "DECIMAL": _decimal_type,
    "FLOAT": _float_type,
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "NVARCHAR"), _text_type),
    "TIMESTAMPNTZ": _timestamp_type,
    "USERDEFINED": _named_type,
}


def data_type(node: exp.Expr, types: UserTypes) -> ty.DataType:
    """Return the type that CAST or a column definition names; raises `UnknownName` and `Unsupported`.

    `types` are those that CREATE TYPE gave a name.
    """
    place = span_of(node)
    if not isinstance(node, exp.DataType):
        return parse_type(node.sql("duckdb"), place)
    use(node)
    kind = node.this
    name = kind.name if isinstance(kind, exp.DType) else str(kind)
    if name in _MISSING:
        raise Unsupported(
            f"The type {_MISSING[name]} is not supported: use one of the numbers, BOOLEAN, VARCHAR, DATE, TIMESTAMP, INTERVAL.",
            place,
        )
    made = _TYPES.get(name)
    return parse_type(_RENAMED.get(name, name), place) if made is None else made(node, types)
