"""Settings of DuckDB that are taken and do nothing: how it works, and no answer; rows keep their order here in any case.

Others are taken with the value that says what is so here anyway.
"""

from ..errors import Unsupported

SWITCHES = frozenset(
    [
        "allocator_flush_threshold",
        "allow_community_extensions",
        "allow_persistent_secrets",
        "allow_unsigned_extensions",
        "asof_loop_join_threshold",
        "autoinstall_known_extensions",
        "autoload_known_extensions",
        "checkpoint_threshold",
        "custom_user_agent",
        "disabled_optimizers",
        "dynamic_or_filter_threshold",
        "enable_external_file_cache",
        "enable_fsst_vectors",
        "enable_http_metadata_cache",
        "enable_object_cache",
        "extension_directory",
        "index_scan_max_count",
        "index_scan_percentage",
        "late_materialization_max_rows",
        "merge_join_threshold",
        "nested_loop_join_threshold",
        "ordered_aggregate_threshold",
        "parquet_metadata_cache",
        "partitioned_write_flush_threshold",
        "partitioned_write_max_open_files",
        "perfect_ht_threshold",
        "pivot_filter_threshold",
        "prefer_range_joins",
        "preserve_insertion_order",
        "scheduler_process_partial",
        "streaming_buffer_size",
        "wal_autocheckpoint",
    ]
)
# The value that is shown, those that are taken, what it means, and what is said of others
FIXED: dict[str, tuple[object, tuple[object, ...], str, str]] = {
    "default_collation": (
        "",
        ("", "binary", "c", "posix"),
        "texts are compared by their bytes where no COLLATE stands",
        "write COLLATE where texts are compared or sorted, as in x = 'a' COLLATE NOCASE",
    ),
    "ieee_floating_point_ops": (
        True,
        (True, "true", "1", 1),
        "x / 0 of floats is infinite or NaN, as ln(0) and sqrt(-1) are",
        "x / nullif(y, 0) is NULL for a divisor of 0",
    ),
}


def is_fixed(name: str, value: object) -> bool:
    """Whether a setting is one whose value is so anyway; raises `Unsupported` where it asks for another."""
    if name not in FIXED:
        return False
    _, taken, _, instead = FIXED[name]
    if (value.lower() if isinstance(value, str) else value) not in taken:
        raise Unsupported(f"{name} keeps its value here: {instead}.")
    return True
