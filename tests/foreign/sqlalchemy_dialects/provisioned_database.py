"""What SQLAlchemy's tests need a database to have before they begin."""

from sqlalchemy import URL, Engine
from sqlalchemy.testing.config import Config
from sqlalchemy.testing.provision import (
    generate_driver_url,
    post_configure_engine,
    temp_table_keyword_args,
    update_db_opts,
)


@generate_driver_url.for_db("fuseline")
def only_driver(url: URL, driver: str, query_str: str) -> URL:
    """Return the URL as it is: there is one driver, and no name for it beside the dialect's."""
    return url


@update_db_opts.for_db("fuseline")
def without_foreign_keys(url: URL, options: dict[str, object], *_: object) -> None:
    """Have tables made without their foreign keys, which most tests only have along."""
    options["foreign_keys"] = "omit"


@post_configure_engine.for_db("fuseline")
def with_schema(url: URL, engine: Engine, follower_ident: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS test_schema")


@temp_table_keyword_args.for_db("fuseline")
def temporary(config: Config, engine: Engine) -> dict[str, object]:
    return {"prefixes": ["TEMPORARY"]}
