"""Scripts of some 30 lines for Ibis and SQLAlchemy answer on DuckDB and on Fuseline with one line changed; `test_narwhals_plugin.py` has Narwhals'."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")  # what the DuckDB backends say of versions

IBIS = """
import ibis
import pandas as pd
from ibis import _

con = ibis.ENGINE.connect()

pd.DataFrame({"name": ["Ann", "Bob", "Eve"], "since": [2019, 2024, 2025]}).to_csv("drivers.csv")
drivers = con.read_csv("drivers.csv", table_name="drivers").select("name", "since")
trips = ibis.memtable(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "driver": ["Ann", "Bob", "Ann", None, "Eve", "Bob"],
        "fare": [10.5, 3.25, None, 8.0, 100.0, 4.75],
        "at": pd.date_range("2026-01-01 08:00", periods=6, freq="19h"),
    }
)
joined = trips.left_join(drivers, trips.driver == drivers.name).drop("name")
classed = joined.mutate(
    level=ibis.cases((_.fare > 50, "dear"), (_.fare > 5, "usual"), else_="cheap"),
    day=_.at.truncate("D"),
    initial=_.driver.left(1).lower(),
)
window = ibis.window(group_by="driver", order_by="at")
ranked = classed.mutate(
    nth=ibis.row_number().over(window),
    running=_.fare.sum().over(window),
    before=_.fare.lag().over(window),
)
by_level = classed.group_by("level").agg(
    n=_.count(), total=_.fare.sum(), drivers=_.driver.nunique(), first=_.at.min()
)
shares = by_level.mutate(share=_.total / _.total.sum()).order_by(ibis.desc("total"))
wide = classed.pivot_wider(
    id_cols="day", names_from="level", names=["cheap", "dear", "usual"], values_from="fare", values_agg="max"
).order_by("day")
answers = [con.to_pyarrow(e).to_pylist() for e in (ranked.order_by("id"), shares, wide)]
answers += [con.execute(trips.fare.mean()), con.to_pandas(by_level.n.sum())]
"""
SQLALCHEMY = """
import pandas as pd
import sqlalchemy as sa
from sqlalchemy import orm

engine = sa.create_engine("ENGINE:///:memory:")

class Row(orm.DeclarativeBase):
    pass

class Driver(Row):
    __tablename__ = "drivers"
    name: orm.Mapped[str] = orm.mapped_column(sa.String, primary_key=True)
    since: orm.Mapped[int]

class Trip(Row):
    __tablename__ = "trips"
    id: orm.Mapped[int] = orm.mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    driver: orm.Mapped[str]
    fare: orm.Mapped[float]

Row.metadata.create_all(engine)
with orm.Session(engine) as session:
    session.add_all([Driver(name="Ann", since=2019), Driver(name="Bob", since=2024)])
    rows = [("Ann", 10.5), ("Bob", 3.25), ("Ann", 8.0), ("Eve", 7.75)]
    session.add_all(Trip(id=n, driver=d, fare=f) for n, (d, f) in enumerate(rows))
    session.commit()
    session.get(Trip, 1).fare = 4.0
    session.commit()
    dearest = session.scalars(sa.select(Trip).order_by(Trip.fare.desc())).first().driver
total = sa.func.sum(Trip.fare).label("total")
running = sa.func.sum(Trip.fare).over(order_by=Trip.id).label("running")
by_driver = (
    sa.select(Driver.name, Driver.since, total)
    .join(Trip, Trip.driver == Driver.name)
    .group_by(Driver.name, Driver.since)
    .order_by(total.desc())
)
with engine.connect() as connection:
    answers = [dearest, connection.execute(by_driver).all()]
    answers += [connection.execute(sa.select(Trip.id, running).order_by(Trip.id)).all()]
    answers += [sorted(sa.inspect(connection).get_table_names())]
frame = pd.read_sql(sa.select(Trip).where(Trip.fare > 5).order_by(Trip.id), engine)
frame.to_sql("dear", engine, index=False)
answers += [frame.to_dict("list"), pd.read_sql("SELECT count(*) AS n FROM dear", engine)["n"].item()]
"""


@pytest.mark.parametrize(
    ("script", "packages"),
    [
        pytest.param(IBIS, ("ibis",), id="ibis"),
        pytest.param(SQLALCHEMY, ("sqlalchemy", "duckdb_engine"), id="sqlalchemy"),
    ],
)
def test_a_script_answers_as_on_duckdb(
    script: str, packages: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := [name for name in packages if find_spec(name) is None]:
        pytest.skip(f"{missing[0]} is not installed: pip install '.[dev]'")
    monkeypatch.chdir(tmp_path)
    assert len([line for line in script.splitlines() if line]) >= 30
    assert script.count("ENGINE") == 1
    answers = []
    for engine in ("fuseline", "duckdb"):
        names: dict[str, Any] = {"__name__": "script"}
        text = script.replace("ENGINE", engine)
        exec(compile(text, "script", "exec", dont_inherit=True), names)
        answers.append(names["answers"])
    assert answers[0] == answers[1]
    assert len(answers[0]) >= 5
