"""What Fuseline has of what SQLAlchemy's tests for dialects ask for; each test of something else is skipped by its requirement."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

THERE = (
    "create_table_as", "create_temp_table_as", "table_ddl_if_exists", "uuid_data_type", "table_value_constructor",
    "boolean_col_expressions", "nullsordering", "intersect", "except_", "window_functions", "window_range", "window_range_numeric",
    "ctes", "ctes_with_update_delete", "ctes_with_values", "tuple_in",
    "views", "schemas", "implicit_default_schema", "schema_create_delete", "temporary_views", "create_or_replace_view",
    "temp_table_reflection", "temp_table_names", "unicode_ddl",
    "datetime_timezone", "datetime_historic", "date_historic", "timestamp_microseconds", "server_defaults", "expression_server_defaults",
    "infinity_floats", "update_from", "delete_from", "mod_operator_as_percent_sign", "percent_schema_names", "order_by_label_with_expression",
    "supports_distinct_on", "regexp_match", "regexp_replace", "fetch_first", "fetch_no_order_by", "aggregate_order_by",
    "supports_bitwise_or", "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_xor", "supports_bitwise_shift",
    "precision_numerics_many_significant_digits", "precision_numerics_enotation_small", "precision_numerics_retains_significant_digits",
    "view_reflection", "view_column_reflection", "has_temp_table", "datetime_literals", "tuple_in_w_empty", "autoincrement_insert", "autoincrement_without_sequence", "empty_inserts", "order_by_collation", "timestamp_microseconds_implicit_bound",
)  # fmt: skip
NO_FOREIGN_KEYS = "there are no foreign keys: a table that has one is refused"
NO_LAST_ROW = "a cursor does not know the last key that was given: RETURNING tells"
NO_INDEXES = "the dialect tells of no index, since none makes a query faster"
NO_NAMES = (
    "names of constraints are made of the table and its columns: those that are given are not kept"
)
NO_COMMENTS = (
    "the dialect does not read comments back, which COMMENT ON sets and duckdb_tables() shows"
)
NO_CHECKS = "the dialect does not read CHECK constraints back, which duckdb_constraints() shows"
NO_OPTIONS = "a table has no options of storage"
NO_IDENTITY = "GENERATED AS IDENTITY is refused: a DEFAULT of nextval() gives values"
NO_TIES = "FETCH takes a constant number of rows and no WITH TIES: rank() in QUALIFY gives ties"
NO_SHARES = (
    "FETCH takes no share of the rows: LIMIT n PERCENT does, which SQLAlchemy does not write"
)
NO_MATERIALIZED_VIEWS = "there are no materialized views: CREATE TABLE AS keeps rows"
NO_INTERVALS = "the dialect has no type for INTERVAL: SQLAlchemy gives a timestamp in its place"
NO_COLLATIONS = "a column has no collation of its own: COLLATE stands in queries"
IN_MEMORY = "fuseline:/// is a database in the memory of one engine, which no other engine sees"
NOT_THERE = {
    NO_FOREIGN_KEYS: (
        "foreign_keys", "self_referential_foreign_keys", "foreign_key_constraint_reflection", "on_update_cascade",
        "foreign_key_constraint_option_reflection_onupdate", "foreign_key_constraint_option_reflection_ondelete",
        "fk_constraint_option_reflection_onupdate_restrict", "fk_constraint_option_reflection_ondelete_restrict",
        "fk_constraint_option_reflection_ondelete_noaction", "cross_schema_fk_reflection",
    ),
    NO_LAST_ROW: ("implements_get_lastrowid",),
    NO_INDEXES: (
        "index_reflection", "indexes_with_ascdesc", "reflect_indexes_with_ascdesc", "temp_table_reflect_indexes",
        "index_ddl_if_exists", "indexes_check_column_order", "indexes_with_expressions", "index_reflects_included_columns",
    ),
    NO_NAMES: ("unique_constraint_reflection", "named_constraints", "implicitly_named_constraints", "reflects_pk_names"),
    NO_COMMENTS: ("comment_reflection", "comment_reflection_full_unicode", "temp_table_comment_reflection"),
    NO_CHECKS: ("check_constraint_reflection", "inline_check_constraint_reflection"),
    NO_OPTIONS: ("reflect_table_options",),
    NO_IDENTITY: ("identity_columns",),
    NO_TIES: ("fetch_ties", "fetch_expression"),
    NO_SHARES: ("fetch_percent", "fetch_offset_with_options"),
    NO_MATERIALIZED_VIEWS: ("materialized_views",),
    NO_INTERVALS: ("window_range_non_numeric",),
    NO_COLLATIONS: ("column_collation_reflection",),
    IN_MEMORY: ("independent_connections", "ad_hoc_engines"),
}  # fmt: skip


class FuselineRequirements(SuiteRequirements):
    """What tests ask for by these names."""

    def get_order_by_collation(self, _: object) -> str:
        """Return the name of a collation."""
        return "nocase"


# Each asked for anew: a test adds what else it needs to the object that it gets
for name in THERE:
    setattr(FuselineRequirements, name, property(lambda _: exclusions.open()))
for reason, names in NOT_THERE.items():
    for name in names:
        closed = property(lambda _, why=reason: exclusions.closed(why))
        setattr(FuselineRequirements, name, closed)
