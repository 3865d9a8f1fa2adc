"""What other dataframe libraries call the things that Frame and GroupBy have: the remedy of an AttributeError."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UnknownAttribute, nearest

INSTEAD = {
    "aggregate": "agg(...)",
    "arrow": "to_arrow()",
    "assign": "with_columns(...)",
    "collect": "to_arrow(), to_polars() or to_pandas()",
    "collect_batches": "to_batches()",
    "concat": "union(other)",
    "describe": "schema for the types, agg(...) for what is in the columns",
    "df": "to_pandas()",
    "difference": "except_(other)",
    "drop_duplicates": "distinct(...)",
    "dropna": "drop_nulls(...)",
    "dtypes": "schema",
    "execute": "to_arrow()",
    "fetch_df": "to_pandas()",
    "fetch_arrow_reader": "to_batches()",
    "fetch_record_batch": "to_batches()",
    "fetchdf": "to_pandas()",
    "fetchmany": "to_batches(), or `for row in frame`",
    "fetchone": "fetchall(), or `for row in frame`",
    "fill_null": 'with_columns(x=col("x").fill_null(value))',
    "fillna": 'with_columns(x=col("x").fill_null(value))',
    "groupby": "group_by(...)",
    "having": "filter(...) after agg(...)",
    "len": "count()",
    "merge": "join(...)",
    "mutate": "with_columns(...)",
    "nunique": "count(column, distinct=True) in agg(...)",
    "order_by": "sort(...)",
    "pl": "to_polars()",
    "shape": "len(frame) and len(frame.columns)",
    "size": "count()",
    "sort_values": "sort(...)",
    "tail": "sort(..., descending=True).head(n): rows have no order of their own",
    "to_arrow_reader": "to_batches()",
    "to_dicts": "to_arrow().to_pylist()",
    "to_reader": "to_batches()",
    "union_all": "union(other)",
    "unique": "distinct(...)",
    "where": "filter(...)",
    "with_column": "with_columns(...)",
    "to_feather": "write_ipc(path)",
    "to_json": "write_json(path)",
    "sink_csv": "write_csv(path)",
    "sink_ipc": "write_ipc(path)",
    "sink_parquet": "write_parquet(path)",
    "write_ndjson": "write_json(path)",
}


def missing(owner: type, name: str, columns: Sequence[str] = ()) -> UnknownAttribute:
    """Return the error for an attribute that does not exist: what to write instead, or the nearest names."""
    start = f"{owner.__name__} has no {name!r}."
    if name in columns:
        return UnknownAttribute(f'{start} A column is written frame["{name}"] or col("{name}").')
    if name in INSTEAD:
        return UnknownAttribute(f"{start} Use {INSTEAD[name]}.")
    public = [n for n in dir(owner) if not n.startswith("_")]
    return UnknownAttribute(start + nearest(name, public))
