"""What DuckDB's table of functions has and ours has not, each with its reason: these lists may only shrink."""

from __future__ import annotations

# Reason -> names
NAMES = {
    "they are DuckDB's insides: its vectors, logs, plans, statistics and states of aggregates": """
        alias bitstring_byte_comparable combine combine_aggr create_sort_key current_connection_id current_query_id
        current_transaction_id finalize get_type hive_partition_component index_key invoke is_histogram_other_bin
        json_deserialize_sql json_serialize_plan json_serialize_sql make_type parse_duckdb_log_message remap_struct
        can_cast_implicitly replace_type stats switch timetz_byte_comparable to_aggregate_state txid_current
        unpivot_list vector_type write_log
    """,
    "VARIANT stays refused": """
        variant_array_length variant_bytes_to_variant variant_comparator variant_contains variant_exists
        variant_extract variant_extract_string variant_group_object variant_keys variant_normalize
        variant_to_parquet_variant variant_type variant_typeof
    """,
    "UNION stays refused": """
        union_extract union_tag union_value
    """,
    "the type UHUGEINT is to come: HUGEINT has 38 digits here, which are too few": """
        md5_number
    """,
    "the type TIME WITH TIME ZONE is to come": """
        get_current_time
    """,
    "lists are to come": """
        equi_width_bins lttb
    """,
    "is to come": """
        sleep_ms
    """,
}

# Reason -> signatures; those with a type that is missing here are not listed, since the test finds them
SIGNATURES = {
    "one argument: the sign + or -, which is written as such": """
        add(BIGINT) add(DECIMAL) add(DOUBLE) add(FLOAT) add(HUGEINT) add(INTEGER) add(SMALLINT) add(TINYINT)
        add(UBIGINT) add(UINTEGER) add(USMALLINT) add(UTINYINT)
        subtract(BIGINT) subtract(DECIMAL) subtract(DOUBLE) subtract(FLOAT) subtract(HUGEINT) subtract(INTEGER)
        subtract(INTERVAL) subtract(SMALLINT) subtract(TINYINT)
    """,
    "HUGEINT is a decimal here and has no bits, and its digits are constants": """
        bit_and(HUGEINT) bit_or(HUGEINT) bit_xor(HUGEINT) xor(HUGEINT,HUGEINT) bit_count(HUGEINT) round(HUGEINT,INTEGER)
        trunc(HUGEINT,INTEGER)
    """,
    "it is the version of Fuseline": "version()",
}

# Words of refusals that say that an example shows a type that is missing here
TYPES = ("The type UHUGEINT is",)

# Examples that differ -> reason
EXAMPLES = {
    r"decode('\xA0'::BLOB, 'replace')": "DuckDB replaces valid characters behind invalid ones: 'strict' and 'ignore' are known",
    "version()": "it is that of Fuseline",
    "current_setting('access_mode')": "no setting here: READ_ONLY is said of a database that is opened or attached",
    "4!": "the sign ! of factorial() is no operator here",
}
