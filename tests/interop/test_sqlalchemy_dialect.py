"""The SQLAlchemy dialect: Core, the ORM, reflection, transactions, and pandas by way of an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import pytest

import fuseline
from tests.test_layout import ROOT

sa = pytest.importorskip("sqlalchemy")
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column  # noqa: E402

METADATA = sa.MetaData()
TRIPS = sa.Table(
    "trips",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("driver", sa.String(20), nullable=False),
    sa.Column("fare", sa.Float),
    sa.Column("day", sa.Date),
    sa.Column("price", sa.Numeric(9, 2), server_default="1.50"),
    sa.Column("paid", sa.Boolean, unique=True),
    sa.CheckConstraint("fare >= 0"),
)


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    made = sa.create_engine("fuseline:///?device=cpu")
    yield made
    made.dispose()


@pytest.fixture
def trips(engine: sa.Engine) -> sa.Engine:
    METADATA.create_all(engine)
    rows = [
        {"id": i, "driver": f"d{i % 3}", "fare": i * 1.5, "day": date(2026, 1, 1 + i)}
        for i in range(10)
    ]
    with engine.begin() as connection:
        connection.execute(TRIPS.insert(), rows)
    return engine


def test_queries_of_core(trips: sa.Engine) -> None:
    total = sa.func.sum(TRIPS.c.fare).label("total")
    by_driver = sa.select(TRIPS.c.driver, total).group_by(TRIPS.c.driver)
    number = sa.func.row_number().over(partition_by=TRIPS.c.driver, order_by=TRIPS.c.id)
    with trips.connect() as connection:

        def rows(query: sa.Select) -> list[tuple]:
            return [tuple(row) for row in connection.execute(query)]

        assert rows(by_driver.order_by(sa.desc("total")).limit(1)) == [("d0", 27.0)]
        assert rows(by_driver.having(total > 25)) == [("d0", 27.0)]
        assert rows(
            sa.select(TRIPS.c.id).where(TRIPS.c.driver.in_(["d1"]), TRIPS.c.fare.between(2, 9))
        ) == [(4,)]
        assert rows(sa.select(TRIPS.c.id).where(TRIPS.c.driver.in_([]))) == []
        assert rows(sa.select(TRIPS.c.id).where(TRIPS.c.driver.ilike("D_"), TRIPS.c.id < 1)) == [
            (0,)
        ]
        assert rows(
            sa.select(TRIPS.c.id).where(TRIPS.c.driver.regexp_match("^d[12]$"), TRIPS.c.id < 2)
        ) == [(1,)]
        assert rows(sa.select(TRIPS.c.id).order_by(TRIPS.c.id).offset(8)) == [(8,), (9,)]
        assert rows(sa.select(number).order_by(TRIPS.c.id).limit(4)) == [(1,), (1,), (1,), (2,)]
        assert rows(sa.select(TRIPS.c.price).where(TRIPS.c.id == 1)) == [(Decimal("1.50"),)]
        other = TRIPS.alias()
        joined = sa.select(sa.func.count()).select_from(
            TRIPS.join(other, TRIPS.c.driver == other.c.driver)
        )
        assert connection.execute(joined).scalar() == 34
        later = sa.select(TRIPS.c.id).where(TRIPS.c.day > date(2026, 1, 8)).cte()
        assert connection.execute(sa.select(sa.func.min(later.c.id))).scalar() == 8
        assert connection.execute(sa.text("select :a + 1"), {"a": 41}).scalar() == 42


def test_changes_are_counted_returned_and_undone(trips: sa.Engine) -> None:
    with trips.connect() as connection:
        changed = connection.execute(TRIPS.update().where(TRIPS.c.id < 3).values(fare=0))
        assert changed.rowcount == 3
        connection.rollback()
        assert connection.execute(sa.select(sa.func.min(TRIPS.c.id))).scalar() == 0
        assert connection.execute(sa.select(sa.func.sum(TRIPS.c.fare))).scalar() == 67.5
        made = connection.execute(
            TRIPS.insert().values(id=100, driver="x").returning(TRIPS.c.id, TRIPS.c.price)
        )
        assert made.all() == [(100, Decimal("1.50"))]
        assert connection.execute(TRIPS.delete().where(TRIPS.c.id == 100)).rowcount == 1
        connection.commit()


def test_errors_are_sqlalchemys(trips: sa.Engine) -> None:
    with trips.connect() as connection:
        with pytest.raises(sa.exc.IntegrityError, match="primary key"):
            connection.execute(TRIPS.insert().values(id=1, driver="x"))
        connection.rollback()
        with pytest.raises(sa.exc.ProgrammingError, match="nonsense"):
            connection.execute(sa.text("select nonsense from trips"))
        connection.rollback()
        assert connection.execute(sa.text("select count(*) from trips")).scalar() == 10
    with pytest.raises(fuseline.InterfaceError, match="is a folder and no host"):
        sa.create_engine("fuseline://host/a").connect()


def test_a_folder_is_an_engines_database(tmp_path: Path) -> None:
    url = f"fuseline:///{tmp_path}/shop?device=cpu"
    engine = sa.create_engine(url)
    TRIPS.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(TRIPS.insert().values(id=1, driver="x"))
        connection.execute(sa.text("create schema s"))
        connection.execute(sa.text("create table s.u (a integer primary key)"))
    engine.dispose()
    engine = sa.create_engine(f"{url}&read_only=true")
    with engine.connect() as connection:
        assert connection.execute(sa.select(TRIPS.c.driver)).scalar() == "x"
        with pytest.raises(sa.exc.ProgrammingError, match="only read"):
            connection.execute(TRIPS.delete())
    seen = sa.inspect(engine)
    assert seen.get_schema_names() == ["main", "s"]
    assert seen.get_table_names("s") == ["u"]
    assert seen.get_pk_constraint("u", "s")["constrained_columns"] == ["a"]
    assert [column["name"] for column in seen.get_columns("u", "s")] == ["a"]
    engine.dispose()


def test_tables_are_reflected(trips: sa.Engine) -> None:
    with trips.begin() as connection:
        connection.execute(sa.text("create view v as select id from trips"))
    seen = sa.inspect(trips)
    assert seen.get_table_names() == ["trips"]
    assert seen.get_view_names() == ["v"]
    assert seen.get_schema_names() == ["main"]
    assert seen.has_table("TRIPS")
    assert not seen.has_table("nothing")
    assert not seen.has_table("trips", schema="other")
    assert seen.get_pk_constraint("trips")["constrained_columns"] == ["id"]
    assert [u["column_names"] for u in seen.get_unique_constraints("trips")] == [["paid"]]
    assert len(seen.get_check_constraints("trips")) == 1
    found = sa.Table("trips", sa.MetaData(), autoload_with=trips)
    assert [str(c.type) for c in found.c] == [
        "INTEGER",
        "VARCHAR",
        "DOUBLE",
        "DATE",
        "NUMERIC(9, 2)",
        "BOOLEAN",
    ]
    assert [c.nullable for c in found.c] == [False, False, True, True, True, True]
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nothing", sa.MetaData(), autoload_with=trips)
    METADATA.drop_all(trips)
    assert sa.inspect(trips).get_table_names() == []


def test_objects_are_kept_changed_and_removed(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([User(name="a"), User(name="b")])
        session.commit()
        found = session.get(User, 2)
        assert found is not None
        found.name = "c"
        session.commit()
        assert list(session.scalars(sa.select(User.name).order_by(User.id))) == ["a", "c"]
        session.delete(found)
        session.flush()
        session.rollback()
        assert session.scalar(sa.select(sa.func.count(User.id))) == 2


@pytest.mark.parametrize(
    ("kind", "options", "schema", "given"),
    [
        ((), {}, None, [1, 2, 3]),
        ((sa.Identity(start=10, increment=5),), {}, "other", [10, 15, 20]),
        ((sa.Sequence("it's", start=7),), {}, None, [7, 8, 9]),
        ((), {"prefixes": ["TEMPORARY"]}, None, [1, 2, 3]),
    ],
)
def test_keys_count_by_themselves(
    engine: sa.Engine,
    kind: tuple[Any, ...],
    options: dict[str, Any],
    schema: str | None,
    given: list[int],
) -> None:
    key = sa.Column("id", sa.Integer, *kind, primary_key=True)
    made = sa.Table("T", sa.MetaData(), key, sa.Column("x", sa.Integer), schema=schema, **options)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("other"))
        made.create(connection)
        assert connection.execute(made.insert(), {"x": 5}).inserted_primary_key == (given[0],)
        insert = made.insert().returning(made.c.id, made.c.x, sort_by_parameter_order=True)
        found = connection.execute(insert, [{"x": 6}, {"x": 7}]).all()
        assert found == list(zip(given[1:], (6, 7), strict=True))
        made.drop(connection)
        left = connection.execute(sa.text("select sequence_name from duckdb_sequences()"))
        assert left.scalars().all() == []


def test_sequences_are_listed_and_drawn_from(engine: sa.Engine) -> None:
    numbers = sa.Sequence("Numbers", start=3, increment=2)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSequence(numbers))
        assert connection.scalar(numbers) == 3
        assert connection.scalar(sa.select(numbers.next_value())) == 5
        found = sa.inspect(connection)
        assert (found.get_sequence_names(), found.has_sequence("numbers")) == (["Numbers"], True)


def test_a_cursor_of_sqlalchemys_is_no_table_that_is_meant(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError) as raised:
        connection.execute(sa.text("select * from curser"))
    assert "cursor" not in str(raised.value.orig)


def test_pandas_reads_and_writes(engine: sa.Engine) -> None:
    made = pd.DataFrame({"a": [1, 2], "s": ["x", "y"], "t": pd.to_datetime(["2026-01-01", None])})
    made.to_sql("made", engine, index=False)
    made.to_sql("made", engine, index=False, if_exists="append")
    assert pd.read_sql("select sum(a) as n from made", engine)["n"].tolist() == [6]
    made.to_sql("made", engine, index=False, if_exists="replace")
    found = pd.read_sql_table("made", engine)
    assert found["a"].tolist() == [1, 2]
    assert found["t"].isna().tolist() == [False, True]


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/sqlalchemy.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})  # type: ignore[index]


def test_whole_division_and_uuids(engine: sa.Engine) -> None:
    table = sa.Table("t", sa.MetaData(), sa.Column("u", sa.Uuid), sa.Column("n", sa.Integer))
    table.create(engine)
    rows = [{"u": UUID(int=7), "n": 3}, {"u": None, "n": -3}]
    with engine.begin() as connection:
        connection.execute(table.insert(), rows)
        asked = sa.select(table.c.u, table.c.n // 2, table.c.n / sa.literal(2)).order_by(table.c.n)
        found = [tuple(row) for row in connection.execute(asked)]
    assert found == [(None, -2, -1.5), (UUID(int=7), 1, 1.5)]


def test_foreign_keys_are_refused_or_left_out_by_name() -> None:
    metadata = sa.MetaData()
    sa.Table("a", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False))
    b = sa.Table("b", metadata, sa.Column("a_id", sa.ForeignKey("a.id")))
    with pytest.raises(sa.exc.CompileError, match='"b" has a foreign key'):
        metadata.create_all(sa.create_engine("fuseline:///?device=cpu"))
    engine = sa.create_engine("fuseline:///?device=cpu", foreign_keys="omit")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(b.insert(), [{"a_id": 7}])
        assert connection.execute(b.select()).all() == [(7,)]
    assert sa.inspect(engine).get_foreign_keys("b") == []
    engine.dispose()
    with pytest.raises(fuseline.InterfaceError, match="omit"):
        sa.create_engine("fuseline://", foreign_keys="maybe")


def test_temporary_tables_are_apart_and_times_keep_their_zone(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    made = sa.Table(
        "t", metadata, sa.Column("at", sa.DateTime(timezone=True)), prefixes=["TEMPORARY"]
    )
    metadata.create_all(engine)
    found = sa.inspect(engine)
    assert (found.get_table_names(), found.get_temp_table_names()) == ([], ["t"])
    assert found.has_table("t")
    assert found.get_columns("t")[0]["type"].timezone
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.literal(6).bitwise_xor(3))).scalar() == 5
        assert connection.execute(made.select()).all() == []
