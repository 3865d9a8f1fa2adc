"""What other dataframe libraries call the things that frames and expressions have: the remedy of an AttributeError."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UnknownAttribute, nearest

# What relations of DuckDB call functions otherwise than SQL does
DUCKDB_FUNCTIONS = {"std": "stddev", "var": "variance", "n_tile": "ntile"}
# Names that several classes lack, and those of one class
INSTEAD = {
    **dict.fromkeys(
        ("insert", "update"),
        'connection.execute("INSERT INTO table VALUES (?, ?)", values) and UPDATE',
    ),
    "preview": "repr(frame) or show()",
    "assign": "with_columns(...)",
    "collect": "to_arrow(), to_polars() or to_pandas()",
    "collect_batches": "to_batches()",
    "collect_schema": "schema",
    "compute": "to_arrow(), to_polars() or to_pandas()",
    "concat": "union(other)",
    "difference": "except_(other)",
    "drop_duplicates": "distinct(...)",
    "dropna": "drop_nulls(...)",
    "eval": 'sql("SELECT ... FROM self")',
    "execute": "to_arrow()",
    "fetch": "limit(n), and then to_arrow(), to_polars() or to_pandas()",
    "fillna": "fill_null(value)",
    "gather_every": 'with_row_index().filter(col("index") % n == 0)',
    "groupby": "group_by(...)",
    "having": "filter(...) after agg(...)",
    "iloc": "limit(count, offset=first)",
    "isna": 'filter(col("x").is_null())',
    "lazy": "the frame as it is: it is lazy",
    "len": "count()",
    "loc": "filter(...) for rows and select(...) for columns",
    "melt": "unpivot(...)",
    "merge": "join(...)",
    "mutate": "with_columns(...)",
    "nlargest": "top_k(k, by)",
    "nsmallest": "bottom_k(k, by)",
    "nunique": "count(column, distinct=True) in agg(...)",
    "order_by": "sort(...)",
    "partition_by": "group_by(...), or over(...) of an expression",
    "pivot_table": "pivot(on, values, index)",
    "relocate": "select(...) in the order that you want",
    "reset_index": "the frame as it is: it has no index",
    "set_index": "the frame as it is: it has no index",
    "size": "count()",
    "slice": "limit(count, offset=first)",
    "sort_values": "sort(...)",
    "to_pyarrow": "to_arrow()",
    "to_reader": "to_arrow_reader()",
    "union_all": "union(other)",
    "unique": "distinct(...), which keeps the other columns; select(...).distinct() does not",
    "where": "filter(...)",
    "with_column": "with_columns(...)",
    "with_row_count": "with_row_index()",
    "to_feather": "write_ipc(path)",
    "to_json": "write_json(path)",
    "sink_csv": "write_csv(path)",
    "sink_ipc": "write_ipc(path)",
    "sink_parquet": "write_parquet(path)",
    "write_ndjson": "write_json(path)",
}
OF_EXPRESSIONS = {
    "apply": "functions of SQL, fn.<name>(...)",
    "arg_max": 'fn.arg_max("value", "key")',
    "arg_min": 'fn.arg_min("value", "key")',
    "ascending": "asc()",
    "astype": 'cast("type")',
    "bfill": "backward_fill()",
    "collect": "implode()",
    "contains": ".str.contains(...)",
    "cummax": "cum_max()",
    "cummin": "cum_min()",
    "cumsum": "cum_sum()",
    "day": ".dt.day()",
    "descending": "desc()",
    "drop_nulls": 'frame.drop_nulls("x")',
    "dropna": 'frame.drop_nulls("x")',
    "eq_missing": "eq_null(other)",
    "ewm_mean": "rolling_mean(window_size)",
    "explode": 'frame.explode("x")',
    "ffill": "forward_fill()",
    "fillna": "fill_null(value)",
    "hour": ".dt.hour()",
    "ifelse": "when(condition).then(x).otherwise(y)",
    "isna": "is_null()",
    "is_not_nan": "~x.is_nan()",
    "len": "fuseline.count()",
    "length": ".str.len() or .list.len()",
    "lower": ".str.lower()",
    "map_batches": "functions of SQL, fn.<name>(...)",
    "map_elements": "functions of SQL, fn.<name>(...)",
    "month": ".dt.month()",
    "name": "alias(name), prefix(text), suffix(text) or keep_name()",
    "not_null": "is_not_null()",
    "notna": "is_not_null()",
    "notnull": "is_not_null()",
    "nunique": "n_unique()",
    "pow": "**",
    "rolling": "rolling_sum(window_size), rolling_mean(...) and so on",
    "sort": 'frame.sort("x")',
    "split": ".str.split(...)",
    "startswith": ".str.starts_with(...)",
    "strftime": ".dt.strftime(...)",
    "try_cast": 'cast("type", safe=True)',
    "unique": 'frame.distinct("x")',
    "unnest": 'frame.unnest("x")',
    "upper": ".str.upper()",
    "value_counts": 'frame.value_counts("x")',
    "where": "filter(condition) of an aggregate, or when(condition).then(x)",
    "year": ".dt.year()",
}
OF_TEXTS = {
    "endswith": "ends_with(...)",
    "startswith": "starts_with(...)",
    "len_chars": "len()",
    "length": "len()",
    "ljust": "pad_end(length)",
    "lstrip": "strip_start()",
    "match": "contains(pattern)",
    "rjust": "pad_start(length)",
    "rstrip": "strip_end()",
    "to_lowercase": "lower()",
    "to_uppercase": "upper()",
    "strptime": "to_date(format) or to_datetime(format)",
    "to_int": "to_integer()",
}
OF_MOMENTS = {
    "dayofweek": "weekday()",
    "dayofyear": "day_of_year()",
    "floor": "truncate(unit)",
    "iso_year": 'fn.isoyear("x")',
    "isocalendar": "week() and weekday()",
    "month_start": 'truncate("month")',
    "offset_by": "x + timedelta(...)",
    "timestamp": "epoch()",
}
OF_LISTS = {
    "arr": "the methods of .list",
    "eval": "transform(lambda x: ...)",
    "length": "len()",
    "map": "transform(lambda x: ...)",
    "explode": 'frame.explode("x")',
}
_OF: dict[str, dict[str, str]] = {
    "Expression": OF_EXPRESSIONS,
    "TextMethods": OF_TEXTS,
    "MomentMethods": OF_MOMENTS,
    "ListMethods": OF_LISTS,
    "StructMethods": {},
}


def missing(owner: type, name: str, columns: Sequence[str] = ()) -> UnknownAttribute:
    """Return the error for an attribute that does not exist: what to write instead, or the nearest names."""
    start = f"{owner.__name__} has no {name!r}."
    if name in columns:
        return UnknownAttribute(f'{start} A column is written frame["{name}"] or col("{name}").')
    instead = _OF.get(owner.__name__, INSTEAD)
    if name in instead:
        return UnknownAttribute(f"{start} Use {instead[name]}.")
    public = [n for n in dir(owner) if not n.startswith("_")]
    return UnknownAttribute(start + nearest(name, public))
